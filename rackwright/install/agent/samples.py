"""Samples a disk before and after erasure, to check that no old data is readable."""

from __future__ import annotations

import mmap
import os
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rackwright.install.agent.programs import AgentError

EDGE, PLACE, PLACES = 1 << 20, 16 << 10, 64
"""The first and last MiB, which hold tables and superblocks, and this number of samples in between."""
_ALIGNED = 4096
"""Direct reads start and end at multiples of a sector; no disk has larger sectors."""
_SECTOR = 512
_NOISE_VALUES, _NOISE_SAME = 128, 32
"""512 random bytes have about 221 distinct values; about 2 are equal to the byte at the same place before."""


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a disk, in bytes."""

    start: int
    length: int


def choose(size: int, chance: random.Random) -> list[Place]:
    """Both ends of a disk and random places in between."""
    edge = min(EDGE, size)
    last = _down(size - edge)
    found = [Place(0, edge), Place(last, size - last)]
    if size > PLACE:
        starts = sorted(_down(chance.randrange(size - PLACE + 1)) for _ in range(PLACES))
        found += [Place(start, PLACE) for start in starts]
    return found


def read(path: str, places: Sequence[Place]) -> list[bytes]:
    """Read samples from the disk itself, not from memory; AgentError if that fails."""
    # open(2): O_DIRECT bypasses the page cache, which may hold data that the disk has not written
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError as error:
        raise AgentError(f"cannot read {path}: {error.strerror}") from None
    try:
        with mmap.mmap(-1, max(_up(place.length) for place in places)) as buffer:
            return [_read(path, descriptor, place, buffer) for place in places]
    finally:
        os.close(descriptor)


def held_data(before: Sequence[bytes]) -> int:
    """Number of samples with anything but one repeated byte."""
    return sum(sample != sample[:1] * len(sample) for sample in before)


def remains(before: bytes, after: bytes, *, blank: Collection[int], noise: bool) -> int | None:
    """Offset of leftover data in a sample, in bytes; None if there is none.

    + blank: byte values that an erased sector may have
    + noise: whether an erased sector may also be random, e.g. after its encryption key was changed
    """
    if any(after == bytes([one]) * len(after) for one in blank):
        return None
    for start in range(0, len(after), _SECTOR):
        now = after[start : start + _SECTOR]
        if any(now == bytes([one]) * len(now) for one in blank):
            continue
        if not noise or not _is_other_noise(before[start : start + _SECTOR], now):
            return start
    return None


def _is_other_noise(before: bytes, now: bytes) -> bool:
    """Whether a sector looks random and differs from before; a single leftover byte among zeros does not."""
    same = sum(one == other for one, other in zip(before, now, strict=True))
    return len(set(now)) >= _NOISE_VALUES and same <= _NOISE_SAME


def _read(path: str, descriptor: int, place: Place, buffer: mmap.mmap) -> bytes:
    wanted = _up(place.length)
    try:
        with memoryview(buffer) as view, view[:wanted] as part:
            found = os.preadv(descriptor, [part], place.start)
    except OSError as error:
        raise AgentError(f"cannot read {path} at byte {place.start}: {error.strerror}") from None
    if found < place.length:
        raise AgentError(f"{path} returned {found} of {place.length} bytes at byte {place.start}")
    return buffer[: place.length]


def _down(number: int) -> int:
    return number // _ALIGNED * _ALIGNED


def _up(number: int) -> int:
    return -(-number // _ALIGNED) * _ALIGNED
