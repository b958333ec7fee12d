"""From what pytest reports of a site's checks to the results that `rackwright verify` prints."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

from rackwright.claims.check import NotInScope, Warned
from rackwright.status import Status
from rackwright.verify.judge import judge_assertion
from rackwright.verify.pytest_backend import node_in

_PROPERTY = "rackwright"


class Verdicts:
    """Judges each phase of a test where its exception is still an object; the report carries the verdict."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """In the process that runs the test."""
        report = yield
        status, evidence = _judged(report, call)
        if status is not None:
            report.user_properties = [*report.user_properties, (_PROPERTY, [status.value, evidence])]
        return report


def _judged(report: pytest.TestReport, call: pytest.CallInfo[None]) -> tuple[Status | None, str]:
    """The status of one phase; None where another phase decides."""
    expected = getattr(report, "wasxfail", None)
    if call.excinfo is None:
        if call.when != "call":
            return None, ""
        return (Status.FAIL, "it was expected to fail") if report.failed else (Status.PASS, "")
    error = call.excinfo.value
    if expected is not None:
        return Status.WARN, f"an expected failure: {expected or error}"
    if isinstance(error, pytest.skip.Exception | NotInScope):
        return Status.OUT_OF_SCOPE, str(error) or "skipped without a reason"
    if isinstance(error, Warned):
        return Status.WARN, str(error)
    if call.when == "call" and isinstance(error, pytest.fail.Exception):
        return Status.FAIL, str(error)
    if call.when == "call" and isinstance(error, AssertionError):
        return judge_assertion(error)
    message = getattr(error, "message", None) or str(error)
    return Status.UNKNOWN, f"{call.when} of the test: {type(error).__name__}: {message}"


class Results:
    """Writes one JSON line for each test and node; in the main process alone."""

    def __init__(self, file: Path, nodes: frozenset[str]) -> None:
        self._file = file
        self._nodes = nodes
        self._found: dict[str, dict[str, Any]] = {}
        self._begun: set[str] = set()
        self._died: list[Any] = []
        """How each process ended that ended early."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Each collected test is owed a result."""
        self._expect(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:  # noqa: ANN401
        """The same in several processes, where this one collects nothing."""
        self._expect(ids)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:  # noqa: ANN401 - pytest-xdist's
        """A process has ended, with an error if it was not asked to."""
        if error:
            self._died.append(error)

    def _expect(self, ids: Iterable[str]) -> None:
        for nodeid in ids:
            test = nodeid.partition("[")[0]
            self._found.setdefault(
                nodeid,
                {
                    "check": f"{Path(test.partition('::')[0]).name}::{test.partition('::')[2]}",
                    "node": node_in(nodeid, self._nodes),
                    "status": Status.UNKNOWN.value,
                    "evidence": None,
                    "seconds": 0.0,
                },
            )

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self._begun.add(nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file whose tests could not be collected; several processes report it once each."""
        if report.failed:
            lines = [
                line.removeprefix("E").strip()
                for line in report.longreprtext.splitlines()
                if line[:2] == "E "
            ]
            self._found[report.nodeid] = {
                "check": f"the tests of {Path(report.nodeid).name} can be collected",
                "node": None,
                "status": Status.UNKNOWN.value,
                "evidence": "; ".join(lines) or report.longreprtext,
                "seconds": 0.0,
            }

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """What a phase came to; a phase without a verdict leaves the one before."""
        entry = self._found.get(report.nodeid)
        verdicts: list[Any] = [value for name, value in report.user_properties if name == _PROPERTY]
        if entry is None:
            return
        entry["seconds"] += report.duration
        if not verdicts:
            return
        status, evidence = verdicts[-1]
        texts = [str(value) for name, value in report.user_properties if name == "evidence"]
        entry |= {"status": status, "evidence": evidence or "; ".join(texts)}

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        for nodeid, entry in self._found.items():
            if entry["evidence"] is None:
                entry["evidence"] = self._why_unknown(nodeid)
        if self._died and not self._found:
            self._found[""] = {
                "check": "the tests can be collected",
                "node": None,
                "status": Status.UNKNOWN.value,
                "evidence": f"a file of tests ends the process that reads it: {self._died[-1]}",
                "seconds": 0.0,
            }
        lines = [json.dumps(entry) for entry in self._found.values()]
        self._file.write_text("".join(f"{line}\n" for line in lines))

    def _why_unknown(self, nodeid: str) -> str:
        """Why a test has no verdict."""
        if nodeid in self._begun:
            return "the test did not run to its end"
        if self._died:  # pytest-xdist replaces four times as many as it starts
            return f"the test was not run: {len(self._died)} processes died during tests"
        return "the test was not run"
