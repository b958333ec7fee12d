"""Every error rackwright raises on purpose.

RackwrightError            exit 1
├── ClusterFileError       the cluster file is wrong; carries every problem at once
├── SecretsError           the secrets file cannot be read, written or decrypted
├── ConnectionFailed       a node could not be reached or refused us
├── RunLocked              another run holds the cluster's lock
├── RunFailed              plan or apply failed on at least one node
├── BurninError            burn-in could not be submitted or read
├── StorageError           the storage bench cannot be run or stored
├── WorkloadError          the workload manager did not answer or refused
├── RestoreError           a backup could not be listed, fetched, decrypted or put back
├── ImageError             an image could not be built
├── InstallError           a machine could not be discovered or installed, or must not be
├── BmcError               a BMC could not be reached, refused us or cannot do what was asked
├── FirmwareError          firmware could not be compared or updated, or must not be
└── LabError               the lab rack could not be built, found or changed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit status of every rackwright command."""

    CLEAN = 0
    ERROR = 1
    CHANGES_PENDING = 2
    CHECK_FAILED = 3
    UNKNOWN = 4
    USAGE = 64


class RackwrightError(Exception):
    """Base class: a full sentence about what is wrong, and optionally what to do next."""

    exit_code = ExitCode.ERROR

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a cluster file, with its place; lines and columns count from 1."""

    file: str
    line: int
    column: int
    path: str
    """Where in the data, e.g. `nodes[2].addresses.management`; empty for the file as a whole."""
    value: str | None
    """The value as shown to people, shortened; None when nothing stands there or it is a secret."""
    message: str
    """A full sentence."""
    hint: str | None = None

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}: "
        lines = [where + (f"{self.path}: " if self.path else "") + self.message]
        if self.value is not None:
            lines.append(f"  value: {self.value}")
        if self.hint is not None:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class ClusterFileError(RackwrightError):
    """The cluster file is wrong; `problems` holds every mistake found, in file order, and `warnings` what is
    allowed and rarely meant, where that was asked for.
    """

    def __init__(self, problems: Sequence[Problem], warnings: Sequence[Problem] = ()) -> None:
        self.problems = tuple(problems)
        self.warnings = tuple(warnings)
        mistakes = "1 mistake" if len(self.problems) == 1 else f"{len(self.problems)} mistakes"
        blocks = "\n\n".join(str(problem) for problem in self.problems)
        super().__init__(f"{self.problems[0].file} has {mistakes}.\n\n{blocks}")


class SecretsError(RackwrightError):
    """The secrets file cannot be read, written or decrypted."""


class ConnectionFailed(RackwrightError):  # noqa: N818 - reads as the sentence it is
    """A node could not be reached, or its host key or our key was refused."""


class RunLocked(RackwrightError):  # noqa: N818
    """Another run holds the cluster's lock; the message names its user and start."""


class RunFailed(RackwrightError):  # noqa: N818
    """At least one node failed; the message names it, its last command and output."""


class BurninError(RackwrightError):
    """Burn-in could not be submitted, or its output could not be read."""


class StorageError(RackwrightError):
    """The storage bench cannot be run as asked, or its result cannot be stored."""


class WorkloadError(RackwrightError):
    """The workload manager did not answer, or refused what it was asked."""


class RestoreError(RackwrightError):
    """A backup could not be listed, fetched, decrypted or put back."""


class ImageError(RackwrightError):
    """An image could not be built."""


class BmcError(RackwrightError):
    """A BMC could not be reached, refused us, or cannot do what was asked; names the node and the BMC's address."""


class InstallError(RackwrightError):
    """A machine could not be discovered or installed, or must not be."""


class FirmwareError(RackwrightError):
    """Firmware or BIOS settings could not be changed, or must not be."""


class LabError(RackwrightError):
    """The lab rack could not be built, found or changed."""
