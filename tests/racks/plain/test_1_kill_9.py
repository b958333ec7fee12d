"""kill -9 at twenty random moments of an apply, then resume: always the same end state.

RACKWRIGHT_TEST_SEED sets the moments; what is used is printed with a failure.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from rackwright.engine.journal import Run, runs
from rackwright.engine.lock import run_lock
from tests.racks.slurm.drifts import DAEMONS_AND_KERNEL, FILES_AND_PEOPLE, Drift
from tests.racks.slurm.site import Running, Site
from tests.racks.slurm.snapshot import USER_TABLES, Snapshot, assert_same, snapshots

pytestmark = pytest.mark.lab

ROUNDS = 20
EARLY = 4
"""Rounds in which the program is killed before it has begun to change anything."""
SEED = int(os.environ.get("RACKWRIGHT_TEST_SEED") or random.SystemRandom().randrange(10**6))
_LEAVE_SECONDS = 90
# What runs on a node for us: logins, sudo, the fact helper, a shell that is writing a file.
_OURS = "ps -eo pid,user,args | grep -E '^ *[0-9]+ rack |sudo -n|python3 -IS|base64 -d|sshd.*: rack' | grep -v grep"
_interrupted: list[bool] = []


def _quick(site: Site) -> list[Drift]:
    """Drifts of roles this rack has that cost milliseconds to repair, each on each node."""
    roles = set(site.declared["roles"])
    mine = [
        drift
        for drift in FILES_AND_PEOPLE + DAEMONS_AND_KERNEL
        if drift.role in roles and "apt-get" not in drift.by_hand and "worker2" not in drift.by_hand
    ]
    return [replace(drift, node=node) for drift in mine for node in site.nodes]


def _seeded(site: Site, rng: random.Random) -> int:
    """Ten to twenty things done to the nodes by hand; how many."""
    chosen: dict[tuple[str, str], Drift] = {}
    for drift in rng.sample(_quick(site), rng.randint(10, 20)):
        chosen[drift.node, drift.target] = drift
    for node in site.nodes:
        site.on(node, "\n".join(drift.by_hand for drift in chosen.values() if drift.node == node) or ":")
    return len(chosen)


@pytest.fixture(autouse=True)
def _same_state_folder(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Journals are read here as `rackwright runs` reads them, all the time."""
    monkeypatch.setenv("XDG_STATE_HOME", str(site.state))


@pytest.mark.parametrize("number", range(ROUNDS))
def test_killed_at_any_moment(site: Site, baseline: dict[str, Snapshot], number: int):
    rng = random.Random(f"{SEED} {number}")
    print(f"RACKWRIGHT_TEST_SEED={SEED}, round {number}")
    known = len(runs())
    changes = _seeded(site, rng)
    running = site.start("apply", str(site.file), "--yes")
    if number < EARLY:
        time.sleep(rng.uniform(0, 2))
    else:
        _wait_for_events(running, known, rng.randint(1, 2 * changes + 2))
        time.sleep(rng.uniform(0, 0.05))
    orphans = running.workers()
    running.kill(workers=bool(number % 2))
    killed = running.wait().status == -signal.SIGKILL
    new = runs()[known:]
    _interrupted.append(killed and bool(new))
    for run in new:
        said = site.cli("runs", run.run, expect=0).out
        assert (bool(run.begin) and run.state in ("interrupted", "failed")) == (
            f"rackwright resume {run.run}" in said
        )
    if killed and new and new[0].begin:
        site.cli("resume", new[0].run, "--yes", expect=0)
    else:
        site.apply()
    assert site.cli("plan", str(site.file)).out.strip() == "plan: nothing to change on 2 of 2 nodes"
    assert_same(baseline, snapshots(site), touched=False, but=USER_TABLES)
    with run_lock(site.name):
        pass
    _all_leave(site, orphans)


def test_that_was_in_the_middle_of_something():
    assert sum(_interrupted) >= (len(_interrupted) - EARLY) // 2, f"seed {SEED}: {_interrupted}"


def _wait_for_events(running: Running, known: int, count: int) -> None:
    """Until the journal has so many lines, or the program has ended."""
    deadline = time.monotonic() + 120
    while running.process.poll() is None and sum(len(run.events) for run in _new(known)) < count:
        assert time.monotonic() < deadline, "it neither ended nor went on"
        time.sleep(0.01)


def _new(known: int) -> Iterator[Run]:
    for run in runs()[known:]:
        assert run.state in ("running", "finished", "interrupted", "failed")
        yield run


def _all_leave(site: Site, orphans: list[int]) -> None:
    """Workers whose program was killed, and whatever ran on the nodes for them."""
    deadline = time.monotonic() + _LEAVE_SECONDS
    while True:
        left = {node: site.on(node, f"{_OURS} || :").strip() for node in site.nodes}
        here = [pid for pid in orphans if Running.is_worker(pid)]
        if not here and not any(left.values()):
            return
        assert time.monotonic() < deadline, f"still there: {here}, {left}"
        time.sleep(0.2)
