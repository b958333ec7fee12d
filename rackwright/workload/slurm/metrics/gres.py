"""GPUs in what Slurm prints: `gpu:h100:8(S:0-1)` of a node, `gpu:h100:2(IDX:0-1)` of a job there, `gres/gpu=4`."""

from __future__ import annotations

import re
from typing import NamedTuple

_GPU = re.compile(r"(?:^|,)gpu(?::([^:,()]+))?:([0-9]{1,9})(?:\(([^()]*)\))?(?=,|$)", re.ASCII)
_TRES = re.compile(r"(?:^|,)gres/gpu(:[^=,]+)?=([0-9]{1,9})(?=,|$)", re.ASCII)
_INDEX = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?", re.ASCII)
_MIG = re.compile(r"[0-9]+g\.[0-9]+gb", re.ASCII)
"""A profile of NVIDIA's, e.g. `1g.10gb`: such a GRES is a part of a GPU."""
MOST = 1024
"""GPUs of one node."""


class Gpus(NamedTuple):
    """GPUs of a node, or of a job on a node."""

    number: int = 0
    indices: tuple[int, ...] = ()
    """Their numbers; empty if Slurm does not report them, or if they are MIG instances."""
    parts: bool = False
    """Whether some are MIG instances, whose numbers are not those of GPUs."""


NONE = Gpus()


def gpus_of_gres(text: str) -> Gpus:
    """Of a Gres= or gres_detail text."""
    count, indices, parts = 0, set(), False
    for kind, number, inside in _GPU.findall(text):
        count += int(number)
        parts = parts or _MIG.search(kind) is not None
        if inside.startswith("IDX:"):
            indices |= _numbers(inside[len("IDX:") :])
    known = not parts and len(indices) == count
    return Gpus(min(count, MOST), tuple(sorted(indices)) if known else (), parts)


def gpus_of_tres(text: str) -> int:
    """Of a TRES text: the total, or the sum of types where it has no total."""
    found = _TRES.findall(text)
    totals = [int(number) for kind, number in found if not kind]
    return totals[0] if totals else sum(int(number) for _, number in found)


def _numbers(text: str) -> set[int]:
    found: set[int] = set()
    for piece in text.split(","):
        ends = _INDEX.fullmatch(piece)
        if ends is not None and int(ends[2] or ends[1]) < MOST:
            found |= set(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
    return found
