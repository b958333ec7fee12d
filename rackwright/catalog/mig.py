"""MIG: how a node's GPUs are partitioned, declared once and read by the mig role, Slurm and the health checks.

Every GPU of a node is partitioned alike. A layout is checked against the catalogue's profiles and placed as the
hardware would place it, so that an impossible layout is refused before the first connection.
"""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.catalog.table_files import mig_table
from rackwright.catalog.tables import MigGpu
from rackwright.documents.nearest import suggest
from rackwright.model.sku import Gpus

_SLOTS = 8
"""Memory slices of a GPU; the last has no compute slice."""

# Profile by (compute slices, how often it fits): where it may start, and how many memory slices it takes.
# `nvidia-smi mig -lgipp` of A100, H100 and H100 NVL, quoted by several public pages, read 2026-11-21.
_PLACEMENTS: dict[tuple[int, int], tuple[tuple[int, ...], int]] = {
    (1, 7): ((0, 1, 2, 3, 4, 5, 6), 1),
    (1, 1): ((0, 1, 2, 3, 4, 5, 6), 1),  # +me: with the media engines
    (1, 4): ((0, 2, 4, 6), 2),
    (2, 3): ((0, 2, 4), 2),
    (3, 2): ((0, 4), 4),
    (4, 1): ((0,), 4),
    (7, 1): ((0,), 8),
}

Placed = tuple[tuple[str, int], ...]
"""Profiles of one GPU with the memory slice each starts at, largest first."""


def profiles_of(gpus: Gpus | None) -> MigGpu | None:
    """The GPU's row in the table of MIG profiles; None where it cannot be partitioned."""
    if gpus is None or gpus.mig is None:
        return None
    return next((row for row in mig_table().rows if row.gpu == gpus.mig), None)


def placed(layout: dict[str, int], row: MigGpu) -> Placed | None:
    """Where each instance of a layout lies on one GPU; None where they do not fit together."""
    most = {profile.name: profile.most for profile in row.profiles}
    wanted = sorted(
        (name for name, count in layout.items() for _ in range(count)),
        key=lambda name: (-_PLACEMENTS[int(name[0]), most[name]][1], -int(name[0]), name),
    )
    return _place(wanted, most, frozenset(), ("", -1))


def _place(
    wanted: list[str], most: dict[str, int], taken: frozenset[int], last: tuple[str, int]
) -> Placed | None:
    if not wanted:
        return ()
    name, rest = wanted[0], wanted[1:]
    starts, size = _PLACEMENTS[int(name[0]), most[name]]
    for start in starts:
        if name == last[0] and start < last[1]:
            continue  # equal instances in another order are the same layout
        slots = frozenset(range(start, start + size))
        if max(slots) < _SLOTS and not slots & taken:
            below = _place(rest, most, taken | slots, (name, start))
            if below is not None:
                return ((name, start), *below)
    return None


def named(gpus: Gpus | None) -> dict[str, dict[str, int]]:
    """The layouts that NVIDIA's mig-parted has a name for, as far as these GPUs can have them.

    `all-disabled`, `all-balanced` and `all-<profile>`, where `+me` is written `.me`:
    NVIDIA mig-parted, deployments/systemd/config-default.yaml, read 2026-11-23.
    """
    found: dict[str, dict[str, int]] = {"all-disabled": {}}
    row = profiles_of(gpus)
    if row is None:
        return found
    if row.balanced is not None:
        found["all-balanced"] = dict(row.balanced)
    for profile in row.profiles:
        found[f"all-{profile.name.replace('+', '.')}"] = {profile.name: profile.most}
    return found


def mistakes(
    layout: dict[str, int], gpus: Gpus | None, sku: str
) -> Iterator[tuple[str | None, str, str | None]]:
    """What is wrong with a layout: (profile or None for the whole layout, message, hint)."""
    if gpus is None:
        yield None, f"{sku} has no GPUs to partition.", None
        return
    row = profiles_of(gpus)
    if row is None:
        yield (
            None,
            f"The catalogue has no MIG profiles of {gpus.model} ({sku}).",
            "see `rackwright catalog --table mig`",
        )
        return
    known = {profile.name: profile.most for profile in row.profiles}
    wrong = False
    for name, count in layout.items():
        if name not in known:
            yield name, f"{gpus.model} has no MIG profile {name}.", suggest(name, known, what="its profiles")
        elif count > known[name]:
            yield name, f"{name} fits {known[name]} times on {gpus.model}, not {count} times.", None
        else:
            continue
        wrong = True
    if not wrong and placed(layout, row) is None:
        yield None, f"These MIG instances do not fit together on one {gpus.model}.", _balanced(row)


def _balanced(row: MigGpu) -> str | None:
    if row.balanced is None:
        return None
    words = ", ".join(f"{name}: {count}" for name, count in row.balanced.items())
    return f"e.g. `{{{words}}}`"
