"""rackwright firmware, against BMCs over TLS."""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket

import pytest

from rackwright.bmc import fleet
from rackwright.bmc.open import open_bmc
from rackwright.engine.boots import Before
from rackwright.engine.journal import runs
from rackwright.firmware import run as firmware_run
from rackwright.secrets.secret import Secret
from tests.unit.bmc import fake
from tests.unit.bmc.test_fleet import SITE
from tests.unit.firmware.machine import QUICK, SAID, SETTINGS, SYSTEM, Machine, tree

FIRMWARE = """\
firmware:
  cpu-64c-256g:
    bios: {{version: 2.7.1, {image}}}
    components: {{"HGX_FW_GPU_*": "97.10"}}
    bios_attributes: {{SriovGlobalEnable: Enabled}}
"""
URL = "url: http://images.example.com/bios.exe"


class _Store:
    def get(self, name):
        return Secret(name, fake.PASSWORD)


class _Boots:
    """Nodes that answer ssh, and boot when the order is given."""

    def __init__(self, cluster, shell, seconds, *, order=None):
        self._order = order

    def before(self, names):
        return {name: Before("boot") for name in names}

    def reboot(self, boots):
        for name in boots:
            self._order(name)
        return dict.fromkeys(boots)


class _HeadLock(contextlib.AbstractContextManager):
    def __init__(self, *_, **__): ...

    def __exit__(self, *_): ...

    def send(self, run, line): ...

    def confirm(self): ...


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A cluster file and two machines, gpu1 and gpu2; the BMC of gpu3 does not answer."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    addresses = ("10.20.0.11", "10.20.0.12")
    with contextlib.ExitStack() as stack:
        machines = [
            Machine(stack.enter_context(fake.serving(tree(), tmp_path, address))) for address in addresses
        ]
        ports = {address: one.bmc.port for address, one in zip(addresses, machines, strict=True)}

        def connect(address, port, timeout):
            if address not in ports:
                raise TimeoutError
            return socket.create_connection(("127.0.0.1", ports[address]), timeout)

        def opener(cluster):
            return lambda node: open_bmc(node, Secret("bmc_password", fake.PASSWORD), connect)

        monkeypatch.setattr(fleet, "connector", lambda cluster, node: connect)
        monkeypatch.setattr(fleet, "store_of", lambda cluster: _Store())
        monkeypatch.setattr("rackwright.cli.firmware.opener", opener)
        monkeypatch.setattr(firmware_run, "HeadLock", _HeadLock)
        monkeypatch.setattr(firmware_run, "Boots", _Boots)
        monkeypatch.setattr("rackwright.cli.firmware.Asked", _quick(firmware_run.Asked))
        (tmp_path / "bmc-ca.pem").write_text("".join(one.bmc.pem.read_text() for one in machines))
        file = tmp_path / "site.yaml"
        file.write_text(SITE.read_text() + FIRMWARE.format(image=URL))
        yield file, *machines


def _quick(asked):
    return lambda *given, **named: asked(*given, **named, tempo=QUICK)


def test_check(site, rackwright):
    found = rackwright("firmware", "check", site[0])
    lines = [" ".join(line.split()) for line in found.out.splitlines()]
    assert found.status == 3
    assert lines == [
        "nodes what verdict found declared",
        "gpu[1-2] bios differs 2.6.6 2.7.1",
        "gpu[1-2] SriovGlobalEnable differs Disabled Enabled",
        "OUT OF SCOPE head1 no `bmc` is declared",
        "differs gpu[1-2]",
        "UNKNOWN gpu3 Cannot reach the BMC of gpu3 (10.20.0.13): no answer within 2 s.",
        "hint: check its address and cable; does this host have a route to its network?",
    ]


def test_check_of_what_is_as_declared(site, rackwright):
    file, machine, _ = site
    machine.documents[SYSTEM]["BiosVersion"] = "2.7.1"
    machine.documents[f"{SYSTEM}/Bios"]["Attributes"]["SriovGlobalEnable"] = "Enabled"
    assert rackwright("firmware", "check", file, "--limit", "gpu1").status == 0
    assert rackwright("firmware", "check", file, "--limit", "gpu[1,3]").status == 4
    document = json.loads(rackwright("firmware", "check", file, "--limit", "gpu1", "--json").out)
    (node,) = document["nodes"]
    assert (node["node"], node["verdict"]) == ("gpu1", "as declared")
    assert {"what": "HGX_FW_GPU_0", "kind": "version", "verdict": "as declared"}.items() <= node["lines"][
        2
    ].items()
    assert "NIC.Slot.3" in rackwright("firmware", "check", file, "--limit", "gpu1", "-v").out


def test_a_file_without_firmware(site, rackwright):
    site[0].write_text(SITE.read_text())
    found = rackwright("firmware", "check", site[0])
    assert (found.status, found.err.splitlines()[0]) == (1, f"error: {site[0]} declares no firmware.")


