"""The single file installed on a node: the drift check with the engine's fact helper, so that both give the same answers."""

from __future__ import annotations

from rackwright.node_programs import DRIFT_CHECK, one_text


def program() -> str:
    """Its text; -I ignores modules of the caller's environment and folder."""
    return "#!/usr/bin/python3 -I\n" + one_text(DRIFT_CHECK)
