"""Erases the disks that the head names: checks all of them again, erases them in parallel, and verifies each."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from rackwright.install.agent import disks, erase_methods, inventory, samples, signatures
from rackwright.install.agent.erase_methods import Method
from rackwright.install.agent.order import Disk, read_disk
from rackwright.install.agent.programs import AgentError, log

_PROGRESS_SECONDS = 5.0
_AT_ONCE = 128
_SAID = 1000
"""Most characters of a program's output to report; the head accepts twice as many."""
Step = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Target:
    """A disk to erase, exactly as the operator approved it."""

    disk: Disk
    wwn: str | None
    model: str | None
    size: int


@dataclass(frozen=True, slots=True)
class Order:
    """One erasure."""

    run: str
    targets: tuple[Target, ...]
    left: frozenset[str]
    """Paths of disks that are known but not erased; the operator has seen the reason."""


@dataclass
class Result:
    """Result for one disk."""

    path: str
    method: str | None = None
    erased: bool = False
    verified: bool = False
    samples: int = 0
    held_data: int = 0
    """Number of samples that had data before; blank ones prove nothing."""
    seconds: float = 0.0
    error: str | None = None
    tried: list[str] = field(default_factory=list)
    """Why stronger methods were not used."""

    def document(self) -> dict[str, Any]:
        """JSON form for the head."""
        return {
            **vars(self),
            "seconds": round(self.seconds, 1),
            "error": self.error and self.error[:_SAID],
            "tried": [one[:_SAID] for one in self.tried],
        }


def parse(data: Any, run: str) -> Order:  # noqa: ANN401 - JSON data
    """The head's `erase` object; AgentError if it is incomplete or belongs to another run."""
    try:
        order = Order(
            run=str(data["run"]),
            targets=tuple(_target(one) for one in data["disks"]),
            left=frozenset(map(str, data["left"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        name = error.args[0] if isinstance(error, KeyError) else type(error).__name__
        raise AgentError(f"the head's erase object is incomplete: {name}") from None
    if order.run != run:
        raise AgentError(f"the head ordered run {order.run!r}, but this machine was booted for run {run}")
    paths = {one.disk.path for one in order.targets}
    if not paths or len(paths) != len(order.targets) or paths & order.left:
        raise AgentError("the head's erase object names no disk, or names one twice")
    return order


def carry_out(order: Order, step: Step) -> list[dict[str, Any]]:
    """Erase all disks; a failure of one does not stop the others. AgentError, and nothing written, unless all are as approved.

    + step: called with a phase and the percentage done, every five seconds
    """
    require_as_agreed(order, inventory.disks())
    targets = order.targets
    progress = _Progress([one.size for one in targets])
    with ThreadPoolExecutor(min(len(targets), _AT_ONCE)) as pool:
        futures: list[Future[Result]] = [
            pool.submit(erase, one, progress.of(number)) for number, one in enumerate(targets)
        ]
        left = set(futures)
        while left:
            left = wait(left, timeout=_PROGRESS_SECONDS).not_done
            step(f"erase: {len(targets) - len(left)} of {len(targets)} disks", progress.percent)
    return [future.result().document() for future in futures]


def require_as_agreed(order: Order, found: Sequence[dict[str, Any]]) -> None:
    """AgentError unless these are exactly the disks that the operator approved, each free and unchanged.

    + found: as in the inventory
    """
    there = {one["path"]: one for one in found}
    known = {one.disk.path for one in order.targets} | order.left
    if new := sorted(set(there) - known):
        raise AgentError(f"{', '.join(new)} appeared after the disks were approved; nothing was written")
    for one in order.targets:
        now = there.get(one.disk.path)
        same = now is None or (now["size_bytes"], now["wwn"], now["model"]) == (one.size, one.wwn, one.model)
        if not same:
            raise AgentError(f"{one.disk.path} is not the approved disk; nothing was written")
    disks.require_as_approved([one.disk for one in order.targets])


def erase(target: Target, progress: erase_methods.Progress) -> Result:
    """Erase and verify one disk; errors go into the result."""
    path, begun = target.disk.path, time.monotonic()
    result = Result(path)
    try:
        _require_unchanged(target.disk)
        places = samples.choose(target.size, random.SystemRandom())
        before = samples.read(path, places)
        result.samples, result.held_data = len(places), samples.held_data(before)
        method = _erase(target, result, begun, progress)
        _verify(path, places, before, samples.read(path, places), method)
        result.verified = True
        if (hidden := erase_methods.hidden_namespaces(path)) is not None:
            result.error = hidden
    except AgentError as error:
        result.error = str(error)
    except Exception as error:  # noqa: BLE001 - the other disks are erased all the same
        result.error = f"{path}: {type(error).__name__}: {error}"
    result.seconds = time.monotonic() - begun
    log(f"{path} ({target.disk.serial}): {result.error or f'erased by {result.method} and verified'}")
    return result


def _require_unchanged(disk: Disk) -> None:
    """Check one disk again: the first check of all disks may have taken minutes."""
    if (change := signatures.difference(disk.signatures, signatures.read(disk.path))) is not None:
        raise AgentError(f"{disk.path} changed after it was approved: it {change}; it was not written")
    if (use := signatures.busy(disk.path)) is not None:
        raise AgentError(f"{use}; it was not written")


def _erase(target: Target, result: Result, begun: float, progress: erase_methods.Progress) -> Method:
    """The method that worked."""
    path, deadline = target.disk.path, begun + erase_methods.limit_seconds(target.size)
    for method in erase_methods.methods(path):
        log(f"{path}: {method.name}")
        result.method = method.name
        try:
            method.carry_out(path, target.size, deadline, progress)
        except AgentError as error:
            result.tried.append(f"{method.name}: {error}")
            log(str(error))
        else:
            result.erased = True
            return method
    result.method = None
    raise AgentError(f"cannot erase {path}: {result.tried[-1]}")


def _verify(
    path: str,
    places: Sequence[samples.Place],
    before: Sequence[bytes],
    after: Sequence[bytes],
    method: Method,
) -> None:
    for place, old, new in zip(places, before, after, strict=True):
        at = samples.remains(old, new, blank=method.blank, noise=method.noise)
        if at is not None:
            raise AgentError(
                f"{path} was erased by {method.name}, but still has data at byte {place.start + at}"
            )


def _target(data: dict[str, Any]) -> Target:
    return Target(
        disk=read_disk(data),
        wwn=data["wwn"],
        model=data["model"],
        size=int(data["size_bytes"]),
    )


class _Progress:
    """Progress of all disks together."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes, self._done, self._lock = sizes, [0] * len(sizes), threading.Lock()

    def of(self, number: int) -> erase_methods.Progress:
        """Progress callback for one disk."""

        def tell(done: int) -> None:
            with self._lock:
                self._done[number] = done

        return tell

    @property
    def percent(self) -> int:
        """Rounded down, so that 100 means finished."""
        with self._lock:
            return 100 * sum(self._done) // max(1, sum(self._sizes))
