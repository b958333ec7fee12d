"""The readers, alone: on any answer of a BMC, they return or raise BmcError."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.bmc import documents, redfish, redfish_health, redfish_identity, redfish_log, redfish_media
from rackwright.bmc.interface import Condition
from rackwright.bmc.redfish_console import console_argv
from rackwright.bmc.redfish_log import choose_log
from rackwright.bmc.redfish_tree import Tree, choose_system, is_baseboard
from rackwright.bmc.target import ResourceMissing
from rackwright.errors import BmcError
from tests.unit.bmc import fake


def _keys(value) -> set[str]:
    """The names of all members, at any depth."""
    if isinstance(value, dict):
        return {*value, *(key for inner in value.values() for key in _keys(inner))}
    return {key for inner in value for key in _keys(inner)} if isinstance(value, list) else set()


_TREES = {name: fake.tree(name) for name in fake.NAMES}
_KEYS = sorted({key for tree in _TREES.values() for key in _keys(list(tree.values()))})
_PATHS = sorted({path for tree in _TREES.values() for path in tree})
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(
        ["OK", "Critical", "Absent", "2026-01-01T00:00:00Z", "02:00:00:00:00:01", "CD", *_PATHS]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4),
    max_leaves=12,
)
_DOCUMENTS = st.dictionaries(st.sampled_from(_KEYS), _VALUES, max_size=8)


class _Session:
    """Answers from a dictionary."""

    def __init__(self, documents: dict) -> None:
        self._documents = documents
        self.target = fake.Fake({}, pem=None, fingerprint="").target(ca=None)

    def root(self):
        return documents.document(self._documents.get("/redfish/v1/"))

    def get(self, path):
        if path not in self._documents:
            raise ResourceMissing(f"no {path}")
        return documents.document(self._documents[path])


@given(_DOCUMENTS)
@settings(max_examples=200, deadline=None)
def test_readers_of_one_document_never_raise(document):
    redfish.power_of(document)
    redfish.boot_of(document)
    redfish.attributes_of(document)
    redfish_identity.identity_of(document, [document], [])
    redfish_identity.interface_macs([document])
    redfish_identity.adapter_macs([document])
    redfish_identity.firmware_of([document])
    redfish_health.overall_of(document)
    for reader in (
        redfish_health.supplies_of,
        redfish_health.fans_of,
        redfish_health.temperatures_of,
        redfish_health.metric_fans_of,
        redfish_health.metric_temperatures_of,
        redfish_health.watts_of,
        redfish_health.new_watts_of,
    ):
        reader(document)
    redfish_health.new_supplies_of([document])
    redfish_health.new_fans_of([document])
    redfish_health.sensor_temperatures_of([document])
    redfish_log.entries_of([document])
    redfish_media.media_of(document)
    redfish_media.cd_drives({"a": document, "b": document})
    choose_system({"a": document, "b": document})
    console_argv(_Session({}).target, document, [document])


@given(st.sampled_from(fake.NAMES), st.lists(st.tuples(st.sampled_from(_PATHS), _VALUES), max_size=4))
@settings(max_examples=150, deadline=None)
def test_walks_of_a_tree_with_anything_in_it_end(name, damage):
    tree = {**_TREES[name], **dict(damage)}
    walks = (
        redfish_identity.read_identity,
        redfish_identity.read_firmware,
        redfish_health.read_health,
        lambda walked: redfish_log.read_log(walked, 5),
        redfish_media.drives,
    )
    for walk in walks:
        with suppress(BmcError):
            walk(Tree(_Session(tree)))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("AA:BB:CC:00:11:22", "aa:bb:cc:00:11:22"),
        ("aa-bb-cc-00-11-22", "aa:bb:cc:00:11:22"),
        ("AABBCC001122", "aa:bb:cc:00:11:22"),
        ("00:00:00:00:00:00", None),
        ("ff:ff:ff:ff:ff:ff", None),
        ("aa:bb:cc:00:11", None),
        ("N/A", None),
        (None, None),
        (7, None),
    ],
)
def test_macs(written, read):
    assert documents.mac(written) == read


@pytest.mark.parametrize(
    ("status", "condition"),
    [
        ({"State": "Enabled", "Health": "OK"}, "ok"),
        ({"State": "Absent", "Health": "Critical"}, "absent"),
        ({"State": "UnavailableOffline"}, "critical"),
        ({"State": "UnavailableOffline", "Health": "Warning"}, "warning"),
        ({"State": "Disabled"}, "absent"),
        ({"State": "Disabled", "Health": "Critical"}, "critical"),
        ({"Health": "DEGRADED"}, "warning"),
        ({"Health": "Fine"}, "unknown"),
        ({}, "unknown"),
        ("OK", "unknown"),
    ],
)
def test_conditions(status, condition):
    assert documents.condition({"Status": status}) is Condition(condition)


@pytest.mark.parametrize(
    ("given_", "number"),
    [(3, 3.0), ("3.5", 3.5), ("N/A", None), (True, None), (10**400, None), ("1e400", None), (None, None)],
)
def test_numbers(given_, number):
    assert documents.number({"Reading": given_}, "Reading") == number


@pytest.mark.parametrize(
    ("paths", "chosen"),
    [
        (["/a/Lclog", "/a/Sel", "/a/FaultList"], "/a/Sel"),
        (["/a/IEL", "/b/SL", "/b/IML"], "/b/IML"),
        (["/a/Dump", "/a/PostCodes", "/a/Journal", "/a/EventLog"], "/a/EventLog"),
        (["/a/AuditLog", "/a/ActiveLog", "/a/PlatformLog"], "/a/PlatformLog"),
        (["/a/Log1"], "/a/Log1"),
        (["/a/IEL"], "/a/IEL"),
        (["/a/Hardware"], "/a/Hardware"),
        (["/a/CrashDump"], None),
        ([], None),
    ],
)
def test_the_log_of_the_hardware(paths, chosen):
    assert choose_log(paths) == chosen


@pytest.mark.parametrize(
    ("systems", "chosen"),
    [
        (["HGX_Baseboard_0", "System_0"], ["System_0"]),
        (["HGX_Baseboard_0", "DGX"], ["DGX"]),
        (["HGX_Baseboard_0", "system"], ["system"]),
        (["Self", "Other"], ["Self"]),
        (["Blade1", "Blade2"], ["Blade1", "Blade2"]),
    ],
)
def test_the_host_among_systems(systems, chosen):
    found = choose_system({f"/redfish/v1/Systems/{name}": {"SystemType": "Physical"} for name in systems})
    assert [path.rpartition("/")[2] for path in found] == chosen


@pytest.mark.parametrize(
    ("name", "baseboard"),
    [
        ("HGX_BMC_0", True),
        ("HGX_GPU_SXM_1", True),
        ("GPU_0", True),
        ("BMC_0", False),
        ("DGX", False),
        ("1", False),
    ],
)
def test_the_tree_of_a_baseboard(name, baseboard):
    assert is_baseboard(name) is baseboard


def test_text_that_would_move_the_cursor_is_made_printable():
    assert documents.text({"Name": "\x1b[2JPSU"}, "Name") == "\\x1b[2JPSU"


@pytest.mark.parametrize("serial", ["", "   ", "None", "To Be Filled By O.E.M.", "0123456789", None, 5])
def test_a_serial_that_was_never_filled_in(serial):
    assert redfish_identity.serial_of({"SerialNumber": serial}) is None
