"""Two operators on one cluster: refused while the other runs, and able to finish what the other could not."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from rackwright.engine.head_lock import SILENT_SECONDS
from tests.racks.program import Running
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]

# Makes the restart of a daemon necessary, which is disruptive: the worker is drained for it.
_DRIFT = "touch /etc/chrony/chrony.conf"


@contextmanager
def job_on(site: Site, *workers: str) -> Iterator[None]:
    """A job on each of these workers, for which a run that drains them has to wait."""
    for worker in workers:
        site.on("head1", f"cd /tmp; sbatch --quiet -o /dev/null -w {worker} --wrap 'sleep 900'")
    wait_until(lambda: site.on("head1", "squeue -h -t R -o %N").split() == list(workers))
    try:
        yield
    finally:
        site.on(
            "head1",
            'scancel --user=root; for i in $(seq 60); do [ -z "$(squeue -h)" ] && break; sleep 1; done',
        )


def wait_until(true: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.5)


def state_of(site: Site, worker: str) -> str:
    return site.on("head1", f"sinfo -N -h -n {worker} -o '%T %E'").strip()


def draining(site: Site, *drifted: str) -> Running:
    """An apply that has drained a worker and waits for its job."""
    for worker in drifted:
        site.on(worker, _DRIFT)
    running = site.start("apply", str(site.file), "--yes")
    site.wait_for_event(running, event="drain")
    wait_until(lambda: "drain" in state_of(site, drifted[0]))
    return running


@pytest.fixture
def killed(site: Site) -> str:
    """A run of the first operator that was killed, workers and all, while it held worker1 drained."""
    with job_on(site, "worker1"):
        running = draining(site, "worker1")
        running.kill(workers=True)
        running.wait()
    return site.runs()[-1].run


@pytest.mark.smoke
def test_a_second_operator_is_refused_while_the_first_changes_the_cluster(site: Site, second: Site):
    with job_on(site, "worker1"):
        running = draining(site, "worker1")
        run = site.runs()[-1]
        refused = second.apply(expect=1)
        assert f"locked on head1 by {run.by}" in refused.err
        assert f"run {run.run}" in refused.err
        assert "rackwright apply" in refused.err
        assert "Traceback" not in refused.err
        listed = second.cli("runs", str(second.file)).out
        assert re.search(rf"{run.run} +\S+ +running", listed)
        second.cli("plan", str(second.file), expect=2)  # a plan changes nothing and takes no lock
        record = site.on("head1", f"su -s /bin/sh nobody -c 'cat /run/rackwright/{site.name}.run'")
        assert run.run in record, "every user of the head may read who has it"
        site.on("head1", f"! su -s /bin/sh nobody -c 'flock -n /run/rackwright/{site.name}.lock true'")
        refused = second.cli("resume", run.run, str(second.file), "--yes", expect=1)
        assert "is still running" in refused.err
    assert running.wait().status == 0
    second.cli("apply", str(second.file), "--yes")
    assert second.plan(0)["nodes"]


def test_a_second_operator_finishes_a_killed_run_and_puts_its_worker_back(
    site: Site, second: Site, killed: str
):
    listed = second.cli("runs", str(second.file)).out
    assert re.search(rf"{killed} +\S+ +interrupted", listed)
    assert (
        f"worker1: left drained by run {killed}; put back by: rackwright resume {killed} {second.file}"
        in listed
    )
    assert f"rackwright: {killed}" in state_of(site, "worker1")
    assert f"Run {killed} was not found" in second.cli("resume", killed, expect=1).err
    assert "after confirmation" in second.cli("resume", killed, str(second.file), expect=1).err
    ran = second.cli("resume", killed, str(second.file), "--yes")
    assert f"worker1: back in service, drained by run {killed}" in ran.err
    assert state_of(site, "worker1").startswith("idle")
    assert "left drained" not in second.cli("runs", str(second.file)).out
    site.converge()


def test_a_plain_apply_of_another_operator_puts_it_back_too(site: Site, second: Site, killed: str):
    ran = second.apply(0)
    assert f"worker1: back in service, drained by run {killed}" in ran.err
    assert state_of(site, "worker1").startswith("idle")


def test_a_worker_that_another_run_left_drained_and_this_one_leaves_alone_is_named(
    site: Site, second: Site, killed: str
):
    site.on("worker2", "rm /etc/motd; touch /etc/chrony/chrony.conf")
    ran = second.apply(0, "--limit", "worker2")
    assert f"worker1: still drained by run {killed}" in ran.err
    second.cli("resume", killed, str(second.file), "--yes")
    assert state_of(site, "worker1").startswith("idle")


def test_a_run_that_is_stopped_loses_the_lock_and_begins_nothing_when_it_goes_on(site: Site, second: Site):
    """As after a network cut or with a laptop that was asleep."""
    with job_on(site, "worker1"):
        running = draining(site, "worker1")
        os.kill(running.process.pid, signal.SIGSTOP)
    time.sleep(SILENT_SECONDS + 5)
    try:
        first = site.runs()[-1].run
        ran = second.apply(0)
        assert f"worker1: back in service, drained by run {first}" in ran.err
        site.on("worker1", _DRIFT)  # what the first run could still repair, if it went on
    finally:
        os.kill(running.process.pid, signal.SIGCONT)
    ran = running.wait()
    assert ran.status == 1
    assert "the run lost its lock" in ran.err
    assert second.runs()[-1].run in ran.err
    assert state_of(site, "worker1").startswith("idle")
    second.plan(2)
    second.apply(0)


def test_a_killed_run_whose_state_files_a_power_cut_damaged_is_resumed(site: Site, killed: str):
    state = site.state / "rackwright" / site.name
    damaged = [path for path in state.rglob("*") if path.is_file() and path.stem != killed]
    assert len(damaged) > 3
    for number, path in enumerate(damaged):
        content = path.read_bytes()
        half = len(content) // 2
        path.write_bytes((content[:half], content[:half] + bytes(len(content) - half), b"")[number % 3])
    journal = state / "runs" / f"{killed}.jsonl"
    journal.write_bytes(journal.read_bytes()[:-40] + bytes(40))
    assert re.search(rf"{killed} +\S+ +interrupted", site.cli("runs").out)
    site.cli("drift", str(site.file), expect=2)
    ran = site.cli("resume", killed, "--yes")
    assert "Traceback" not in ran.err
    assert state_of(site, "worker1").startswith("idle")
    site.plan(0)
