"""Whether the workload manager could start a job on nodes now."""

from __future__ import annotations

import time

from rackwright.workload.protocol import Manager

PATIENCE_SECONDS = 30
"""How long nodes may take to become free: the job before may still be in its epilog."""


def not_ready(
    manager: Manager, nodes: tuple[str, ...], patience_seconds: float | None = None
) -> dict[str, str]:
    """Nodes that do not become free within the time (None: PATIENCE_SECONDS), with the state they are in.

    Does not wait where the state of a node changes by an operator alone (down, drained, ...).
    """
    patience = PATIENCE_SECONDS if patience_seconds is None else patience_seconds
    deadline = time.monotonic() + patience
    while True:
        states = manager.states()
        known = {node: states[node] for node in nodes if node in states}
        busy = {node: state.text for node, state in known.items() if not state.ready}
        busy |= {node: f"not in {manager.name}" for node in nodes if node not in known}
        lasting = any(node not in known or not known[node].in_service for node in busy)
        if not busy or lasting or time.monotonic() >= deadline:
            return busy
        time.sleep(min(2.0, max(deadline - time.monotonic(), 0.1)))
