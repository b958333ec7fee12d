"""Waits until the workload manager can start a job on nodes."""

from __future__ import annotations

import time

from rackwright.workload.protocol import Manager

PATIENCE_SECONDS = 30
"""Time for nodes to become free: the previous job may still be in its epilog."""


def not_ready(
    manager: Manager, nodes: tuple[str, ...], patience_seconds: float | None = None
) -> dict[str, str]:
    """Nodes that do not become free within the time (None: PATIENCE_SECONDS), with their state.

    Does not wait for a state that only an operator changes (down, drained, ...).
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
