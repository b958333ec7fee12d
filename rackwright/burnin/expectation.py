"""What a run must show to count, and the problems that its table has."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rackwright.burnin.finding import Finding
from rackwright.burnin.possible import BUSBW_MAX_GBS, impossible
from rackwright.burnin.table import NcclTable
from rackwright.status import Status

NOT_CHECKED_IN_PLACE = frozenset({"alltoall", "alltoallv", "sendrecv"})
"""Collectives whose in-place values nccl-tests never checks (their .cu files set reportErrors=0)."""

_SPLIT_BETWEEN_RANKS = frozenset({"all_gather", "reduce_scatter", "alltoall"})


@dataclass(frozen=True)
class Expectation:
    """The requested run."""

    collective: str
    ranks: int
    nodes: tuple[str, ...]
    sizes: tuple[int, ...]
    """Bytes, as the program prints them."""
    values_checked: bool = True
    """False: a timing run (`-c 0`), judged only for speed."""
    most_busbw_gbs: float = BUSBW_MAX_GBS
    """A higher figure was not measured."""


def doubling(smallest: int, largest: int) -> tuple[int, ...]:
    """Message sizes in bytes for `-b smallest -e largest -f 2`."""
    sizes = []
    while smallest <= largest:
        sizes.append(smallest)
        smallest *= 2
    return tuple(sizes)


def printed_size(collective: str, size: int, ranks: int) -> int:
    """The size that nccl-tests prints for a requested size, float32.

    Collectives that split the buffer give each rank a multiple of 16 bytes.
    """
    if collective not in _SPLIT_BETWEEN_RANKS:
        return size
    return (size // ranks // 16) * 16 * ranks


def judge_table(table: NcclTable, expected: Expectation) -> list[Finding]:
    """Every problem of a table; empty if it is sound."""
    findings = _wrong_values(table)
    findings += _whole(table, expected)
    findings += _reduced(table, expected)
    findings += _checked(table, expected)
    findings += _possible(table, expected)
    largest = table.largest
    if largest is not None and expected.ranks > 1 and not (0 < largest.busbw_gbs < math.inf):
        findings.append(
            Finding(Status.UNKNOWN, f"the bus bandwidth at {largest.size} B reads {largest.busbw_gbs}")
        )
    return findings


def _possible(table: NcclTable, expected: Expectation) -> list[Finding]:
    """A bandwidth in any row that exceeds the hardware: the run counts as not measured."""
    most = expected.most_busbw_gbs
    for row in table.rows:
        for side in (row.out_of_place, row.in_place):
            if side.busbw_gbs > most:
                what = f"the bus bandwidth at {row.size} B"
                return [Finding(Status.UNKNOWN, impossible(what, side.busbw_gbs, most, "GB/s"))]
    return []


def _wrong_values(table: NcclTable) -> list[Finding]:
    wrong = {
        row.size: (row.out_of_place.wrong or 0) + (row.in_place.wrong or 0)
        for row in table.rows
        if row.out_of_place.wrong or row.in_place.wrong
    }
    if wrong:
        shown = ", ".join(f"{count} at {size} B" for size, count in wrong.items())
        return [Finding(Status.FAIL, f"wrong values: {shown}")]
    if table.out_of_bounds:
        return [Finding(Status.FAIL, f"out of bounds values: {table.out_of_bounds}")]
    return []


def _whole(table: NcclTable, expected: Expectation) -> list[Finding]:
    findings = []
    if table.malformed:
        findings.append(Finding(Status.UNKNOWN, f"a line cannot be read: {table.malformed[0].strip()[:120]}"))
    # all_gather and similar print rows of 0 bytes for sizes too small to split
    sizes = [row.size for row in table.rows if row.size]
    most = math.inf if table.reduced_to is None else table.reduced_to
    missing = [size for size in expected.sizes if size and size <= most and size not in sizes]
    if missing:
        shown = ", ".join(map(str, missing[:5])) + (" ..." if len(missing) > 5 else "")
        findings.append(Finding(Status.UNKNOWN, f"{len(missing)} rows are missing: {shown} B"))
    elif not sizes:
        findings.append(Finding(Status.UNKNOWN, "no row has a size"))
    if len(set(sizes)) != len(sizes):
        findings.append(
            Finding(Status.UNKNOWN, "a size appears twice: the ranks ran separately, or two runs are mixed")
        )
    if not table.complete:
        findings.append(Finding(Status.UNKNOWN, "the output ends before its summary"))
    if table.collective is not None and table.collective.removesuffix("_perf") != expected.collective:
        findings.append(
            Finding(Status.UNKNOWN, f"this is output of {table.collective}, not of {expected.collective}")
        )
    return findings + _ranks(table, expected)


def _reduced(table: NcclTable, expected: Expectation) -> list[Finding]:
    """Sizes that the program left out because its buffers do not fit; reported, and not counted as missing rows."""
    if table.reduced_to is None:
        return []
    left_out = [size for size in expected.sizes if size > table.reduced_to]
    if not left_out:
        return []
    said = f"sizes over {table.reduced_to} B do not fit the GPU memory and were left out"
    return [Finding(Status.OUT_OF_SCOPE, said)]


def _ranks(table: NcclTable, expected: Expectation) -> list[Finding]:
    if len(table.hosts) != expected.ranks:
        return [Finding(Status.UNKNOWN, f"{len(table.hosts)} of {expected.ranks} ranks took part")]
    # nccl-tests prints the host's name up to the first dot
    absent = {name.split(".")[0] for name in expected.nodes} - {name.split(".")[0] for name in table.hosts}
    if absent:
        return [Finding(Status.UNKNOWN, f"no rank ran on {', '.join(sorted(absent))}")]
    return []


def _checked(table: NcclTable, expected: Expectation) -> list[Finding]:
    if not expected.values_checked:
        return [Finding(Status.OUT_OF_SCOPE, "values were not checked, as declared: a timing run (-c 0)")]
    if table.validated is False:
        return [Finding(Status.UNKNOWN, "the run did not check values (validation: 0)")]
    in_place_too = expected.collective not in NOT_CHECKED_IN_PLACE
    unchecked = [
        row.size
        for row in table.rows
        if row.size and (row.out_of_place.wrong is None or (in_place_too and row.in_place.wrong is None))
    ]
    if unchecked:
        return [Finding(Status.UNKNOWN, f"values were not checked (N/A) at {len(unchecked)} sizes")]
    return []
