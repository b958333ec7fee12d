"""The program itself is interrupted: by Ctrl-C, by kill -9, with and without its workers."""

from __future__ import annotations

import random
import signal
import time

import pytest

from tests.racks.site import Running, Site, operations
from tests.racks.slurm.conftest import FirstApply
from tests.racks.slurm.test_faults import INSTALL, SLOW
from tests.racks.snapshot import USER_TABLES, assert_same, snapshots

pytestmark = pytest.mark.lab

# Quick ones before and after the slow one, so that something is done, under way, and still to do.
BROKEN = f"rm /etc/timezone /etc/slurm/prolog.sh /etc/logrotate.d/slurmd; {SLOW}"
ORPHAN_SECONDS = 240


def test_ctrl_c_stops_cleanly(rack: Site, first_apply: FirstApply):
    rack.on("worker2", BROKEN)
    running = rack.start("apply", str(rack.file), "--yes")
    rack.wait_for_event(running, node="worker2", **INSTALL)
    running.process.send_signal(signal.SIGINT)
    ran = running.wait()
    assert ran.status not in (0, -signal.SIGINT), ran
    assert "stopping after the operation at hand" in ran.err
    assert "worker2: failed after 3 changes: stopped before it was finished" in ran.out
    assert ran.out.rstrip().endswith("not: worker2; interrupted, run again to finish")
    left = operations(rack.plan(2))
    assert ("worker2", "slurm", "Install Slurm") not in left  # what was begun was finished
    assert ("worker2", "slurm", "Rotate the log of slurmd") in left
    _ends_as_after_the_first_apply(rack, first_apply)


@pytest.mark.parametrize("workers", [False, True], ids=["program", "program and workers"])
def test_kill_9_and_resume(rack: Site, first_apply: FirstApply, workers: bool):
    rack.on("worker2", BROKEN)
    rack.on("worker1", BROKEN)
    running = rack.start("apply", str(rack.file), "--yes")
    rack.wait_for_event(running, node="worker2", **INSTALL)
    time.sleep(random.Random(workers).uniform(0, 2))
    orphans = running.workers()
    assert orphans
    running.kill(workers=workers)
    assert running.wait().status == -signal.SIGKILL
    run = rack.runs()[-1]
    assert (run.state, run.begin["cluster"]) == ("interrupted", rack.name)
    assert "not known to have ended: worker2: slurm: Install Slurm" in rack.cli("runs", run.run).out
    ran = rack.cli("resume", run.run, "--yes", expect=0)
    assert "apply: 3 of 3 nodes are as declared" in ran.out
    _ends_as_after_the_first_apply(rack, first_apply)
    _are_gone(orphans)


def test_a_worker_that_a_killed_run_had_drained_goes_back_into_service(rack: Site, first_apply: FirstApply):
    rack.on("worker1", "touch /etc/chrony/chrony.conf")  # its restart is disruptive
    running = rack.start("apply", str(rack.file), "--yes")
    rack.wait_for_event(running, event="drained")
    running.kill(workers=True)
    running.wait()
    run = rack.runs()[-1]
    reason = "sinfo -N -h -n worker1 -o '%T %E'"
    assert f"rackwright: {run.run}" in rack.on("head1", reason)
    assert rack.on("head1", reason).startswith("drain")
    ran = rack.cli("resume", run.run, "--yes", expect=0)
    assert f"worker1: back in service, drained by run {run.run}" in ran.err
    assert rack.on("head1", reason).startswith("idle")
    assert "back in service" not in rack.apply(0).err
    _ends_as_after_the_first_apply(rack, first_apply)


def _are_gone(pids: list[int]) -> None:
    """Workers whose program was killed finish their operation and leave."""
    deadline = time.monotonic() + ORPHAN_SECONDS
    while left := [pid for pid in pids if Running.is_worker(pid)]:
        assert time.monotonic() < deadline, f"workers {left} are still there"
        time.sleep(0.2)


def _ends_as_after_the_first_apply(rack: Site, first_apply: FirstApply) -> None:
    rack.converge()  # no lock was left
    assert_same(first_apply.baseline, snapshots(rack), touched=False, but=USER_TABLES)
