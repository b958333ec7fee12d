"""Each fault of a virtual machine has the effect it is named after, and heal takes it away."""

from __future__ import annotations

import os
import time

import pytest

from rackwright.errors import LabError
from rackwright.lab import names, node
from tests.racks.vm_lab.conftest import NODE, Machine

pytestmark = [pytest.mark.lab, pytest.mark.proof]


MEDIA_ERROR = "No data available"
"""ENODATA, which Linux makes of a read or write error that an NVMe drive reports (drivers/nvme/host/core.c)."""


def drive(machine: Machine, number: int) -> str:
    """The kernel numbers drives as it finds them."""
    return machine.on(f"lsblk -dnpo NAME,SERIAL | awk '$2 == \"{NODE}-data{number}\" {{print $1}}'").strip()


def read(machine: Machine, path: str) -> str:
    return machine.on(f"LC_ALL=C dd if={path} of=/dev/null bs=4096 count=1 iflag=direct 2>&1")


def carrier(machine: Machine, port: int) -> str:
    mac = names.mac(machine.name, NODE, "node" if port == 0 else f"node{port}")
    return machine.on(f"ip -o link | grep -i {mac}")


def test_disk_fail_is_an_io_error_of_one_drive(machine: Machine):
    broken, whole = drive(machine, 0), drive(machine, 1)
    before = machine.boot()
    machine.lab("fault", "disk:fail", "0")
    with pytest.raises(LabError, match=MEDIA_ERROR):
        read(machine, broken)
    with pytest.raises(LabError, match=MEDIA_ERROR):
        machine.on(f"LC_ALL=C dd if=/dev/zero of={broken} bs=4096 count=1 oflag=direct 2>&1")
    assert "1+0 records in" in read(machine, whole)
    assert machine.state() == "ready"
    machine.lab("heal")
    assert "1+0 records in" in read(machine, drive(machine, 0))
    assert machine.boot() != before  # such a drive comes back by a power cycle alone


@pytest.mark.smoke
def test_link_down_takes_the_carrier_of_one_port(machine: Machine):
    before = machine.boot()
    machine.lab("fault", "link:down")
    machine.wait(lambda: "NO-CARRIER" in carrier(machine, 2), "the last port to lose its carrier")
    assert "NO-CARRIER" not in carrier(machine, 1)
    assert machine.state() == "ready"  # by its first port
    machine.lab("fault", "link:down", "0")
    machine.wait(lambda: "NO-CARRIER" in carrier(machine, 0), "the first port to lose its carrier")
    with pytest.raises(OSError, match=r"timed out|No route to host"):
        machine.banner()
    machine.lab("heal")
    assert [port for port in range(3) if "NO-CARRIER" in carrier(machine, port)] == []
    assert machine.boot() == before


@pytest.mark.parametrize("seconds", [7200, -7200])
def test_clock_jump(machine: Machine, seconds: int):
    def ahead() -> float:
        return int(machine.on("date +%s")) - time.time()

    machine.on("systemctl stop systemd-timesyncd chrony 2>/dev/null || true")
    assert abs(ahead()) < 60
    machine.lab("fault", "clock:jump", str(seconds))
    assert abs(ahead() - seconds) < 60
    machine.lab("heal")
    assert abs(ahead()) < 60


def test_a_power_cut_loses_what_was_not_flushed_alone(machine: Machine):
    machine.on("rm -f /root/lost; echo kept >/root/kept; sync")
    before = machine.boot()
    machine.on(
        "sysctl -qw vm.dirty_writeback_centisecs=0 vm.dirty_expire_centisecs=360000; echo x >/root/lost"
    )
    machine.lab("fault", "power-cut")
    assert machine.faults() == {}  # it is over, and the machine boots
    machine.wait(lambda: machine.state() == "ready", "it to boot")
    assert machine.boot() != before
    assert machine.on("cat /root/kept") == "kept\n"
    # the file itself, or its content: neither was asked to be on the disk
    assert machine.on("cat /root/lost 2>/dev/null || true") == ""


