"""The program itself is interrupted while a node installs something: by Ctrl-C, and by kill -9."""

from __future__ import annotations

import signal
import time

import pytest

from tests.racks.plain.installing import converges, installing, release
from tests.racks.program import Running
from tests.racks.site import Site, operations
from tests.racks.snapshot import Snapshot

pytestmark = pytest.mark.lab

ORPHAN_SECONDS = 240
# Written after the installation: it is still to do.
_LATER = "rm -f /etc/ssh/authorized_keys.d/bob"


def test_ctrl_c_stops_cleanly(site: Site, baseline: dict[str, Snapshot]):
    site.on("worker1", _LATER)
    with installing(site, "worker1") as running:
        running.process.send_signal(signal.SIGINT)
        while "stopping after the current operation" not in running.said():
            assert running.process.poll() is None, running.wait()
            time.sleep(0.1)
        release(site, "worker1")
        ran = running.wait()
    assert ran.status not in (0, -signal.SIGINT), ran
    assert "worker1: failed after " in ran.out
    assert "stopped before it was finished" in ran.out
    assert ran.out.rstrip().endswith("interrupted, run again to finish")
    left = operations(site.plan(2))
    assert ("worker1", "base", "Install the base packages") not in left  # what was begun was finished
    assert ("worker1", "access", "Write the keys of bob") in left
    converges(site, baseline)


@pytest.mark.parametrize("workers", [False, True], ids=["program", "program and workers"])
def test_kill_9_and_resume(site: Site, baseline: dict[str, Snapshot], workers: bool):
    with installing(site, "worker1") as running:
        orphans = running.workers()
        assert orphans
        running.kill(workers=workers)
        assert running.wait().status == -signal.SIGKILL
    run = site.runs()[-1]
    assert (run.state, run.begin["cluster"]) == ("interrupted", site.name)
    reported = site.cli("runs", run.run).out
    assert "not known to have ended: worker1: base: Install the base packages" in reported
    assert f"rackwright resume {run.run}" in reported
    ran = site.cli("resume", run.run, "--yes")
    assert "apply: 2 of 2 nodes are as declared" in ran.out
    converges(site, baseline)
    deadline = time.monotonic() + ORPHAN_SECONDS
    while left := [pid for pid in orphans if Running.is_worker(pid)]:
        assert time.monotonic() < deadline, f"workers {left} are still there"
        time.sleep(0.2)
