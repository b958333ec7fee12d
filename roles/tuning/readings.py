"""What tools print about a tuned node, read into values: text in, nothing else."""

from __future__ import annotations

import re

from rackwright.boundary import Refused, printable, read_json
from rackwright.claims.check import Undetermined

_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def parse_limits(output: str) -> dict[str, tuple[str, str]]:
    """`prlimit -o RESOURCE,SOFT,HARD --noheadings`: (soft, hard) by resource."""
    rows = (line.split() for line in output.splitlines())
    return {row[0].lower(): (row[1], row[2]) for row in rows if len(row) == 3}


def parse_choice(text: str) -> str | None:
    """The bracketed word of `always [madvise] never`; None if there is none."""
    match = re.search(r"\[([a-z_]+)\]", text)
    return None if match is None else match.group(1)


def parse_size(size: str) -> int:
    """`4G` in bytes."""
    return int(size[:-1]) * _UNITS[size[-1]]


def parse_swaps(text: str) -> tuple[str, ...]:
    """Active swap areas in /proc/swaps; Undetermined when its heading is missing."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith("Filename"):
        raise Undetermined("/proc/swaps is not readable as a list of swap areas")
    return tuple(line.split()[0] for line in lines[1:] if line.strip())


def parse_unit_config(output: str) -> dict[str, str]:
    """`systemd-analyze cat-config systemd/*.conf`: the last value of each key, all sections together."""
    pairs = (line.partition("=") for line in output.splitlines() if not line.lstrip().startswith(("#", ";")))
    return {key.strip(): value.strip() for key, equals, value in pairs if equals}


def parse_json_lines(text: str) -> list[dict[str, object]]:
    """`journalctl -o json`: one object per line; Undetermined for anything else."""
    entries = []
    for line in text.splitlines():
        try:
            entry = read_json(line)
        except Refused as error:
            raise Undetermined(f"journalctl did not print JSON: {printable(line, 80)}") from error
        if not isinstance(entry, dict):
            raise Undetermined(f"journalctl did not print an object: {printable(line, 80)}")
        entries.append(entry)
    return entries
