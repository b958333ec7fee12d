"""Parses the output of nccl-tests. Pure: text in, table out, nothing is judged here.

Reads the text output (with the labels mpirun and `srun -l` put before lines) and the JSON that
`-J FILE` writes. The `mpi` engine prints the same columns and is read by the same function.
Format as in NVIDIA/nccl-tests src/util.cu (2.19): size, count, type, redop, root, then time,
algbw, busbw, #wrong out of place and the same four in place. rccl-tests -M (ROCm/rccl-tests#151)
adds algo, proto and nchannels. Published copies often lose the `#` that begins lines, so it may be absent.
"Reducing maxBytes to N due to memory limitation" has the same words from 2.13 to 2.19.6 (src/common.cu, read
2026-11-23); the JSON omits it. Before 2.13.0 (commit 51af557) only the columns a collective needs
are there, and `error` is the largest deviation: the tool counts one that is above a tolerance.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

from rackwright.boundary import printable, read_json

LINE_MAX_CHARACTERS = 4096
"""No line of the table has more than 300; what is longer is passed over."""
_LABEL = re.compile(r"^\s*(?:\[\d+(?:,\d+)?\]<std(?:out|err)>:|\d+: ?)")
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf|-nan|-inf"
_SIDE = rf"({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s+({_NUMBER}|N/A)"
_CHANNELS = r"(?:\s+[A-Za-z]\S*\s+[A-Za-z]\S*\s+\d+)?"
_ROW = re.compile(rf"^\s*(\d+)\s+(\d+)\s+([a-z]\S*)\s+(\S+)\s+(?:-?\d+)\s+{_SIDE}\s+{_SIDE}{_CHANNELS}\s*$")
_OLD_ROW = re.compile(rf"^\s*(\d+)\s+(\d+)\s+([a-z]\S*)(?:\s+([a-z]\w*))?(?:\s+\d+)?\s+{_SIDE}\s+{_SIDE}\s*$")
_LIKE_A_ROW = re.compile(r"^\s*\d+\s+\d+\s+[a-z]")
_HEADER_OF_OLD = re.compile(r"^#?\s*size\s+count\s.*\berror\b")
_OLD_TOLERANCES = {"half": 1e-2, "bfloat16": 1e-2, "float": 1e-5, "double": 1e-12}
"""DeltaMaxValue of src/common.cu before 2.13.0, for each rank but one; whole numbers deviate by nothing."""
_RANK = re.compile(r"^#?\s*Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+(\S+)")
_BOUNDS = re.compile(r"^#?\s*Out of bounds values\s*:\s*(\d+)\s+(OK|FAILED)")
_AVERAGE = re.compile(rf"^#?\s*Avg bus bandwidth\s*:\s*({_NUMBER})")
_STARTING = re.compile(r"^#?\s*Collective test starting:\s*(\S+)")
_VALIDATION = re.compile(r"^#?\s*nThread .*\bvalidation: (\d+)")
_REDUCED = re.compile(r"^#?\s*Reducing maxBytes to (\d+) due to memory limitation")
_VERSIONS = (
    re.compile(r"^(?:# )?(?:.*\s)?(NCCL) version (\d+\.\d+\S*)"),
    re.compile(r"^# (nccl-tests) version (\S+)"),
    re.compile(r"^# (kernel|openmpi|numpy|mpi4py|ray|torch|cupy) version (\S.*?)\s*$"),
)


class Unreadable(ValueError):  # noqa: N818 - reads as the sentence it is
    """The text is not output of nccl-tests, or is from a version with different columns."""


@dataclass(frozen=True)
class Side:
    """Out-of-place or in-place figures of one row."""

    time_us: float
    algbw_gbs: float
    """GB/s (10^9 bytes per second)."""
    busbw_gbs: float
    wrong: int | None
    """Wrong values; None where the test did not look (N/A)."""


@dataclass(frozen=True)
class Row:
    """One message size."""

    size: int
    """Bytes."""
    count: int
    type: str
    redop: str
    out_of_place: Side
    in_place: Side

    @property
    def busbw_gbs(self) -> float:
        """The lower of the two bus bandwidths, GB/s; NaN if either is."""
        figures = (self.out_of_place.busbw_gbs, self.in_place.busbw_gbs)
        return math.nan if any(map(math.isnan, figures)) else min(figures)


@dataclass(frozen=True)
class NcclTable:
    """One run of one collective."""

    collective: str | None
    """The program's name, e.g. `all_reduce_perf`; older versions do not print it."""
    hosts: tuple[str, ...]
    """Host of each rank, by rank; empty when the output does not list them."""
    rows: tuple[Row, ...]
    out_of_bounds: int | None
    """From the footer; None when the output ends before it."""
    average_busbw_gbs: float | None
    validated: bool | None
    """Whether the run checked values; None if the output does not show it."""
    reduced_to: int | None = None
    """Bytes: the largest size after the program reduced it because its buffers do not fit the GPU memory."""
    malformed: tuple[str, ...] = ()
    """Lines that begin like a row but do not parse."""
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether the output reaches its end."""
        return self.out_of_bounds is not None and self.average_busbw_gbs is not None

    @property
    def largest(self) -> Row | None:
        """The row of the largest size."""
        return max(self.rows, key=lambda row: row.size, default=None)


def parse_nccl_tests(text: str) -> NcclTable:
    """Read an output of nccl-tests, text or JSON. Raises Unreadable; never guesses a figure."""
    try:
        return _parse_json(text) if text.lstrip()[:1] == "{" else _parse_text(text)
    except Unreadable:
        raise
    except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
        raise Unreadable(printable(f"{type(error).__name__}: {error}", 200)) from error


def _parse_text(text: str) -> NcclTable:
    lines = [_LABEL.sub("", line) for line in text.splitlines() if len(line) <= LINE_MAX_CHARACTERS]
    old = any(_HEADER_OF_OLD.match(line) for line in lines)
    row = _OLD_ROW if old else _ROW
    rows = [match for line in lines if (match := row.match(line))]
    malformed = tuple(line for line in lines if _LIKE_A_ROW.match(line) and not row.match(line))
    ranks = {int(match[1]): match[2] for line in lines if (match := _RANK.match(line))}
    starting = _first(_STARTING, lines)
    bounds, average = _first(_BOUNDS, lines), _first(_AVERAGE, lines)
    validation, reduced = _first(_VALIDATION, lines), _first(_REDUCED, lines)
    table = NcclTable(
        collective=starting[1] if starting else None,
        hosts=tuple(ranks[rank] for rank in sorted(ranks)),
        rows=tuple(_old_row(match, len(ranks)) if old else _row(match) for match in rows),
        out_of_bounds=_bounds(bounds) if bounds else None,
        average_busbw_gbs=float(average[1]) if average else None,
        validated=validation[1] != "0" if validation else None,
        reduced_to=int(reduced[1]) if reduced else None,
        malformed=malformed,
        versions=_versions(lines),
    )
    if not (table.rows or table.malformed or table.complete or starting):
        raise Unreadable("it has no nccl-tests output")
    return table


def _first(pattern: re.Pattern[str], lines: list[str]) -> re.Match[str] | None:
    return next((match for line in lines if (match := pattern.match(line))), None)


def _bounds(match: re.Match[str]) -> int:
    count = int(match[1])
    return max(count, 1) if match[2] == "FAILED" else count


def _versions(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        for pattern in _VERSIONS:
            if match := pattern.match(line):
                found.setdefault(match[1].lower(), printable(match[2], 80))
    return found


def _row(match: re.Match[str]) -> Row:
    return Row(
        size=int(match[1]),
        count=int(match[2]),
        type=match[3],
        redop=match[4],
        out_of_place=_side(match[5], match[6], match[7], match[8]),
        in_place=_side(match[9], match[10], match[11], match[12]),
    )


def _old_row(match: re.Match[str], ranks: int) -> Row:
    """A row whose error is a deviation; one above the tool's tolerance is a wrong value.

    The tolerance grows with the ranks; if the output does not list them, only the tool's count is used.
    """
    tolerance = _OLD_TOLERANCES.get(match[3], 0.0) * (ranks - 1) if ranks else math.inf
    errors = (
        "N/A" if text == "N/A" else str(int(not _finite(text) <= tolerance)) for text in (match[8], match[12])
    )
    out_of_place, in_place = errors
    return Row(
        size=int(match[1]),
        count=int(match[2]),
        type=match[3],
        redop=match[4] or "none",
        out_of_place=_side(match[5], match[6], match[7], out_of_place),
        in_place=_side(match[9], match[10], match[11], in_place),
    )


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Unreadable(f"the deviation of the values is {text}")
    return value


def _side(time_us: str, algbw: str, busbw: str, wrong: str) -> Side:
    # %g prints large counts as 1e+06
    counted = None if wrong == "N/A" else float(wrong)
    if counted is not None and not math.isfinite(counted):
        raise Unreadable(f"the number of wrong values is {wrong}")
    # half a wrong value is still one: never round down to a pass
    return Side(float(time_us), float(algbw), float(busbw), None if counted is None else math.ceil(counted))


def _parse_json(text: str) -> NcclTable:
    try:
        document = read_json(text)
        if not isinstance(document, dict):
            raise Unreadable("the JSON is not from nccl-tests")
        return _from_document(document)
    except (KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"the JSON lacks a field of nccl-tests: {printable(str(error), 200)}") from error
    except Unreadable:
        raise
    except ValueError as error:
        raise Unreadable(f"the JSON is truncated or malformed: {printable(str(error), 200)}") from error


def _from_document(document: dict[str, Any]) -> NcclTable:
    config = document["config"]
    devices = sorted(config.get("devices") or document.get("devices") or [], key=lambda d: int(d["rank"]))
    bounds, average = document.get("out_of_bounds"), document.get("average_bus_bandwidth")
    arguments = document.get("args") or []
    failed = bounds is not None and str(bounds.get("okay", "true")) == "false"
    return NcclTable(
        collective=str(arguments[0]).rsplit("/", 1)[-1] if arguments else None,
        hosts=tuple(str(device["hostname"]) for device in devices),
        rows=tuple(_json_row(entry) for entry in document["results"]),
        out_of_bounds=max(int(bounds["count"]), int(failed)) if bounds is not None else None,
        average_busbw_gbs=float(average["bandwidth"]) if average is not None else None,
        validated=int(config["validation"]) != 0,
        versions={"nccl": _nccl_version(int(document["nccl_version"]))} if "nccl_version" in document else {},
    )


def _json_row(entry: dict[str, Any]) -> Row:
    def side(key: str) -> Side:
        figures = entry[key]
        time_us = figures["time"] if "time" in figures else figures["cpu_time"]
        wrong = "N/A" if figures["nwrong"] is None else str(figures["nwrong"])
        return _side(str(time_us), str(figures["alg_bw"]), str(figures["bus_bw"]), wrong)

    return Row(
        size=int(entry["size"]),
        count=int(entry["count"]),
        type=str(entry["type"]),
        redop=str(entry["redop"]),
        out_of_place=side("out_of_place"),
        in_place=side("in_place"),
    )


def _nccl_version(code: int) -> str:
    """NCCL_VERSION_CODE as text: 23003 is 2.30.3 (2.9 and later), 2708 is 2.7.8."""
    if code < 10_000:
        return f"{code // 1000}.{code // 100 % 10}.{code % 100}"
    return f"{code // 10000}.{code // 100 % 100}.{code % 100}"
