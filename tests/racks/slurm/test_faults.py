"""Nodes that are off, go off in the middle, or are full: named, the others done, and healed by a re-run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.racks.site import Site, operations
from tests.racks.slurm.conftest import FirstApply
from tests.racks.snapshot import USER_TABLES, assert_same, snapshots

pytestmark = pytest.mark.lab

# A change that takes a while and needs no download that the first apply has not made.
SLOW = "apt-get -qq purge python3-mpi4py python3-numpy openmpi-bin >/dev/null; apt-get -qq -y autoremove >/dev/null"
INSTALL = {"event": "start", "role": "slurm", "name": "Install Slurm"}


def test_a_node_without_power_is_named_and_the_others_are_configured(rack: Site):
    def add(declared: dict[str, Any]) -> None:
        declared["roles"]["tuning"] = {"sysctl": {"net.ipv4.tcp_max_syn_backlog": 5001}}
        declared["roles"]["slurm"]["accounts"]["late"] = {}

    rack.fault("worker1", "kill")
    rack.declare(add)
    assert {node["node"] for node in rack.plan(4)["nodes"] if node["unreachable"]} == {"worker1"}
    ran = rack.apply(4)
    assert "worker1: unreachable: Cannot connect to worker1 (10.77.0.11, port 22)" in ran.out
    assert "apply: 2 of 3 nodes are as declared; not: worker1" in ran.out
    for node in ("head1", "worker2"):
        assert rack.on(node, "sysctl -n net.ipv4.tcp_max_syn_backlog") == "5001\n"
    assert "late" in rack.on("head1", "sacctmgr -nP show account format=account").split()
    rack.heal("worker1")
    rack.apply(0)
    assert rack.on("worker1", "sysctl -n net.ipv4.tcp_max_syn_backlog") == "5001\n"
    assert operations(rack.plan(0)) == set()
    rack.declare(_as_before)
    rack.apply(0)


def _as_before(declared: dict[str, Any]) -> None:
    declared["roles"]["tuning"] = {}
    del declared["roles"]["slurm"]["accounts"]["late"]


def test_power_and_network_fail_in_the_middle(rack: Site, first_apply: FirstApply):
    """worker1 loses its power, worker2 its network for five seconds; and a second apply is refused."""
    for node in ("worker1", "worker2"):
        rack.on(node, SLOW)
    running = rack.start("apply", str(rack.file), "--yes")
    for node in ("worker1", "worker2"):
        rack.wait_for_event(running, node=node, **INSTALL)
    rack.rack.fault("worker1", "kill")
    rack.rack.fault("worker2", "cut")
    refused = rack.cli("apply", str(rack.file), "--yes", expect=1)
    assert refused.err.startswith(f"error: Cluster {rack.name} is locked by ")
    assert f"(pid {running.process.pid}, `rackwright apply {rack.file} --yes`)" in refused.err
    rack.heal("worker2")
    ran = running.wait()
    assert ran.status == 4, ran
    assert "worker1: lost: slurm: Install Slurm: The connection to worker1" in ran.out
    assert "apply: 2 of 3 nodes are as declared; not: worker1" in ran.out
    rack.heal("worker1")
    assert {node for node, _, _ in operations(rack.plan(2))} == {"worker1"}
    _converges(rack, first_apply)


def test_a_full_disk_is_called_that(rack: Site, first_apply: FirstApply):
    rack.on("worker2", "rm /etc/slurm/epilog.sh")
    rack.on("worker1", "rm /etc/slurm/epilog.sh")
    # The node's own health check would drain it, and give blocks back by forgetting what it cannot write.
    rack.on("worker2", "touch /etc/rackwright/health/disabled.d/all")
    rack.on("worker2", "while pgrep -f '[h]ealth-check' >/dev/null; do sleep 0.2; done")
    rack.fault("worker2", "fill-disk")
    try:
        ran = rack.apply(1)
    finally:
        rack.heal("worker2")
        rack.on("worker2", "rm /etc/rackwright/health/disabled.d/all")
    assert "worker2: failed: slurm: Write the runner of epilog scripts: " in ran.out
    assert "No space left on device" in ran.out
    assert "apply: 2 of 3 nodes are as declared; not: worker2" in ran.out
    rack.on("worker1", "test -x /etc/slurm/epilog.sh")
    assert rack.on("worker2", "ls -A /etc/slurm | grep '^\\.' || true") == ""  # nothing half-written stays
    _converges(rack, first_apply)


def test_a_clock_that_is_wrong_on_this_machine_changes_nothing(rack: Site):
    """Watched files are compared on the node alone; a time zone here is nobody's business there."""
    rack.environment["TZ"] = "Pacific/Kiritimati"
    try:
        assert operations(rack.plan(0)) == set()
        assert operations(rack.plan(0, full=True)) == set()
    finally:
        del rack.environment["TZ"]


def _converges(rack: Site, first_apply: FirstApply) -> None:
    rack.converge()
    assert_same(first_apply.baseline, snapshots(rack), touched=False, but=USER_TABLES)
