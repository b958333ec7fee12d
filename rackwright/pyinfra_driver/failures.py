"""Errors of a node as text for the operator."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path

from pyinfra.api.exceptions import OperationError

from rackwright.errors import RackwrightError
from rackwright.pyinfra_driver.connector_state import ConnectorState

logger = logging.getLogger(__name__)

_OUTPUT_LINES = 15
_OUR_ROOMS = {"roles", "deploys", "operations", "facts"}


def what_failed(connector: ConnectorState) -> str | None:
    """The lost connection, or the last failed command with its output; None if neither is known."""
    if connector.lost:
        return connector.lost
    last = connector.last
    if last is None:
        return None
    output = (last.stderr.strip() or last.stdout.strip() or "nothing").splitlines()[-_OUTPUT_LINES:]
    first = last.command.strip().splitlines()[0][:160]
    return "\n    ".join([f"`{first}` exited {last.exit_status} saying:", *output])


def in_words(problem: Exception) -> str:
    """An unexpected exception and its place in a role or deploy; the log has the traceback."""
    if isinstance(problem, (OperationError, RackwrightError)):
        return str(problem)
    logger.warning("unexpected", exc_info=problem)
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [frame for frame in frames if _OUR_ROOMS & set(Path(frame.filename).parts[:-1])]
    where = (ours or frames)[-1]
    place = "/".join(Path(where.filename).parts[-3:])
    return f"{type(problem).__name__}: {problem} ({place}:{where.lineno})"
