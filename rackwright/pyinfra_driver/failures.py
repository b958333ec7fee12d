"""Errors of a node as text for the operator."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path

from pyinfra.api.exceptions import OperationError, PyinfraError

from rackwright.boundary import Refused
from rackwright.errors import RackwrightError
from rackwright.pyinfra_driver.connector_state import ConnectorState

logger = logging.getLogger(__name__)

_OUTPUT_LINES = 15
_OUR_ROOMS = {"roles", "deploys", "operations", "facts"}


def what_failed(connector: ConnectorState) -> str | None:
    """The operation's error, the lost connection, or the last failed command with its output; None if unknown."""
    if connector.failure:
        return connector.failure
    if connector.lost:
        return connector.lost
    last = connector.last
    if last is None:
        return None
    output = (last.stderr.strip() or last.stdout.strip() or "nothing").splitlines()[-_OUTPUT_LINES:]
    first = last.command.strip().splitlines()[0][:160]
    return "\n    ".join([f"`{first}` exited {last.exit_status} with the output:", *output])


def why(connector: ConnectorState, problem: Exception, *, failed: bool) -> str:
    """The cause of an exception; `failed`: a command that the deploy needs had failed before."""
    of_pyinfra = isinstance(problem, PyinfraError) and not isinstance(problem, OperationError)
    if failed or of_pyinfra:  # such exceptions do not contain the cause
        return what_failed(connector) or _in_words(problem)
    return connector.lost or _in_words(problem)


def _in_words(problem: Exception) -> str:
    """An unexpected exception and its place in a role or deploy; the log has the traceback.

    One of a fact is an answer that the fact could not read.
    """
    if isinstance(problem, (OperationError, RackwrightError, Refused)):
        return str(problem)
    logger.warning("unexpected", exc_info=problem)
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [frame for frame in frames if _OUR_ROOMS & set(Path(frame.filename).parts[:-1])]
    where = (ours or frames)[-1]
    place = "/".join(Path(where.filename).parts[-3:])
    of_fact = "its answer is invalid: " if "facts" in Path(where.filename).parts[:-1] else ""
    return f"{of_fact}{type(problem).__name__}: {problem} ({place}:{where.lineno})"
