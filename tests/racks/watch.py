"""What Slurm and the nodes themselves know of their health."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable
from typing import Any

from rackwright.health.guard import places
from rackwright.plan.node_plan import NodePlan
from rackwright.why.ask import Explanation, why
from rackwright.workload.slurm.output import SINFO, Row, parse_rows
from tests.racks.site import Site

PATIENCE = 480.0
"""Seconds for what takes a few on a quiet machine."""
WORKERS = ("worker1", "worker2")


class Watch:
    """The rack. The tests break nodes and watch; nothing of rackwright runs while a node drains itself."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def on(self, node: str, script: str) -> str:
        return self.site.on(node, script)

    def fault(self, node: str, kind: str) -> None:
        self.site.fault(node, kind)

    def heal(self, node: str) -> None:
        self.site.heal(node)

    # What Slurm has

    def rows(self) -> dict[str, Row]:
        """Every node of the one partition."""
        return {row.node: row for row in parse_rows(self.on("head1", shlex.join(SINFO)))}

    def drained(self, node: str, *words: str) -> Row:
        """Wait until a node is drained by its health check with these words in the reason, and reports it itself."""
        row = self.until(
            node, lambda row: row.drained_by_health and all(word in row.reason for word in words), f"{words}"
        )
        self._wrote_down(node, drained=True)
        return row

    def in_service(self, node: str) -> Row:
        """Wait until a node takes jobs and has no drain of its health check."""
        row = self.until(node, lambda row: row.state in ("idle", "mixed", "allocated"), "in service")
        self._wrote_down(node, drained=False)
        return row

    def _wrote_down(self, node: str, *, drained: bool) -> None:
        """Wait for the end of a pass: it acts first, then writes what it saw and did, the metrics last."""
        deadline = time.monotonic() + PATIENCE
        look = f"grep -c '^rackwright_health_drained {int(drained)}$' {places.METRICS} || :"
        while self.on(node, look).strip() != "1":
            assert time.monotonic() < deadline, f"{node} does not write down that drained is {drained}"
            time.sleep(0.1)

    def until(self, node: str, wanted: Callable[[Row], bool], what: str) -> Row:
        deadline = time.monotonic() + PATIENCE
        while not wanted(row := self.rows()[node]):
            assert time.monotonic() < deadline, f"{node} is not {what}: {row}; {self.last(node)['why']}"
            time.sleep(0.5)
        return row

    # What the node has

    def last(self, node: str) -> dict[str, Any]:
        """Its last pass."""
        reported: dict[str, Any] = json.loads(self.on(node, f"cat {places.LAST}"))
        return reported

    def passes(self, node: str, count: int) -> list[dict[str, Any]]:
        """The next passes of Slurm's health check on a node that begin from now on."""
        seen: dict[float, dict[str, Any]] = {}
        begun, deadline = time.time(), time.monotonic() + PATIENCE
        while len(seen) < count:
            assert time.monotonic() < deadline, f"{node} has not looked at itself for {PATIENCE} s"
            time.sleep(0.4)
            last = self.last(node)
            if last["at"] - last["seconds"] > begun and last["mode"] == "check":
                seen[last["at"]] = last
        return list(seen.values())

    def metric(self, node: str, name: str) -> float:
        text = self.on(node, f"cat {places.METRICS}")
        found = re.search(rf"^rackwright_health_{name} (\S+)$", text, re.MULTILINE)
        assert found, text
        return float(found[1])

    def why(self, node: str) -> Explanation:
        """`rackwright why` without its plan, which costs seconds and is asked for once."""
        cluster = self.site.cluster
        with self.site.here():
            return why(cluster, cluster.by_name[node], self.site.file, planner=lambda _, name: NodePlan(name))