def test_a_panic_is_silence_until_it_is_healed(machine: Machine):
    before = machine.boot()
    machine.on("sysctl -qw kernel.panic=0")
    machine.lab("fault", "panic")
    assert not machine.answers()
    assert machine.state() == "not ready"
    log = (names.node_state(machine.name, NODE) / "console.log").read_text(errors="replace")
    assert "Kernel panic - not syncing" in log
    machine.lab("heal")
    assert machine.boot() != before


def test_a_kernel_that_panicked_by_itself_is_healed_too(machine: Machine):
    before = machine.boot()
    machine.on("sysctl -qw kernel.panic=0; systemd-run -q --on-active=2 sh -c 'echo c >/proc/sysrq-trigger'")
    machine.wait(lambda: node.panicked(machine.name, NODE), "it to panic")
    assert machine.faults() == {}
    machine.lab("heal")
    assert machine.boot() != before
    assert not node.panicked(machine.name, NODE)


def test_kill_is_a_power_failure_that_up_respects(machine: Machine):
    machine.lab("fault", "kill")
    assert machine.state() == "off"
    machine.site.cli("lab", "up", str(machine.site.file))
    assert machine.state() == "off"
    machine.lab("heal")
    assert machine.state() == "ready"


def test_pause_stops_it_and_what_needs_it_is_refused(machine: Machine):
    machine.lab("fault", "pause")
    with pytest.raises(OSError, match="timed out"):
        machine.banner()
    refused = machine.lab("fault", "panic", expect=1)
    assert f"node {NODE} is paused, and panic needs it to run" in refused
    assert machine.faults() == {"pause": []}


def test_cut_takes_the_cable(machine: Machine):
    machine.lab("fault", "cut")
    with pytest.raises(OSError, match=r"timed out|No route to host"):
        machine.banner()
    assert machine.answers()  # the guest agent has no network


def test_slow_delays(machine: Machine):
    machine.lab("fault", "slow", "1500", "0")
    began = time.monotonic()
    assert machine.banner(60) == b"SSH-"
    assert time.monotonic() - began >= 1.5


def test_fill_disk_leaves_no_room_and_a_power_cycle_does_not_hide_it(machine: Machine):
    free = _free()
    machine.lab("fault", "fill-disk")
    with pytest.raises(LabError, match="No space left on device"):
        machine.on(
            "export LC_ALL=C; for d in /root /var/lib /etc; do head -c 8192 /dev/zero >$d/full; sync; done"
        )
    assert machine.on("df --output=avail / | tail -1").strip() == "0"
    assert free - _free() < 4 << 30  # reserved in the machine, hardly anything here
    machine.lab("fault", "kill")
    machine.lab("heal")
    machine.on(
        "head -c 1000000 /dev/zero >/root/fits; rm /root/fits /root/full /var/lib/full /etc/full || true"
    )
    assert machine.on("ls /var/lib/rackwright-lab-fill 2>/dev/null || true") == ""


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (("flood",), "no fault 'flood'"),
        (("disk:fail", "9"), f"node {NODE} has no data disk '9'"),
        (("link:down", "x"), f"node {NODE} has no port 'x'"),
        (("clock:jump", "noon"), "clock:jump noon: not a number of seconds"),
        (("gpu:fell-off",), "no GPU"),
    ],
)
def test_bad_faults_change_nothing(machine: Machine, fault: tuple[str, ...], message: str):
    assert message in machine.lab("fault", *fault, expect=1)
    assert machine.faults() == {}


def _free() -> int:
    status = os.statvfs(names.lab_dir())
    return status.f_bavail * status.f_frsize


def test_several_faults_and_one_heal(machine: Machine):
    for fault in (("sshd-down",), ("link:down", "1"), ("clock:jump", "3600"), ("cut",), ("pause",)):
        machine.lab("fault", *fault)
    assert set(machine.faults()) == {"sshd-down", "link:down", "clock:jump", "cut", "pause"}
    machine.lab("heal")
    assert machine.banner(60) == b"SSH-"
    assert "NO-CARRIER" not in carrier(machine, 1)
    assert abs(int(machine.on("date +%s")) - time.time()) < 60
    machine.on(f"ping -c 1 -W 30 {machine.site.cluster.management.gateway}")
