"""What is reported compared with what is declared."""

from __future__ import annotations

import pytest

from rackwright.bmc.interface import Firmware
from rackwright.errors import ExitCode
from rackwright.firmware.compare import NodeReport, exit_code, judge
from rackwright.firmware.plan import not_updatable, steps, without_image
from rackwright.firmware.reading import Reading, read, same
from rackwright.model.firmware import Baseline
from tests.factories import make_cluster
from tests.unit.bmc import fake
from tests.unit.firmware.machine import BIOS_ID

GPUS = tuple(Firmware(f"HGX_FW_GPU_{number}", "Software Inventory", "97.10") for number in range(2))


def shown(baseline, **reading):
    """(what, verdict, reason) of each line that is not `not declared`."""
    lines = judge(Baseline.model_validate(baseline), Reading(**reading))
    return [(one.what, str(one.verdict), one.reason) for one in lines if one.verdict != "not declared"]


@pytest.mark.parametrize(
    ("baseline", "reading", "lines"),
    [
        ({"bios": "1"}, {"bios": "1"}, [("bios", "as declared", None)]),
        ({"bios": "1"}, {"bios": "1.0"}, [("bios", "differs", None)]),
        ({"bmc": "1"}, {}, [("bmc", "UNKNOWN", "the BMC reports no version of it")]),
        (
            {"components": {"hgx_fw_gpu_*": "97.10"}},
            {"components": GPUS},
            [("HGX_FW_GPU_0", "as declared", None), ("HGX_FW_GPU_1", "as declared", None)],
        ),
        (
            {"components": {"Software*": "97.11"}},
            {"components": GPUS[:1]},
            [("HGX_FW_GPU_0", "differs", None)],
        ),
        (
            {"components": {"NVSwitch*": "1"}},
            {"components": GPUS},
            [("NVSwitch*", "UNKNOWN", "the BMC lists no component with this id or name")],
        ),
        (
            {"components": {"NVSwitch*": "1"}},
            {"components_error": "It has no inventory."},
            [("NVSwitch*", "UNKNOWN", "It has no inventory.")],
        ),
        (
            {"components": {"HGX*": "97.10", "Software*": "1"}},
            {"components": GPUS[:1]},
            [("HGX_FW_GPU_0", "UNKNOWN", "it is declared twice: by HGX* and by Software*")],
        ),
        (
            {"bios_attributes": {"A": "On", "B": "On", "C": 1, "D": True, "E": "On"}},
            {"attributes": {"A": "On", "B": "Off", "C": "1", "E": "ON"}},
            [
                ("A", "as declared", None),
                ("B", "differs", None),
                ("C", "differs", "the BMC has text (in quotes), but a number is declared"),
                ("D", "UNKNOWN", "the BMC does not list the attribute"),
                ("E", "differs", "only the case of its letters differs"),
            ],
        ),
        (
            {"bios_attributes": {"A": "On"}},
            {"attributes_error": "It has no Bios."},
            [("A", "UNKNOWN", "It has no Bios.")],
        ),
    ],
)
def test_verdicts(baseline, reading, lines):
    assert shown(baseline, **reading) == lines


def test_what_is_not_declared_is_listed():
    lines = judge(Baseline(), Reading(bios="1", components=GPUS[:1]))
    assert [(one.what, str(one.verdict), one.found) for one in lines] == [
        ("bmc", "not declared", None),
        ("bios", "not declared", "1"),
        ("HGX_FW_GPU_0", "not declared", "97.10"),
    ]


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [(1, 1, True), (1, 1.0, True), (1, True, False), ("1", 1, False), (True, True, True), ("a", "A", False)],
)
def test_types_matter(one, other, equal):
    assert same(one, other) is equal


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (["1"], ExitCode.CLEAN),
        (["1", "2"], ExitCode.CHECK_FAILED),
        (["1", None], ExitCode.UNKNOWN),
        (["2", None], ExitCode.CHECK_FAILED),
    ],
)
def test_exit_codes(found, code):
    baseline = Baseline.model_validate({"bios": "1"})
    reports = [NodeReport("gpu1", judge(baseline, Reading(bios=version))) for version in found]
    assert exit_code([*reports, NodeReport("head1", reason="no `bmc` is declared")]) is code


