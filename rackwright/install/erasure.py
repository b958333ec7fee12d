"""Erasure of all disks of a machine: what the operator confirms, what the agent is ordered to do, and its report.

The operator confirms with the machine's serial number, once per run, and for exactly the listed disks and contents:
the record keeps them as what that serial number confirms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StringConstraints, ValidationError

from rackwright.boundary import Refused, printable, printable_data
from rackwright.install.agent.erase_methods import limit_seconds
from rackwright.install.inventory import Disk, Inventory
from rackwright.install.record import Record
from rackwright.install.serials import name_to_type
from rackwright.install.verdict import another_machine
from rackwright.model.cluster import Node

MODE = "erase"
_SLACK_SECONDS = 3600.0
"""Allowance for reading samples and for the agent's final report."""
Said = Annotated[str, StringConstraints(max_length=2000)]
Count = Annotated[int, Field(ge=0, le=2**63)]


@dataclass(frozen=True)
class Erasure:
    """What erasing a machine would affect, and whether the operator has confirmed it."""

    machine: str
    """What the operator types: its serial number, or its UUID if it has none."""
    contradictions: tuple[str, ...]
    disks: tuple[Disk, ...]
    left: tuple[tuple[Disk, str], ...]
    """Disks that cannot be erased, and the reasons."""
    agreed: bool

    @property
    def approved(self) -> bool:
        """Whether the disks may be erased."""
        return not self.contradictions and self.agreed

    @property
    def unconfirmed(self) -> Mapping[str, tuple[str, ...]]:
        """The machine to everything that the operator must confirm; empty if nothing needs confirmation."""
        return {} if self.agreed or self.contradictions else {self.machine: content(self.disks, self.left)}

    @property
    def reasons(self) -> list[str]:
        """Why the machine is on hold."""
        if self.agreed or self.contradictions:
            return list(self.contradictions)
        listed = [f"{disk.label} holds {', '.join(disk.signatures) or 'nothing'}" for disk in self.disks]
        left = [f"{disk.label} cannot be erased: {why}" for disk, why in self.left]
        return ["type its serial number to erase all its disks", *listed, *left]


class DiskReport(BaseModel):
    """The agent's report on one disk."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    path: Said
    method: Said | None = None
    erased: StrictBool
    verified: StrictBool
    samples: Count = 0
    held_data: Count = 0
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    error: Said | None = None
    tried: Annotated[tuple[Said, ...], Field(max_length=16)] = ()


class _Report(BaseModel):
    disks: tuple[DiskReport, ...] = Field(max_length=512)


def judge(node: Node, found: Inventory, record: Record) -> Erasure:
    """Compare the agent's inventory with the declaration, and with what was confirmed in this run.

    A machine to be decommissioned may have lost memory or disks: it is put on hold only if it may be another machine.
    """
    wrong = another_machine(node, found, record.serial, record.uuid)
    name, _ = name_to_type(node.serial, record.serial or None, record.uuid or None)
    if name is None:
        wrong.append("it has neither a serial number nor a UUID to confirm with")
    disks = tuple(disk for disk in found.disks if _cannot(disk) is None)
    left = tuple((disk, why) for disk in found.disks if (why := _cannot(disk)) is not None)
    if not disks:
        wrong.append("; ".join(f"{disk.label}: {why}" for disk, why in left) or "it has no disks")
    agreed = record.confirmed.get(name or "") == content(disks, left)
    return Erasure(name or "", tuple(wrong), disks, left, agreed and not wrong)


def content(disks: tuple[Disk, ...], left: tuple[tuple[Disk, str], ...]) -> tuple[str, ...]:
    """Everything that a confirmation covers: each disk with its contents, and those that are not erased."""
    found: list[str] = []
    for disk in disks:
        found += [f"{disk.label}, WWN {disk.wwn or 'unknown'}, {disk.size_bytes} bytes", *disk.signatures]
    return (*found, *(f"{disk.label} stays as it is: {why}" for disk, why in left))


def _cannot(disk: Disk) -> str | None:
    if disk.error is not None:
        return f"it is unreadable: {disk.error}"
    if disk.read_only:
        return "it is read-only"
    return None if disk.size_bytes else "it has size 0"


def order(erasure: Erasure, run: str) -> dict[str, Any]:
    """The `erase` object of the protocol."""
    keys = {"path", "serial", "wwn", "model", "size_bytes", "signatures"}
    disks = [disk.model_dump(mode="json", include=keys) for disk in erasure.disks]
    return {"run": run, "disks": disks, "left": [disk.path for disk, _ in erasure.left]}


def time_limit(record: Record) -> float:
    """Longest erase time of the largest disk in seconds, if the machine is to be erased; else 0."""
    if record.mode != MODE:
        return 0.0
    sizes = [int(disk["size_bytes"]) for disk in record.inventory.get("disks", ())]
    return limit_seconds(max(sizes, default=0)) + _SLACK_SECONDS


def read_report(body: Mapping[str, Any]) -> dict[str, DiskReport]:
    """The agent's report by disk path; raises Refused."""
    try:
        report = _Report.model_validate(printable_data({"disks": body.get("disks")}))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise Refused(f"its report is not valid: {place}: {printable(first['msg'], 100)}") from None
    found = {one.path: one for one in report.disks}
    if len(found) != len(report.disks):
        raise Refused("its report names a disk twice")
    return found
