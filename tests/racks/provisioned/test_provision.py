"""From machines with a BMC to an accepted cluster, and what keeps an installed machine from being erased."""

from __future__ import annotations

import hashlib

import pytest

from rackwright.install.states import State
from rackwright.lab import racked, vm
from tests.racks.program import Ran
from tests.racks.provisioned.conftest import WORKERS, Machines

pytestmark = [pytest.mark.lab, pytest.mark.proof]


def _is(*states: State, percent: int = 0):
    return lambda record: record.state in states and record.percent >= percent


@pytest.mark.smoke
def test_machines_are_found_as_declared_and_nothing_is_written(bare: Machines):
    before = _disks(bare, "worker2")
    ran = bare.cli("discover", str(bare.file), "--limit", "worker2", "--adopt", str(bare.folder / "found"))
    assert "surveyed" in ran.err
    assert _disks(bare, "worker2") == before
    rows = (bare.folder / "found" / "machines.csv").read_text().splitlines()
    mac = bare.declared["nodes"][1]["macs"][1]
    assert rows[1] == f"worker2,{mac},{bare.serial('worker2')},worker2-root,10.82.0.12"
    assert bare.power("worker2") == "off"


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (("bmc:swap", "worker2"), "its BMC's machine has the MACs"),
        (("bmc:password",), "rejects the password of user admin"),
        (("bmc:hang",), "did not finish the TLS handshake"),
        (("bmc:certificate",), "certificate"),
    ],
)
def test_a_bmc_that_is_wrong_leaves_the_machine_off(bare: Machines, fault: tuple[str, ...], expected: str):
    before = bare.record("worker1")
    bare.rack.fault("worker1", *fault)
    try:
        ran = bare.install("worker1", expect=None)
        assert ran.status in (1, 3)
        assert expected in ran.err, ran
        assert bare.record("worker1") == before
        assert not bare.console("worker1")
    finally:
        bare.rack.heal("worker1")


def test_three_machines_become_an_accepted_cluster(provisioned: tuple[Machines, Ran]):
    site, ran = provisioned
    assert "ACCEPTED" in ran.out
    assert {site.record(node).state for node in WORKERS} == {State.READY}
    said = site.on("head1", "cd /tmp; runuser -u ada -- srun -N3 hostname")
    assert sorted(said.split()) == list(WORKERS)


def test_the_token_is_nowhere_on_a_running_node(provisioned: tuple[Machines, Ran]):
    site, _ = provisioned
    for node in WORKERS:
        words = site.on(node, "cat /proc/cmdline").split()
        assert [word for word in words if word.startswith("rackwright.")] == [
            f"rackwright.run={site.record(node).run}"
        ]
        assert "rackwright" not in site.on(node, "ls /").split()  # where the agent's boot medium had it
        assert not racked.medium(site.name, node).exists()
    assert not list((site.state / "rackwright" / site.name / "install" / "media").glob("*.iso"))


def test_secure_boot_is_on_and_refuses_an_unsigned_module(provisioned: tuple[Machines, Ran]):
    site, _ = provisioned
    assert "secure boot enabled" in site.on("worker1", "dmesg | grep -i 'secure boot enabled'").lower()
    # a module of the kernel's without its signature, which ends with a marker (Documentation/admin-guide/module-signing)
    refused = site.on(
        "worker1",
        "python3 - $(find /lib/modules/$(uname -r) -name dummy.ko.xz) <<'END'\n"
        "import lzma, sys\n"
        "data = lzma.open(sys.argv[1]).read()\n"
        "open('/tmp/dummy.ko', 'wb').write(data)\n"
        "marker = b'~Module signature appended~\\n'\n"
        "assert data.endswith(marker)\n"
        "size = int.from_bytes(data[-len(marker) - 4:-len(marker)], 'big')\n"
        "open('/tmp/unsigned.ko', 'wb').write(data[:-len(marker) - 12 - size])\n"
        "END\n"
        "insmod /tmp/unsigned.ko 2>&1 || true; insmod /tmp/dummy.ko && rmmod dummy && echo signed loads",
    )
    assert "signed loads" in refused
    assert "Key was rejected by service" in refused or "Operation not permitted" in refused, refused


def test_a_second_provision_installs_nothing_and_changes_nothing(provisioned: tuple[Machines, Ran]):
    site, _ = provisioned
    runs = {node: site.record(node).run for node in WORKERS}
    ran = site.cli("provision", str(site.file), "--yes")
    assert "every node that declares an installation is ready" in ran.err
    assert {node: site.record(node).run for node in WORKERS} == runs
    assert "ACCEPTED" in ran.out
    site.plan(0)


def test_a_running_node_is_never_reset(provisioned: tuple[Machines, Ran]):
    site, _ = provisioned
    boot = site.on("worker1", "cat /proc/sys/kernel/random/boot_id")
    typed = ("--reinstall", f"worker1={site.serial('worker1')}")
    ran = site.install("worker1", *typed, expect=3)
    for reason in ("its power is on", "its address answers on the SSH port"):
        assert reason in ran.out.replace("\n", " ") or reason in ran.err
    assert site.on("worker1", "cat /proc/sys/kernel/random/boot_id") == boot
    assert site.record("worker1").state is State.READY


def test_an_installed_machine_is_erased_only_by_its_serials_and_survives_cuts(
    provisioned: tuple[Machines, Ran],
):
    """Reinstalls one node: held for machine and disk, power cut at 40 %, then the head killed at 40 %."""
    site, _ = provisioned
    site.rack.power("worker3", "soft")
    disks = _disks(site, "worker3")
    assert "it is already installed" in site.install("worker3", expect=3).err
    wrong = site.install("worker3", "--reinstall", "worker3=RW-another", expect=3)
    assert "is not its serial number" in wrong.err
    assert _disks(site, "worker3") == disks

    typed = ("--reinstall", f"worker3={site.serial('worker3')}")
    running = site.start_install("worker3", *typed)
    held = site.wait_for("worker3", _is(State.HELD))
    assert held.was_ready
    assert list(held.held) == ["worker3-root"]
    assert "is another install running?" in site.install("worker3", *typed, expect=1).err
    refused = site.cli("install", str(site.file), "--erase", "worker3=worker3-data0", expect=1)
    assert "does not wait for a confirmation of disk worker3-data0" in refused.err
    site.cli("install", str(site.file), "--erase", "worker3=worker3-root")

    site.wait_for("worker3", _is(State.INSTALLING, percent=40))
    site.rack.power("worker3", "off")
    assert running.wait(600).status == 1
    failed = site.record("worker3")
    assert failed.state is State.FAILED
    assert failed.confirmed == {}
    assert failed.was_ready

    # what was left half-written knows itself: no confirmation is asked for; the machine's own serial still is
    running = site.start_install("worker3", *typed)
    site.wait_for("worker3", _is(State.INSTALLING, percent=40))
    run = site.record("worker3").run
    running.process.kill()
    running.wait(60)
    site.install("worker3")
    ready = site.record("worker3")
    assert (ready.state, ready.run) == (State.READY, run)
    assert f"rackwright.run={run}" in site.on("worker3", "cat /proc/cmdline")
    site.converge()


def _disks(site: Machines, node: str) -> str:
    """Digest of the disk that would be written."""
    path = vm.disk_folder(site.name, node) / "root.qcow2"
    return hashlib.sha256(path.read_bytes()).hexdigest()
