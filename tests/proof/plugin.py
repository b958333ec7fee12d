"""A pytest plugin (`-p tests.proof.plugin`): notes each outcome and what tests measured, and leaves out what passed before."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.proof.machine import Meter
from tests.proof.progress import ATTEMPT_VARIABLE, ERROR, FAILED, FILE_VARIABLE, PASSED, SKIPPED, Progress

_GRAVITY = (PASSED, SKIPPED, FAILED, ERROR)


class Recorder:
    """Writes to the progress file as each test ends."""

    def __init__(self, progress: Progress, attempt: int) -> None:
        self._progress, self._attempt = progress, attempt
        self._meter = Meter()
        self._outcomes: dict[str, str] = {}

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out the tests that passed in an earlier attempt."""
        passed = self._progress.summary().passed
        done = [item for item in items if item.nodeid in passed]
        if done:
            items[:] = [item for item in items if item.nodeid not in passed]
            config.hook.pytest_deselected(items=done)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be collected is an error of this attempt."""
        if report.failed:
            self._progress.note(self._attempt, self._meter.read(), not_collected=report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The worst of setup, call and teardown is the outcome; teardown is the last of them."""
        outcome = self._outcomes.pop(report.nodeid, PASSED)
        outcome = max(outcome, _outcome(report), key=_GRAVITY.index)
        if report.when != "teardown":
            self._outcomes[report.nodeid] = outcome
            return
        measured = {str(name): str(value) for name, value in report.user_properties}
        self._progress.note(
            self._attempt, self._meter.read(), test=report.nodeid, outcome=outcome, measured=measured
        )


def _outcome(report: pytest.TestReport) -> str:
    if report.failed:
        return FAILED if report.when == "call" else ERROR
    return SKIPPED if report.skipped else PASSED


def pytest_configure(config: pytest.Config) -> None:
    """Only where the runner asks for it."""
    if FILE_VARIABLE in os.environ:
        progress = Progress(Path(os.environ[FILE_VARIABLE]))
        config.pluginmanager.register(Recorder(progress, int(os.environ[ATTEMPT_VARIABLE])), "proof-recorder")
