"""kill -9 at random moments of an apply, then resume: always the same end state.

RACKWRIGHT_TEST_ROUNDS sets how many rounds there are (8; `make proof SUITE=kill-9` has more), and
RACKWRIGHT_TEST_SEED the moments; the seed is printed with a failure. Rounds go through the stages of an
apply in turn, with and without the workers killed as well.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from rackwright.engine.journal_lines import Run
from rackwright.engine.run_lock import run_lock
from tests.racks.drifts import DAEMONS_AND_KERNEL, FILES_AND_PEOPLE, Drift
from tests.racks.program import Running
from tests.racks.site import Site
from tests.racks.snapshot import USER_TABLES, Snapshot, assert_same, snapshots

pytestmark = pytest.mark.lab

ROUNDS = int(os.environ.get("RACKWRIGHT_TEST_ROUNDS", "8"))
SEED = int(os.environ.get("RACKWRIGHT_TEST_SEED") or random.SystemRandom().randrange(10**6))
_ATTEMPTS = 5
"""An apply may end before it can be killed; then it is tried again."""
_LEAVE_SECONDS = 360
# What runs on a node for us: logins, sudo, the fact helper, a shell that is writing a file.
_OURS = "ps -eo pid,user,args | grep -E '^ *[0-9]+ rack |sudo -n|python3 -IS|base64 -d|sshd.*: rack' | grep -v grep"


@dataclass(frozen=True)
class Stage:
    """A part of an apply: the lines its journal has by then, from the number of changes and a random share."""

    lines: Callable[[int, float], int]
    begun: bool
    """Whether there is a run to resume."""


# A journal has a line for its beginning, one for the plan, and two for each change.
STAGES = {
    "planning": Stage(lambda changes, share: 0, begun=False),
    "agreed": Stage(lambda changes, share: 2, begun=True),
    "midway": Stage(lambda changes, share: 3 + int(share * changes), begun=True),
    "nearly done": Stage(lambda changes, share: 2 + int((0.5 + share / 2) * 2 * changes), begun=True),
}


@dataclass(frozen=True)
class Killed:
    """A program that was killed at its work."""

    run: Run | None
    """Its journal, if it had begun one."""
    orphans: list[int]


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


@pytest.mark.parametrize("number", range(ROUNDS))
def test_killed_at_any_moment(site: Site, baseline: dict[str, Snapshot], number: int):
    stage = list(STAGES)[number % len(STAGES)]
    workers = bool(number // len(STAGES) % 2)
    for attempt in range(_ATTEMPTS):
        rng = random.Random(f"{SEED} {number} {attempt}")
        print(f"RACKWRIGHT_TEST_SEED={SEED}, round {number} ({stage}), attempt {attempt}")
        killed = _kill(site, STAGES[stage], rng, workers=workers)
        if killed is not None:
            break
        site.converge()
    else:
        pytest.fail(f"in {_ATTEMPTS} attempts it was never caught {stage}")
    if killed.run is None:
        site.apply()
    else:
        site.cli("resume", killed.run.run, "--yes")
    site.plan(0)
    assert_same(baseline, snapshots(site), touched=False, but=USER_TABLES)
    with site.here(), run_lock(site.name):
        pass
    _all_leave(site, killed.orphans)


def _kill(site: Site, stage: Stage, rng: random.Random, *, workers: bool) -> Killed | None:
    """Begin an apply of random drifts, and kill it at this stage; nothing if it was not caught there."""
    known = {run.run for run in site.runs()}
    changes = _seeded(site, rng)
    running = site.start("apply", str(site.file), "--yes")
    if stage.begun:
        _wait_for_lines(site, running, known, stage.lines(changes, rng.random()))
        time.sleep(rng.uniform(0, 0.05))
    else:
        time.sleep(rng.uniform(0, 1.5))
    orphans = running.workers()
    running.kill(workers=workers)
    caught = running.wait().status == -signal.SIGKILL
    new = [run for run in site.runs() if run.run not in known and run.begin]
    if not caught or bool(new) != stage.begun or any(run.state != "interrupted" for run in new):
        return None
    return Killed(new[0] if new else None, orphans)


def _wait_for_lines(site: Site, running: Running, known: set[str], count: int) -> None:
    """Wait until the journal has `count` lines or the program has ended."""
    deadline = time.monotonic() + 480
    while running.process.poll() is None:
        run, events = site.latest_events()
        if run not in known and len(events) >= count:
            return
        assert time.monotonic() < deadline, "it neither ended nor went on"
        time.sleep(0.02)


def _all_leave(site: Site, orphans: list[int]) -> None:
    """Workers whose program was killed, and what ran on the nodes for them."""
    deadline = time.monotonic() + _LEAVE_SECONDS
    while True:
        left = {node: site.on(node, f"{_OURS} || :").strip() for node in site.nodes}
        here = [pid for pid in orphans if Running.is_worker(pid)]
        if not here and not any(left.values()):
            return
        assert time.monotonic() < deadline, f"still there: {here}, {left}"
        time.sleep(0.2)
