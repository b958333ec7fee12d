"""A virtual machine of the lab: what it is, the ways onto it, its power and its snapshots."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest

from rackwright.errors import LabError
from rackwright.lab import cgroup, names
from tests.racks.vm_lab.conftest import ADDRESS, MIB, NODE, Machine

pytestmark = [pytest.mark.lab, pytest.mark.proof]


def ssh(machine: Machine, *argv: str, user: str | None = None) -> subprocess.CompletedProcess[str]:
    command = machine.site.rack.ssh_command(NODE, argv, user)
    return subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False, stdin=subprocess.DEVNULL
    )


@pytest.mark.smoke
def test_ssh_is_strict_from_the_first_connection_on_and_the_kernel_its_own(machine: Machine):
    done = ssh(machine, "id -un; hostname; sudo -n id -u; uname -r")
    assert done.returncode == 0, done.stderr
    user, host, root, kernel = done.stdout.split()
    assert (user, host, root) == ("rack", NODE, "0")
    assert kernel != os.uname().release
    key = machine.on("cut -d ' ' -f 1,2 /etc/ssh/ssh_host_ed25519_key.pub").strip()
    known = (machine.site.folder / ".lab" / "known_hosts").read_text()
    assert f"{NODE},{ADDRESS},10.75." in known
    assert key in known
    assert "StrictHostKeyChecking=yes" in machine.site.rack.ssh_command(NODE)


def test_root_cannot_log_in(machine: Machine):
    done = ssh(machine, "true", user="root")
    assert (done.returncode, "Permission denied (publickey)" in done.stderr) == (255, True), done.stderr


def test_it_is_shaped_as_its_sku(machine: Machine):
    cpus = {
        line.partition(":")[0]: line.partition(":")[2].strip()
        for line in machine.on("LC_ALL=C lscpu").splitlines()
    }
    assert (cpus["CPU(s)"], cpus["Socket(s)"], cpus["Core(s) per socket"]) == ("2", "2", "1")
    assert (cpus["NUMA node0 CPU(s)"], cpus["NUMA node1 CPU(s)"]) == ("0", "1")
    total = int(machine.on("sed -n 's/^MemTotal: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo")) / 1024
    assert MIB * 0.85 < total <= MIB
    disks = json.loads(machine.on("lsblk --json --bytes --nodeps -o NAME,SIZE,SERIAL"))["blockdevices"]
    drives = {disk["serial"]: int(disk["size"]) for disk in disks if disk["name"].startswith("nvme")}
    assert drives == {f"{NODE}-data0": 10**9 // 512 * 512, f"{NODE}-data1": 10**9 // 512 * 512}
    links = json.loads(machine.on("ip -j address"))
    addresses = {
        one["local"]: link["address"]
        for link in links
        for one in link["addr_info"]
        if link["ifname"] != "lo" and one["family"] == "inet"
    }
    spec = machine.site.rack.running_spec.node(NODE)
    sides = ("node", "node1", "node2")
    wanted = [names.mac(machine.name, NODE, side) for side in sides]
    assert addresses == dict(zip(spec.addresses, wanted, strict=True))


def test_no_packet_can_leave(machine: Machine):
    # Its gateway is the rack's bridge, as declared, and that has no way on.
    assert machine.on("ip route show default").startswith("default via 10.76.0.1 ")
    with pytest.raises(LabError, match="100% packet loss"):
        machine.on("LC_ALL=C ping -c 1 -W 5 192.0.2.1")
    links = json.loads(subprocess.check_output(["ip", "-n", f"rw-{machine.name}", "-j", "link"]))
    assert all(re.fullmatch(r"lo|rack0|net-[0-9a-f]{8}|(v|e1|e2)-vm1", link["ifname"]) for link in links), (
        links
    )
    assert subprocess.check_output(["ip", "-n", f"rw-{machine.name}", "route", "show", "default"]) == b""


def test_apt_works_through_the_mirror(machine: Machine):
    output = machine.on("apt-get update")
    assert "Err:" not in output
    assert "Reading package lists..." in output


def test_its_system_is_healthy(machine: Machine):
    assert machine.on("systemctl is-system-running --wait || systemctl --failed --no-legend") == "running\n"


@pytest.mark.smoke
def test_exec_needs_no_sshd_and_a_long_one_leaves_the_machine_ready(machine: Machine):
    machine.lab("fault", "sshd-down")
    with pytest.raises(ConnectionRefusedError):
        machine.banner()
    done = machine.site.cli(
        "lab",
        "exec",
        NODE,
        "--file",
        str(machine.site.file),
        "--",
        "sh",
        "-c",
        "hostname; echo e >&2; exit 5",
        expect=5,
    )
    assert (done.out, done.err) == (f"{NODE}\n", "e\n")
    machine.lab("heal")
    long = machine.site.start("lab", "exec", NODE, "--file", str(machine.site.file), "--", "sleep", "40")
    machine.wait(lambda: "sleep 40" in machine.on("ps -eo args"), "sleep to run")
    assert machine.state() == "ready"
    assert long.process.poll() is None
    assert long.wait(300).status == 0


def test_a_program_that_takes_too_long_is_ended(machine: Machine):
    with pytest.raises(LabError, match=r"on vm1: bash -ec 'exec sleep 12345' took more than 5 s"):
        machine.on("exec sleep 12345", 5)
    machine.wait(lambda: "sleep 12345" not in machine.on("ps -eo args"), "its end")


def test_large_output_is_whole_or_refused(machine: Machine):
    assert len(machine.on("head -c 5000000 /dev/zero | tr '\\0' x")) == 5_000_000
    with pytest.raises(LabError, match="more than the 16 MiB"):
        machine.on("head -c 20000000 /dev/zero | tr '\\0' x")


def test_the_console_is_a_root_shell_on_the_serial_line(machine: Machine):
    ran = machine.site.cli(
        "lab", "console", NODE, "--file", str(machine.site.file), stdin="\n\necho serial-$((6*7)); tty\n"
    )
    assert "serial-42" in ran.out
    assert "/dev/ttyS0" in ran.out
    log = (names.node_state(machine.name, NODE) / "console.log").read_text(errors="replace")
    assert "Linux version" in log


@pytest.mark.smoke
def test_a_reboot_is_another_boot_of_the_same_machine(machine: Machine):
    machine.on("echo kept >/root/kept")
    before, identity = machine.boot(), machine.on("cat /etc/machine-id /etc/ssh/ssh_host_ed25519_key.pub")
    assert machine.lab("reboot") == f"{NODE}: ready\n"
    assert machine.state() == "ready"
    assert machine.boot() != before
    assert machine.on("cat /etc/machine-id /etc/ssh/ssh_host_ed25519_key.pub") == identity
    assert machine.on("cat /root/kept") == "kept\n"
    assert machine.on("stat -c %a /var/lib/rackwright") == "755\n"


def test_a_second_up_leaves_it_alone(machine: Machine):
    boot, pids = machine.boot(), cgroup.pids(cgroup.group(machine.name, NODE))
    machine.site.cli("lab", "up", str(machine.site.file))
    assert machine.boot() == boot
    assert cgroup.pids(cgroup.group(machine.name, NODE)) == pids != []


def test_power(machine: Machine):
    machine.on("echo kept >/root/power; sync")
    before = machine.boot()
    machine.lab("power", "off")
    assert machine.state() == "off"
    with pytest.raises(OSError, match=r"timed out|No route to host"):
        machine.banner()
    machine.lab("power", "on")
    assert machine.state() == "ready"
    assert machine.boot() != before
    assert machine.on("cat /root/power") == "kept\n"
    machine.on("echo 'not synced' >/root/power")
    machine.lab("power", "soft")  # in good order: what was only in memory is on the disk
    assert machine.state() == "off"
    machine.site.cli("lab", "up", str(machine.site.file))
    assert machine.on("cat /root/power") == "not synced\n"
    ran = machine.site.cli("lab", "power", NODE, "reset", "--file", str(machine.site.file), expect=1)
    assert "unknown power action 'reset'" in ran.err


def test_a_snapshot_brings_every_disk_back(machine: Machine):
    first, second = (_drive(machine, number) for number in (0, 1))
    machine.on(f"echo then >/root/state; printf then | dd of={first} conv=fsync status=none")
    machine.lab("snapshot", "before")
    before = machine.boot()
    machine.on(
        f"echo now >/root/state; echo new >/root/new; sync;"
        f"for d in {first} {second}; do printf now- | dd of=$d conv=fsync status=none; done"
    )
    machine.lab("fault", "clock:jump", "86400")
    assert machine.lab("restore", "before") == f"{NODE}: ready\n"
    assert machine.boot() != before
    assert machine.on("cat /root/state; ls /root/new 2>/dev/null || true") == "then\n"
    assert machine.on(f"head -c 4 {_drive(machine, 0)}") == "then"
    assert machine.on(f"head -c 4 {_drive(machine, 1)} | tr '\\0' .") == "...."
    assert machine.faults() == {}
    ran = machine.site.cli("lab", "restore", NODE, "after", "--file", str(machine.site.file), expect=1)
    assert f"node {NODE} has no snapshot 'after'" in ran.err
    assert "it has before" in ran.err


def _drive(machine: Machine, number: int) -> str:
    """The kernel numbers drives as it finds them."""
    return machine.on(f"lsblk -dnpo NAME,SERIAL | awk '$2 == \"{NODE}-data{number}\" {{print $1}}'").strip()
