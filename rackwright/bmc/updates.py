"""What a BMC can be asked about firmware: versions of every component, updates and their tasks, settings of the BIOS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from rackwright.bmc.interface import Firmware


class UpdateWay(StrEnum):
    """How a BMC takes an image."""

    URL = "url"
    """It fetches the image itself."""
    FILE = "file"
    """The image is sent to it."""


class TaskState(StrEnum):
    """Where an update stands."""

    RUNNING = "running"
    WAITING = "waiting"
    """For the node's next boot."""
    DONE = "done"
    FAILED = "failed"
    NOT_KNOWN = "not known"
    """The BMC makes no task of it, or has forgotten it, e.g. by its own restart: versions alone can answer."""


@dataclass(frozen=True, slots=True)
class UpdateTask:
    """An update as its BMC reports it."""

    state: TaskState
    name: str | None = None
    """Path of the task."""
    percent: int | None = None
    messages: tuple[str, ...] = ()
    """The BMC's own words, the newest last."""


class BmcUpdates(Protocol):
    """Every method raises BmcError, as those of BmcClient do."""

    def components(self) -> list[Firmware]:
        """Entries of the firmware inventory, each by its id; `version` is empty where the BMC reports none."""

    def devices(self) -> list[Firmware]:
        """Drives, network adapters and processors (GPUs) with their firmware, where the inventory lacks them."""

    def ways(self) -> frozenset[UpdateWay]:
        """How it takes images; empty where it takes none."""

    def begin(self, image: str | Path, *, at_reset: bool) -> str | None:
        """Begin an update from a URL or with a file; the name of its task, None where the BMC makes none.

        + at_reset: with the next boot of the node, where the BMC lets us choose
        """

    def task(self, name: str | None) -> UpdateTask:
        """Where an update stands; None: the one that has no task."""

    def under_way(self) -> list[UpdateTask]:
        """Tasks that run or wait for a boot."""

    def bios_refusals(self, changes: Mapping[str, object]) -> dict[str, str]:
        """BIOS attribute to why it cannot have this value, as far as the BMC publishes its rules."""
