"""Runs suites one after another and puts each result into the ledger."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rackwright.durations import duration, usual_words
from rackwright.errors import RackwrightError
from tests.proof import ledger as ledgers
from tests.proof.ledger import Counts, Record, Result
from tests.proof.machine import Meter, description
from tests.proof.process import Ended, Limits, run_bounded
from tests.proof.progress import (
    ATTEMPT_VARIABLE,
    ERROR,
    FAILED,
    FILE_VARIABLE,
    PASSED,
    SKIPPED,
    Progress,
    Summary,
)
from tests.proof.suites import SMOKE_TARGET_SECONDS, Suite, Tier
from tests.proof.tree import Tree

ROOT = Path(__file__).resolve().parents[2]
_NOT_INHERITED = ("RACKWRIGHT_TEST_", "RACKWRIGHT_PROOF_", "PYTEST_ADDOPTS")
"""A record states what ran, so the caller's environment must not change it."""
_INTERRUPTED, _NOTHING_TO_RUN = 2, 5
"""pytest's exit statuses after SIGINT, and when no test is left after deselection."""


@dataclass(frozen=True)
class Runner:
    """Where things are, and what happens with what is printed."""

    tree: Tree
    ledger: Path
    cache: Path
    say: Callable[[str], None]
    grace_seconds: float = 120.0

    @contextmanager
    def alone(self) -> Iterator[int]:
        """One run at a time in a checkout: a record has the CPU time of the whole machine."""
        self.cache.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.cache / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(lock)
            yield lock
        finally:
            os.close(lock)

    def run(self, suite: Suite, tier: Tier, lock: int, *, again: bool = False) -> bool:
        """Run what has not passed on these files yet. True when the suite has passed."""
        label = f"{suite.name} ({tier})"
        digest = self.tree.digest(suite, tier)
        old = ledgers.load(self.ledger).record(suite.name, tier)
        if old is not None and old.result is Result.PASSED and old.digest == digest and not again:
            self.say(
                f"{label}: skipped, it passed on {old.date:%Y-%m-%d} on the same files (AGAIN=1 runs it)"
            )
            return True
        progress = Progress(self.cache / f"{suite.name}.{tier}.{digest[:16]}.jsonl")
        if again:
            progress.forget()
        commit, uncommitted = self.tree.commit(), self.tree.uncommitted(suite.paths)
        ended = self._attempt(suite, tier, progress, lock, old)
        summary = progress.summary()
        reason = _reason(ended, summary, suite.limit(tier))
        if self.tree.digest(suite, tier) != digest:
            reason = "Files that the suite depends on changed while it ran."
            progress.forget()
        elif reason is not None and not _can_continue(ended, summary):
            progress.forget()
        record = Record(
            suite=suite.name,
            proves=suite.proves,
            result=_result(ended, reason),
            reason=reason,
            commit=commit,
            uncommitted=uncommitted,
            environment=suite.knobs(tier),
            paths=suite.paths,
            digest=digest,
            **_measured(summary),
        )
        self._store(record, tier)
        self.say(f"{label}: {_verdict(record, tier)}")
        return record.result is Result.PASSED

    def _store(self, record: Record, tier: Tier) -> None:
        """Put it into the ledger; after a pass there is nothing left to continue."""
        ledgers.save(self.ledger, ledgers.load(self.ledger).with_record(record, tier))
        if record.result is Result.PASSED:
            for file in self.cache.glob(f"{record.suite}.{tier}.*.jsonl"):
                file.unlink()

    def log(self, suite: Suite, tier: Tier) -> Path:
        return self.cache / f"{suite.name}.{tier}.log"

    def _attempt(self, suite: Suite, tier: Tier, progress: Progress, lock: int, old: Record | None) -> Ended:
        """One pytest process; the progress file has its usage however it ends."""
        done = len(progress.summary().passed)
        number = progress.begin()
        log = self.log(suite, tier)
        if number == 1:
            log.unlink(missing_ok=True)
        again = f", attempt {number}; passed before and left out: {done}" if number > 1 else ""
        usual = usual_words([old.seconds] if old is not None and old.result is Result.PASSED else [])
        times = ", ".join(filter(None, (f"up to {duration(suite.limit(tier))}", usual)))
        self.say(f"{suite.name} ({tier}): {times}{again}")
        argv = [sys.executable, "-m", "pytest", "-p", "tests.proof.plugin", "-v", *suite.arguments(tier)]
        environment = _environment(suite.knobs(tier)) | {
            FILE_VARIABLE: str(progress.path.absolute()),
            ATTEMPT_VARIABLE: str(number),
        }
        meter = Meter()
        try:
            return run_bounded(
                argv,
                folder=self.tree.root,
                environment=environment,
                log=log,
                limits=Limits(suite.limit(tier), self.grace_seconds),
                keep=lock,
                meanwhile=meter.sample,
            )
        finally:
            progress.note(number, meter.read())


