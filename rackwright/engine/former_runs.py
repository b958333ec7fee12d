"""How long former runs took, by their journals."""

from __future__ import annotations

from dataclasses import dataclass, field

from rackwright.durations import KEPT
from rackwright.engine.journal import newest_runs
from rackwright.engine.journal_lines import Run

_MAX_BYTES = 8 << 20
"""Of one journal: a longer one would delay the run that asks."""


def whole(nodes: int) -> str:
    """The step that is a whole run with changes on this number of nodes, from its first wave to its end."""
    return f"changes on {nodes} nodes"


@dataclass
class FormerRuns:
    """The operations of a cluster's newest runs, as `role: name`, and the runs as wholes."""

    cluster: str
    _seconds: dict[str, list[float]] | None = field(default=None, init=False)

    def of(self, step: str) -> list[float]:
        """Seconds of a step, oldest first."""
        if self._seconds is None:
            self._seconds = {}
            for run in newest_runs(self.cluster, KEPT, _MAX_BYTES):
                for name, seconds in _of_run(run):
                    self._seconds.setdefault(name, []).append(seconds)
        return self._seconds.get(step, [])

    def record(self, step: str, seconds: float) -> None:
        """Nothing: the journal has it."""


def _of_run(run: Run) -> list[tuple[str, float]]:
    """Steps that ended well, with their seconds."""
    found: list[tuple[str, float]] = []
    began: dict[tuple[str, str, str], float] = {}
    first_wave = None
    for event in run.events:
        kind = event["event"]
        if kind == "wave" and first_wave is None:
            first_wave = event["at"]
        elif kind in ("start", "finish"):
            key = (event["node"], event["role"], event["name"])
            if kind == "start":
                began[key] = event["at"]
            elif key in began and event["outcome"] == "changed":
                found.append((f"{event['role']}: {event['name']}", max(0.0, event["at"] - began.pop(key))))
    words = str(run.begin.get("command", "")).split()
    if first_wave is not None and run.end is not None and run.state == "finished" and "apply" in words[1:2]:
        changes = (run.plan or {}).get("changes")
        nodes = sum(map(bool, changes.values())) if isinstance(changes, dict) else len(run.nodes)
        found.append((whole(nodes), max(0.0, run.end["at"] - first_wave)))
    return found
