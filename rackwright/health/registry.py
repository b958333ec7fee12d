"""Registry of the health checks, by the name that switches a check off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.records import Missing, Unreadable
from rackwright.health.verdict import Action, Finding, good, unknown
from rackwright.status import Status

AREAS = ("gpu", "fabric", "cpu", "memory", "disk", "filesystem", "os", "services", "bmc")
FAST_SECTIONS = frozenset(
    (
        "gpus",
        "nvlink",
        "driver",
        "infiniband",
        "memory",
        "mounts",
        "system",
        "services",
        "kernel_log",
        "history",
    )
)
"""The sections that the probe reads with `fast`; a test compares this with the probe."""
GPU_SECTIONS = frozenset(
    ("gpus", "nvlink", "topology", "amd_gpus", "amd_metrics", "amd_bad_pages", "amd_topology")
)
"""Sections that only nodes with GPUs have."""

CheckFunction = Callable[[Expected, Document], Iterable[Finding]]
Applies = Callable[[Expected], bool]
T = TypeVar("T")


@dataclass(frozen=True)
class HealthCheck:
    """A claim about a node, and the pure function that judges it."""

    id: str
    claim: str
    area: str
    function: CheckFunction
    reads: tuple[str, ...]
    remedy: str
    action: Action
    limits: tuple[str, ...]
    applies: Applies
    needs: tuple[str, ...]
    source: str

    @property
    def fast(self) -> bool:
        """Whether the probe's fast sections are enough to judge it."""
        return FAST_SECTIONS.issuperset(self.reads)


CHECKS: dict[str, HealthCheck] = {}


def always(expected: Expected) -> bool:
    """Every node has it."""
    return True


def check(
    area: str,
    claim: str,
    *,
    reads: tuple[str, ...],
    remedy: str,
    action: Action = Action.DRAIN,
    limits: tuple[str, ...] = (),
    applies: Applies = always,
    needs: tuple[str, ...] = (),
    source: str = "the declared SKU",
) -> Callable[[CheckFunction], CheckFunction]:
    """Register a function as a check named after it: `gpu_count` becomes `gpu-count`."""

    def register(function: CheckFunction) -> CheckFunction:
        name = function.__name__.replace("_", "-")
        if name in CHECKS:
            raise ValueError(f"two checks are named {name}")
        wanted = ("gpu", *needs) if GPU_SECTIONS.intersection(reads) else needs
        CHECKS[name] = HealthCheck(
            name, claim, area, function, reads, remedy, action, limits, applies, wanted, source
        )
        return function

    return register


def each(items: Iterable[T], judge: Callable[[T], Finding | None], passed: str) -> Iterator[Finding]:
    """Judge every item; one that cannot be read is UNKNOWN and does not hide the others. If all are good: `passed`.

    An item without a value, or out of scope, does not stop the others from passing; whether this node
    should report that value is decided where the findings are collected.
    """
    bad, judged, total = False, 0, 0
    for item in items:
        total += 1
        try:
            found = judge(item)
        except Missing as error:
            yield unknown(str(error), error.place)
            continue
        except Unreadable as error:
            found = unknown(str(error))
        if found is None:
            judged += 1
            continue
        bad = bad or found.status is not Status.OUT_OF_SCOPE
        yield found
    if not bad and (judged or not total):
        yield good(passed)