def _lock(descriptor: int) -> None:
    """pytest inherits the descriptor: the lock is held until both the run and its pytest have ended."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RackwrightError(
            "Another proof run is at work in this checkout, or the pytest of one that was killed.",
            hint="wait for it, or end it; `ps -ef | grep tests.proof` finds it",
        ) from None


def _environment(knobs: dict[str, str]) -> dict[str, str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(_NOT_INHERITED)}
    path = os.pathsep.join(filter(None, (str(ROOT), inherited.get("PYTHONPATH"))))
    return {**inherited, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **knobs}


def _measured(summary: Summary) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC),
        "machine": description(),
        "seconds": round(summary.usage.seconds, 1),
        "cpu_seconds": round(summary.usage.cpu_seconds, 1),
        "stolen": round(summary.usage.stolen, 4),
        "memory_mib": summary.usage.memory_mib,
        "measured": summary.measured or None,
        "tests": _counts(summary),
        "attempts": summary.attempts,
        "failed_before": len(summary.failed_ever & summary.passed),
    }


def _counts(summary: Summary) -> Counts:
    return Counts(
        passed=summary.count(PASSED),
        failed=summary.count(FAILED),
        errors=summary.count(ERROR) + len(summary.collection_errors),
        skipped=summary.count(SKIPPED),
    )


def _reason(ended: Ended, summary: Summary, limit_seconds: int) -> str | None:
    """Why it is not a pass; None for a pass."""
    counts = _counts(summary)
    if ended.timed_out:
        return f"Stopped after {duration(limit_seconds)}, the limit of the suite."
    if ended.status < 0:
        return f"pytest was killed by signal {-ended.status}."
    if counts.failed or counts.errors:
        return f"{counts.failed} tests failed, {counts.errors} errors."
    if counts.skipped:
        return f"{counts.skipped} tests were skipped."
    if not counts.passed:
        return f"No test ran; pytest ended with status {ended.status}."
    if ended.status != 0 and (ended.status != _NOTHING_TO_RUN or summary.attempts == 1):
        return f"pytest ended with status {ended.status}."
    return None


def _result(ended: Ended, reason: str | None) -> Result:
    if reason is None:
        return Result.PASSED
    return Result.TIMED_OUT if ended.timed_out else Result.FAILED


def _can_continue(ended: Ended, summary: Summary) -> bool:
    """False where pytest ended by itself and no test explains its status: do not trust what it recorded."""
    counts = _counts(summary)
    explained = bool(counts.failed or counts.errors or counts.skipped)
    return ended.timed_out or ended.status < 0 or ended.status == _INTERRUPTED or explained


def _verdict(record: Record, tier: Tier) -> str:
    took = duration(record.seconds)
    if tier is Tier.SMOKE and record.seconds > SMOKE_TARGET_SECONDS:
        took += f", longer than the target of {duration(SMOKE_TARGET_SECONDS)}"
    said = f"{record.result} in {took}, {record.cpu_seconds:.0f} CPU seconds, {record.stolen:.1%} stolen"
    return said if record.reason is None else f"{said}. {record.reason}"
