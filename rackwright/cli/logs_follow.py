"""rackwright logs --follow: repeats the query until Ctrl-C or the end of the job."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import replace

from rackwright.cli.lines import say
from rackwright.cli.logs_view import show_lines, show_unknown
from rackwright.errors import ConnectionFailed, RackwrightError, WorkloadError
from rackwright.logs.ask import CLOCKS_DIFFER_SECONDS, JOB_AFTER_SECONDS, LogQuery, read_logs, trace_of
from rackwright.logs.report import LINES_MAX, Line, LogsReport
from rackwright.model.cluster import Cluster
from rackwright.ssh import RootShell
from rackwright.workload.protocol import JobTrace

EVERY_SECONDS = 2.0
TRACE_SECONDS = 60.0
"""How often the workload manager is asked about a job that has not ended."""
LATE_SECONDS = 5 * CLOCKS_DIFFER_SECONDS
"""A line that arrives late by so much is still shown."""
_AGE = re.compile(r"[0-9]+ (min|h|d) old")
_Key = tuple[str, float, int | None, str]


class Follower:
    """What was shown so far, and what is asked next."""

    def __init__(self, cluster: Cluster, question: LogQuery, report: LogsReport, shell: RootShell) -> None:
        self.report = report
        """The last answer."""
        self._cluster, self._question, self._shell = cluster, replace(question, lines=LINES_MAX), shell
        self._trace, self._trace_at = report.trace, time.time()
        self._seen = {_key(line): line.at for line in report.lines}
        self._answered_at = time.time()
        # what --since or --lines left out at first stays left out
        self._since = report.lines[0].at if report.more and report.lines else report.since
        self._notice = ""

    def run(self) -> None:
        """Show new lines until the job has ended and its last lines have had the time to arrive; forever without a job."""
        while not _is_over(self._trace):
            time.sleep(EVERY_SECONDS)
            try:
                self._renew_trace()
                self._ask()
            except (ConnectionFailed, WorkloadError) as error:
                self._say_once(error)
            else:
                self._notice = ""
        say(f"job {self._question.job} has ended", err=True)

    def _renew_trace(self) -> None:
        """A running job's end, and the nodes of one that waited, are not known before."""
        trace, job = self._trace, self._question.job
        if job is None or trace is None or trace.ended is not None:
            return
        if time.time() - self._trace_at >= TRACE_SECONDS:
            self._trace_at = time.time()
            self._trace = trace_of(self._cluster, job, self._shell)

    def _ask(self) -> None:
        now = time.time()
        start = max(self._since, self._answered_at - LATE_SECONDS)
        question = replace(self._question, since=start, until=None)
        report = read_logs(self._cluster, question, self._shell, self._trace)
        show_lines([line for line in report.lines if _key(line) not in self._seen])
        if report.more and not self.report.more:
            say(f"more than {LINES_MAX} new lines: older ones were left out; ask for less", err=True)
        known = _ageless(self.report.unknown)
        show_unknown([text for text in report.unknown if not _ageless([text]) <= known])
        self._seen = {key: at for key, at in self._seen.items() if at >= start}
        self._seen |= {_key(line): line.at for line in report.lines}
        self.report, self._answered_at = report, now

    def _say_once(self, error: RackwrightError) -> None:
        if error.message != self._notice:
            self._notice = error.message
            say(f"{error.message} Trying again; Ctrl-C ends this.", err=True)


def _is_over(trace: JobTrace | None) -> bool:
    if trace is None or trace.ended is None:
        return False
    return time.time() > trace.ended + JOB_AFTER_SECONDS + CLOCKS_DIFFER_SECONDS


def _key(line: Line) -> _Key:
    return line.node, line.at, line.pid, line.message


def _ageless(texts: Iterable[str]) -> set[str]:
    """Doubts but for ages in them, which change every minute."""
    return {_AGE.sub("old", text) for text in texts}
