"""Runs one collective on some nodes through the workload manager and judges it, except for the floor."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from rackwright.burnin.engines import Engine, Groups
from rackwright.burnin.expectation import Expectation, judge_table
from rackwright.burnin.finding import Finding
from rackwright.burnin.measurement import Measurement
from rackwright.burnin.table import NcclTable, Unreadable, parse_nccl_tests
from rackwright.model.ranges import fold
from rackwright.status import Status
from rackwright.workload.protocol import JobStep, Manager

Progress = Callable[[str], None]


class Measurer:
    """Runs collectives with one engine."""

    def __init__(
        self,
        engine: Engine,
        manager: Manager,
        progress: Progress,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment`: variables beyond those of the engine."""
        self.engine = engine
        self.manager = manager
        self.progress = progress
        self._environment = dict(environment or {})

    def with_environment(self, environment: Mapping[str, str]) -> Measurer:
        """The same with more variables."""
        return Measurer(self.engine, self.manager, self.progress, {**self._environment, **environment})

    def measure(self, collective: str, nodes: tuple[str, ...], smallest: int, largest: int) -> Measurement:
        """Run one collective on some nodes; problems with its output are in the findings."""
        self.progress(f"{collective} on {fold(nodes)}")
        step = self.engine.step(collective, nodes, smallest, largest)
        return self._run(step, self.engine.expectation(collective, nodes, smallest, largest), len(nodes))

    def measure_groups(self, collective: str, groups: Groups, smallest: int, largest: int) -> Measurement:
        """The same within several groups of nodes in parallel; the figures are those of the slowest group."""
        step, expected = self.engine.side_by_side(collective, groups, smallest, largest)
        self.progress(f"{collective} within {len(groups)} groups of {fold(step.nodes)}")
        return self._run(step, expected, len(groups[0]))

    def _run(self, step: JobStep, expected: Expectation, together: int) -> Measurement:
        begun = time.monotonic()
        if self._environment:
            step = replace(step, environment={**step.environment, **self._environment})
        output = self.manager.run(step)
        table: NcclTable | None = None
        findings: list[Finding] = []
        try:
            table = parse_nccl_tests(output.text)
            findings += judge_table(table, expected)
            findings += self.engine.judge_transport(output.text, expected.nodes, together)
        except Unreadable as error:
            findings.append(Finding(Status.UNKNOWN, f"the output cannot be read: {error}"))
        if output.problem is not None:
            findings.append(Finding(Status.UNKNOWN, output.problem))
        seconds = time.monotonic() - begun
        return Measurement(expected.collective, table, tuple(findings), output.text, seconds)


def trouble_of(measured: Measurement) -> str | None:
    """The reason why a measurement has no sound figure, or None."""
    against = [found.text for found in measured.findings if found.status in (Status.FAIL, Status.UNKNOWN)]
    if against:
        return "; ".join(against)
    return None if measured.table is not None and measured.table.largest is not None else "no figure"
