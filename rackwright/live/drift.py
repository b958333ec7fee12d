"""When each node was last compared with the cluster file, and with what result: by the scheduled check, or by hand."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackwright.drift import paths
from rackwright.drift.check import NODE_SECONDS
from rackwright.drift.declaration import Declaration
from rackwright.drift.report import LATEST
from rackwright.drift.states import State, parsed_history
from rackwright.live.facts import Absent, Fact, Unknown
from rackwright.live.findings import LastDrift
from rackwright.live.judge import age_text
from rackwright.live.on_nodes import read_file, read_file_here
from rackwright.model.cluster import Cluster
from rackwright.ssh import RootShell

BY_HAND_STALE_SECONDS = 86400.0
NEVER = "no scheduled drift check is installed, and `rackwright drift` was not run from here"


def stale_after(declared: Declaration) -> float:
    """The age in seconds from which a scheduled check has missed its turn twice."""
    return 2 * declared.every_seconds + declared.delay_seconds + NODE_SECONDS


def pushed_drift(
    cluster: Cluster, declared: Declaration, shell: RootShell, seconds: float
) -> Mapping[str, Fact[LastDrift]]:
    """What the checker last found, by node; ConnectionFailed where the checker is the head and is not reached."""
    path = f"{paths.state_of(cluster.name)}/state.json"
    here = declared.on == "here"
    read = read_file_here(Path(path)) if here else read_file(shell, cluster.primary.name, path, seconds)
    if isinstance(read, Unknown):
        return _all(cluster, read)
    now, written, text = read
    age = now - written
    if age > stale_after(declared):
        return _all(cluster, Unknown(f"the scheduled drift check last ran {age_text(age)} ago"))
    try:
        history = parsed_history(text)
    except ValueError as error:
        return _all(cluster, Unknown(f"{path} is not used: {error}"))
    found: dict[str, Fact[LastDrift]] = {}
    for node in cluster.nodes:
        known = history.get(node.name)
        found[node.name] = (
            LastDrift(known.state, written, age, scheduled=True)
            if known is not None
            else Unknown("the scheduled drift check does not know it yet")
        )
    return found


@dataclass(frozen=True)
class ByHand:
    """The last `rackwright drift` of the whole cluster from this machine."""

    document: Mapping[str, Any]

    @classmethod
    def read(cls, cluster: str) -> ByHand:
        """From the state folder."""
        return cls(LATEST.get(cluster))

    def of(self, cluster: Cluster, node: str, now: float | None = None) -> Fact[LastDrift]:
        """Absent if it was never run; Unknown if what it found no longer counts."""
        ended, states = self.document.get("ended"), self.document.get("nodes")
        if not isinstance(ended, int | float) or not math.isfinite(ended) or not isinstance(states, dict):
            return Absent(NEVER)
        age = (time.time() if now is None else now) - ended
        if age > BY_HAND_STALE_SECONDS:
            return Unknown(f"last compared {age_text(age)} ago: run `rackwright drift`")
        if self.document.get("sha256") != cluster.sha256:
            return Unknown("the cluster file has changed since `rackwright drift` was run")
        try:
            state = State(states[node])
        except (KeyError, ValueError):
            return Unknown("the last `rackwright drift` did not compare it")
        return LastDrift(state, float(ended), max(age, 0.0), scheduled=False)


def _all(cluster: Cluster, fact: Fact[LastDrift]) -> Mapping[str, Fact[LastDrift]]:
    return {node.name: fact for node in cluster.nodes}
