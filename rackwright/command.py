"""A command that ran on a node."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CommandResult:
    """What a command on a node gave back; `exit_status` 124 is a timeout."""

    command: str
    exit_status: int
    stdout: str
    stderr: str
