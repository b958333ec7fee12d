"""Firmware functions of a BMC: versions of every component, updates and their tasks, BIOS settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from rackwright.bmc.interface import Firmware


class UpdateWay(StrEnum):
    """How a BMC receives an image."""

    URL = "url"
    """It downloads the image itself."""
    FILE = "file"
    """The image is sent to it."""


class TaskState(StrEnum):
    """Progress of an update."""

    RUNNING = "running"
    WAITING = "waiting"
    """Scheduled for the node's next boot."""
    DONE = "done"
    FAILED = "failed"
    NOT_KNOWN = "not known"
    """The BMC creates no task for it, or lost it, e.g. by restarting: only the versions show the result."""


@dataclass(frozen=True, slots=True)
class UpdateTask:
    """An update as its BMC reports it."""

    state: TaskState
    name: str | None = None
    """Path of the task."""
    percent: int | None = None
    messages: tuple[str, ...] = ()
    """The BMC's messages, the newest last."""


class BmcUpdates(Protocol):
    """Every method raises BmcError, as those of BmcClient do."""

    def components(self) -> list[Firmware]:
        """Firmware inventory entries by id; `version` is empty if the BMC reports none."""

    def devices(self) -> list[Firmware]:
        """Drives, network adapters and processors (GPUs) with their firmware, if the inventory lacks them."""

    def ways(self) -> frozenset[UpdateWay]:
        """How it receives images; empty if it accepts none."""

    def begin(self, image: str | Path, *, at_reset: bool) -> str | None:
        """Start an update from a URL or with a file; returns the name of its task, None if the BMC creates none.

        + at_reset: on the node's next boot, if the BMC supports the choice
        """

    def task(self, name: str | None) -> UpdateTask:
        """Progress of an update; None: the one without a task."""

    def under_way(self) -> list[UpdateTask]:
        """Tasks that are running or waiting for a boot."""

    def bios_refusals(self, changes: Mapping[str, object]) -> dict[str, str]:
        """BIOS attribute to why it cannot have this value, if the BMC publishes its rules."""
