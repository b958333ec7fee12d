"""Disks whose content a plan destroys, and the serials that were typed to allow it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rackwright.errors import RackwrightError
from rackwright.plan.node_plan import PlanResult

Erasable = Mapping[str, Mapping[str, str]]
"""By node: serial of a disk -> its content as the plan shows it. Nothing else may be destroyed."""


@dataclass(frozen=True)
class Erasure:
    """A disk whose content a plan destroys."""

    node: str
    disk: str
    """Device, serial and size, as the plan shows them."""
    serial: str
    content: str
    """Signatures, as the plan shows them."""

    def __str__(self) -> str:
        return f"{self.node}: {self.disk}: {self.content}"


def erasures(plan: PlanResult) -> tuple[Erasure, ...]:
    """Each once, in the order of the plan."""
    found = (
        Erasure(name, change.target, change.erases, change.before or "")
        for name, node in plan.nodes.items()
        for operation in node.operations
        for change in operation.changes
        if change.erases is not None
    )
    return tuple(dict.fromkeys(found))


def allowed(plan: PlanResult, serials: Iterable[str]) -> Erasable:
    """The disks of the plan with these serials.

    RackwrightError for a serial of which the plan erases no disk, or the disks of several nodes: a serial that was
    mistyped, or that does not identify a disk, erases none.
    """
    chosen: dict[str, dict[str, str]] = {}
    for serial in dict.fromkeys(serials):
        meant = [one for one in erasures(plan) if one.serial == serial]
        if not meant:
            raise RackwrightError(
                f"No disk with the serial {serial!r} would be erased by this plan; nothing was changed.",
                hint="copy the serial from the plan",
            )
        if len({one.node for one in meant}) > 1:
            raise RackwrightError(
                f"Disks of {', '.join(one.node for one in meant)} have the serial {serial!r}; nothing was changed.",
                hint="apply these nodes one at a time with --limit",
            )
        chosen.setdefault(meant[0].node, {})[serial] = meant[0].content
    return chosen


def checked(plan: PlanResult, typed: Erasable) -> Erasable:
    """What was typed; RackwrightError unless the serial of each disk that the plan erases was typed, with the content it has now."""
    left = [one for one in erasures(plan) if typed.get(one.node, {}).get(one.serial) != one.content]
    if not left:
        return typed
    raise RackwrightError(
        "Nothing was changed: the plan erases disks whose serials were not typed for this run:\n"
        + "\n".join(f"  {one}" for one in left),
        hint="to erase them: " + " ".join(f"--erase {one.serial}" for one in left),
    )