def test_a_silent_bmc_is_unknown():
    assert exit_code([NodeReport("gpu1", reason="It is silent.", unknown=True)]) is ExitCode.UNKNOWN


def test_steps_are_in_order_and_one_image_is_sent_once():
    image = {"version": "2", "url": "http://x/bundle"}
    baseline = Baseline.model_validate(
        {
            "components": {"HGX*": image, "NIC": "3"},
            "bios": {"version": "2", "url": "http://x/bios"},
            "bmc": image,
        }
    )
    nic = Firmware("NIC", "ConnectX-7", "2")
    lines = judge(baseline, Reading(bios="1", bmc="1", components=(*GPUS, nic)))
    first, second = steps(baseline, lines)
    assert [line.what for line in first.lines] == ["bmc", "HGX_FW_GPU_0", "HGX_FW_GPU_1"]
    assert (first.of_bmc, second.of_bmc) == (True, False)
    assert str(second) == "bios 1 -> 2 (bios)"
    assert [line.what for line in without_image(baseline, lines)] == ["NIC"]


def test_what_cannot_be_updated_is_named():
    node = make_cluster().by_name["worker1"]
    baseline = Baseline.model_validate({"bios": "2", "components": {"NIC": "3"}})
    cluster = make_cluster(firmware={node.sku.name: baseline})
    report = NodeReport("worker1", judge(baseline, Reading(bios="1")))
    assert [line.what for line in not_updatable(cluster, [report])["worker1"]] == ["bios", "NIC"]


def test_reading(machine):
    client = machine.bmc.client()
    baseline = Baseline.model_validate(
        {
            "bios": "2.6.6",
            "components": {"ConnectX*": "1"},
            "bios_attributes": {"ProcVirtualization": "Disabled"},
        }
    )
    found = read(client, baseline)
    client.close()
    assert (found.bios, found.components_error) == ("2.6.6", None)
    assert [one.id for one in found.components] == ["HGX_FW_GPU_0", "HGX_FW_GPU_1", BIOS_ID, "NIC.Slot.3"]
    assert found.attributes["ProcVirtualization"] == "Enabled"
    assert [(one.what, one.reason) for one in judge(baseline, found) if one.verdict == "UNKNOWN"] == [
        ("NIC.Slot.3", "the BMC reports no version of it")
    ]


def test_parts_beside_the_inventory(machine):
    system = "/redfish/v1/Systems/System.Embedded.1"
    machine.documents[system]["Storage"] = {"@odata.id": f"{system}/Storage"}
    machine.documents[f"{system}/Storage"] = {"Members": [{"@odata.id": f"{system}/Storage/1"}]}
    machine.documents[f"{system}/Storage/1"] = {
        "@odata.id": f"{system}/Storage/1",
        "Drives": [{"@odata.id": "/redfish/v1/d"}],
    }
    machine.documents["/redfish/v1/d"] = {"Id": "Disk.0", "Model": "PM9A3", "Revision": "GDC7102Q"}
    client = machine.bmc.client()
    baseline = Baseline.model_validate({"components": {"Drive/*": "GDC7102Q"}})
    assert [one.what for one in judge(baseline, read(client, baseline)) if one.verdict == "as declared"] == [
        "Drive/Disk.0"
    ]
    client.close()


@pytest.mark.parametrize("name", fake.NAMES)
def test_each_makers_inventory(pki, name):
    documents = fake.tree(name)
    members = documents["/redfish/v1/UpdateService/FirmwareInventory"]["Members"]
    installed = [one for one in members if "Previous-" not in one["@odata.id"]]
    with fake.serving(documents, pki) as bmc:
        client = bmc.client()
        updates = client.updates()
        assert len(updates.components()) == len(installed)
        assert (updates.ways(), updates.under_way()) == (frozenset(), [])
        updates.devices()
        client.close()