def test_a_bmc_that_is_silent_keeps_everything_from_being_changed(site, rackwright):
    found = rackwright("firmware", "update", site[0], "--limit", "gpu[1-3]", "--confirm", "gpu[1-3]")
    assert found.status == 1
    assert "error: Nothing was changed: Cannot reach the BMC of gpu3 (10.20.0.13)" in found.err
    assert site[1].images == []


@pytest.mark.parametrize(
    ("confirm", "words"),
    [
        ((), "standard input is not a terminal"),
        (("--confirm", "yes"), "'yes' is not gpu[1-2]; nothing was changed"),
    ],
)
def test_the_nodes_are_typed(site, rackwright, confirm, words):
    found = rackwright("firmware", "update", site[0], "--limit", "gpu[1-2]", *confirm)
    assert found.status == 1
    assert found.out.startswith("gpu[1-2]: bios 2.6.6 -> 2.7.1 (bios.exe)\n")
    assert words in found.err
    assert site[1].images == []


def test_update(site, rackwright):
    file, first, second = site
    first.now, second.at_boot = {SYSTEM: "2.7.1"}, {SYSTEM: "2.7.1"}
    found = rackwright("firmware", "update", file, "--limit", "gpu[1-2]", "--confirm", "gpu[1-2]")
    assert found.status == 0, found.err
    assert found.out.splitlines()[1:] == ["gpu1: as declared: bios 2.7.1", "gpu2: as declared: bios 2.7.1"]
    assert (first.boots, second.boots) == (0, 1)
    (run,) = runs("metal")
    assert (run.state, run.begin["deploy"], sorted(run.nodes)) == (
        "finished",
        "firmware update",
        ["gpu1", "gpu2"],
    )
    again = rackwright("firmware", "update", file, "--limit", "gpu[1-2]")
    assert (again.status, again.out) == (0, "nothing to do\n")
    resumed = rackwright("resume", run.run)
    assert f"hint: run again: rackwright firmware update {file} --limit 'gpu[1-2]'" in resumed.err


def test_the_first_failure_ends_the_run(site, rackwright):
    file, first, second = site
    first.states = [{"TaskState": "Exception", "Messages": [{"Message": SAID}]}]
    found = rackwright("firmware", "update", file, "--limit", "gpu[1-2]", "--confirm", "gpu[1-2]")
    assert found.status == 1
    assert f"gpu1: bios 2.6.6 -> 2.7.1 (bios.exe): failed: {SAID}" in found.err
    assert "gpu2: not started: gpu1 failed" in found.err
    assert f"0 of 2 nodes are as declared; see: rackwright firmware check {file}" in found.err
    assert second.images == []


def test_what_has_no_image_is_named(site, rackwright):
    file, *_ = site
    file.write_text(SITE.read_text() + FIRMWARE.format(image=""))
    found = rackwright("firmware", "update", file, "--limit", "gpu1")
    assert (found.status, found.out) == (3, "nothing to do\n")
    assert "gpu1: not updated: bios is 2.6.6, declared is 2.7.1, and no image is declared" in found.err


def test_a_file_that_is_another_one(site, rackwright, tmp_path):
    (tmp_path / "bios.exe").write_bytes(b"other")
    digest = hashlib.sha256(b"declared").hexdigest()
    site[0].write_text(SITE.read_text() + FIRMWARE.format(image=f"file: bios.exe, sha256: {digest}"))
    found = rackwright("firmware", "update", site[0], "--limit", "gpu1", "--confirm", "gpu1")
    assert found.status == 1
    assert f"but {digest} is declared; nothing was changed." in found.err


def test_bios(site, rackwright):
    file, first, _ = site
    found = rackwright("firmware", "bios", file, "--limit", "gpu1", "--confirm", "gpu1")
    assert found.status == 0, found.err
    assert found.out == (
        "gpu1: SriovGlobalEnable Disabled -> Enabled\ngpu1: as declared: SriovGlobalEnable Enabled\n"
    )
    assert first.boots == 1


def test_bios_that_the_registry_refuses(site, rackwright):
    file, first, _ = site
    file.write_text(file.read_text().replace("SriovGlobalEnable: Enabled", "BootMode: Bios"))
    found = rackwright("firmware", "bios", file, "--limit", "gpu1", "--confirm", "gpu1")
    assert (found.status, first.documents[SETTINGS]["Attributes"]) == (1, {})
    assert found.err.splitlines()[0] == "error: Nothing was changed: gpu1: BootMode: it is read-only."


def test_a_node_that_is_off_is_said_to_be_switched_on(site, rackwright):
    file, first, _ = site
    first.documents[SYSTEM]["PowerState"] = "Off"
    found = rackwright("firmware", "bios", file, "--limit", "gpu1", "--confirm", "gpu1")
    assert found.status == 0, found.err
    assert "gpu1: off; switched on where a boot is needed, and left on" in found.out
    assert [body["ResetType"] for _, path, body in first.bmc.changes() if path.endswith("Reset")] == ["On"]
