"""The program is killed while it holds a worker drained; other interruptions are in tests/racks/plain."""

from __future__ import annotations

import pytest

from tests.racks.site import Site
from tests.racks.slurm.conftest import FirstApply
from tests.racks.snapshot import USER_TABLES, assert_same, snapshots

pytestmark = pytest.mark.lab


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
    rack.converge()  # no lock was left
    assert_same(first_apply.baseline, snapshots(rack), touched=False, but=USER_TABLES)
