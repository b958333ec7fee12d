"""A machine behind sushy-tools' Redfish emulator: status, power, discovery, installation, and back from its disk.

Of the emulator's limits rackwright has to make the best: it has no sessions, no serial number and no event log, ignores
`Once`, always overrides the boot order, and changes what is in the drive only for the next start.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from rackwright.install.authority import credentials_in
from rackwright.install.states import State
from tests.racks.host_state import State as HostState
from tests.racks.host_state import differences
from tests.racks.patience import until
from tests.racks.program import Ran
from tests.racks.site import REPO
from tests.racks.sushy import bmcs, machine
from tests.racks.sushy.conftest import Operator
from tests.racks.sushy.private_site import BMC, PrivateSite, reached
from tests.racks.vagrant.machine_state import machine_state

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_OTHER_UUID = machine.UUID.replace("11", "12")
_OTHER_MAC = "52:54:00:87:00:12"
_POWER_SECONDS = 300


@pytest.mark.smoke
def test_status_power_and_boot_order(operator: Operator):
    private = operator.private
    (status,) = operator.bmc("status", "--json").json()["nodes"]
    assert (status["status"], status["power"], status["health"]) == ("PASS", "off", "ok")
    identity = status["identity"]
    assert (identity["serial"], identity["uuid"], identity["macs"]) == (None, machine.UUID, [machine.MAC])
    assert [one["name"] for one in status["temperatures"]] == ["CPU Temp", "Chassis Intake Temp"]

    assert operator.power("on") == "power on accepted"
    assert machine.runs(private)
    assert operator.power("status") == "on"
    assert operator.power("on") == "is on already"
    untyped = operator.bmc("power", "off", expect=None)
    assert untyped.status != 0
    assert machine.runs(private)
    for action in ("reset", "off"):
        assert operator.power(action, "--confirm", machine.NAME) == f"power {action} accepted"
        assert machine.runs(private) is (action == "reset")

    assert operator.bmc("boot-order", "--json").json()["nodes"] == {
        machine.NAME: {"boot order": "disk, until changed"}
    }
    for target, becomes in (("pxe", "pxe, until changed"), ("none", "disk, until changed")):
        assert operator.bmc("boot-order", target, "--json").json()["nodes"] == {
            machine.NAME: {"boot order": becomes}
        }
    refused = operator.bmc("boot-order", "cd", expect=1)
    assert "Target libvirt device Cd does not exist" in refused.err


def test_a_bmc_with_the_certificate_of_another_ca_or_another_password(operator: Operator, tmp_path: Path):
    other = credentials_in(tmp_path, frozenset({IPv4Address(BMC)}))
    (operator.folder / "other-ca.pem").write_bytes(other.ca)
    with operator.declaring(lambda content: content["defaults"]["bmc"].update(ca="other-ca.pem")):
        assert "did not sign" in _said(operator.bmc("power", "status", expect=4))
    with operator.wrong_password():
        refused = operator.bmc("power", "status", expect=4)
    assert f"rejects the password of user {bmcs.USER}" in _said(refused)


def test_everything_is_in_the_private_network(operator: Operator, private: PrivateSite, before: HostState):
    assert private.elsewhere() == []
    ca = operator.folder / bmcs.CA_FILE
    assert not reached(BMC, ca)
    ask = f"from tests.racks.sushy.private_site import *; print(reached({BMC!r}, Path({str(ca)!r})))"
    inside = private.on_the_network(sys.executable, "-c", ask)
    done = subprocess.run(inside, capture_output=True, text=True, check=True, timeout=60, cwd=REPO)
    assert done.stdout == "True\n"
    assert differences(before, machine_state(private.processes())) == []


@pytest.mark.usefixtures("agent")
def test_the_machine_is_found_as_declared(operator: Operator, record_property: Callable[[str, object], None]):
    ran = operator.network_cli("discover", str(operator.file), "--adopt", str(operator.folder / "found"))
    record_property("rackwright discover", f"{ran.seconds:.0f} s")
    rows = (operator.folder / "found" / "machines.csv").read_text().splitlines()
    assert rows[1] == f"{machine.NAME},{machine.MAC},{machine.SERIAL},{machine.DISK},{BMC}"
    assert operator.record().state is State.SURVEYED
    _nothing_left(operator)
    assert not machine.runs(operator.private)


def test_it_is_installed_and_reached_with_the_host_key_that_it_made(
    installed: tuple[Operator, Ran], record_property: Callable[[str, object], None], tmp_path: Path
):
    operator, ran = installed
    record_property("rackwright install", f"{ran.seconds:.0f} s")
    record_property("memory of qemu", f"{machine.peak_mib(operator.private)} MiB")
    assert ran.status == 0, f"{ran}\n{machine.console(operator.private)[-3000:]}"
    record = operator.record()
    assert (record.state, record.serial, record.uuid) == (State.READY, "", machine.UUID)
    _is_the_installed_system(operator)
    known = tmp_path / "known_hosts"
    made = tmp_path / "another"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", made], check=True, timeout=60)
    other = made.with_suffix(".pub").read_text().split()[:2]
    known.write_text(" ".join(((operator.folder / "known_hosts").read_text().split()[0], *other)) + "\n")
    assert "Host key verification failed" in operator.ssh("true", known_hosts=known).err
    _nothing_left(operator)
    log = (operator.private.folder / "redfish.log").read_text()
    assert "InsecureRequestWarning" not in log  # the medium came from a server whose certificate was checked


def test_a_running_machine_is_left_alone(installed: tuple[Operator, Ran]):
    operator, _ = installed
    booted = operator.ssh("cat /proc/sys/kernel/random/boot_id").out
    said = _said(operator.install("--reinstall", f"{machine.NAME}={machine.UUID}", expect=3))
    assert "its power is on" in said
    assert "its address answers on the SSH port" in said
    assert operator.ssh("cat /proc/sys/kernel/random/boot_id").out == booted


def test_from_its_disk_again_it_is_still_installed(
    installed: tuple[Operator, Ran], record_property: Callable[[str, object], None]
):
    operator, _ = installed
    private = operator.private
    booted = operator.ssh("cat /proc/sys/kernel/random/boot_id").out
    assert operator.power("soft", "--confirm", machine.NAME) == "power soft accepted"
    until(lambda: not machine.runs(private), "end of the shutdown", _POWER_SECONDS)
    refused = operator.install(expect=3)
    assert f"to erase it, type its UUID: --reinstall {machine.NAME}={machine.UUID}" in _said(refused)
    refused = operator.install("--reinstall", f"{machine.NAME}={_OTHER_UUID}", expect=3)
    assert f"{_OTHER_UUID} is not its UUID" in _said(refused)
    with operator.declaring(lambda content: content["nodes"][0].update(macs=[_OTHER_MAC])):
        warned, refused = (
            operator.bmc("status"),
            operator.install(expect=3),
        )  # the BMCs' addresses are swapped, say
    assert f"the declared MAC {_OTHER_MAC} is not one of its ports: {machine.MAC}" in _said(warned)
    assert f"its BMC's machine has the MACs {machine.MAC}" in _said(refused)
    assert not machine.runs(private)

    assert operator.power("on") == "power on accepted"
    until(lambda: operator.ssh("true").status == 0, "login after the second start", 900)
    assert operator.ssh("cat /proc/sys/kernel/random/boot_id").out != booted
    _is_the_installed_system(operator)
    assert operator.record().state is State.READY


def _said(ran: Ran) -> str:
    """What a command wrote, without its line breaks."""
    return " ".join((ran.err + ran.out).split())


def _is_the_installed_system(operator: Operator) -> None:
    asked = "cat /proc/cmdline /etc/hostname /sys/class/dmi/id/product_name; sudo cat /sys/class/dmi/id/product_uuid"
    found = operator.ssh(asked)
    assert found.status == 0, found
    command_line, *rest = found.out.splitlines()
    assert f"rackwright.run={operator.record().run}" in command_line.split()
    assert rest == [machine.NAME, "VM-1U", machine.UUID]


def _nothing_left(operator: Operator) -> None:
    """The medium is in no drive, on neither side's disks, and the next start is from the disk."""
    assert operator.record().media == ""
    assert not list((operator.state / "rackwright" / operator.name / "install" / "media").glob("*"))
    assert "cdrom" not in operator.private.virsh("dumpxml", "--inactive", machine.NAME).out
    assert operator.bmc("boot-order", "--json").json()["nodes"] == {
        machine.NAME: {"boot order": "disk, until changed"}
    }
    assert not list((operator.private.folder / "redfish" / "state").rglob("*.iso"))
