"""One collective on some nodes: run through the workload manager and judged, the floor excepted."""

from __future__ import annotations

import time
from collections.abc import Callable

from rackwright.burnin.engines import Engine
from rackwright.burnin.expectation import judge_table
from rackwright.burnin.finding import Finding
from rackwright.burnin.measurement import Measurement
from rackwright.burnin.table import NcclTable, Unreadable, parse_nccl_tests
from rackwright.model.ranges import fold
from rackwright.status import Status
from rackwright.workload.protocol import Manager

Progress = Callable[[str], None]


class Measurer:
    """Runs collectives with one engine."""

    def __init__(self, engine: Engine, manager: Manager, progress: Progress) -> None:
        self.engine = engine
        self.manager = manager
        self.progress = progress

    def measure(self, collective: str, nodes: tuple[str, ...], smallest: int, largest: int) -> Measurement:
        """Run one collective on some nodes; what its output lacks or contradicts is in the findings."""
        self.progress(f"{collective} on {fold(nodes)}")
        begun = time.monotonic()
        output = self.manager.run(self.engine.step(collective, nodes, smallest, largest))
        table: NcclTable | None = None
        findings: list[Finding] = []
        try:
            table = parse_nccl_tests(output.text)
            findings += judge_table(table, self.engine.expectation(collective, nodes, smallest, largest))
            if transport := self.engine.judge_transport(output.text, len(nodes)):
                findings.append(transport)
        except Unreadable as error:
            findings.append(Finding(Status.UNKNOWN, f"the output cannot be read: {error}"))
        if output.problem is not None:
            findings.append(Finding(Status.UNKNOWN, output.problem))
        seconds = time.monotonic() - begun
        return Measurement(collective, table, tuple(findings), output.text, seconds)


def trouble_of(measured: Measurement) -> str | None:
    """Why a measurement gives no sound figure, or None."""
    against = [found.text for found in measured.findings if found.status in (Status.FAIL, Status.UNKNOWN)]
    if against:
        return "; ".join(against)
    return None if measured.table is not None and measured.table.largest is not None else "no figure"
