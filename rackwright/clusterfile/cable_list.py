"""The cable list of a fabric: a CSV file with one row for each cable."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rackwright.documents.nearest import short
from rackwright.model.fabric import Cable, End, NodePort, SwitchPort

COLUMNS = ("from", "from_port", "to", "to_port")
OPTIONAL = ("speed_gbps", "lanes", "label")
MAX_BYTES = 16 * 2**20
MAX_MISTAKES = 20
LANES = (1, 2, 4, 8, 12)
_RAIL = re.compile(r"(?:rail[ _-]?)?([0-9]{1,2})", re.IGNORECASE)
_SPEED = re.compile(r"[0-9]{1,4}(\.[0-9]{1,3})?")
_PORT = re.compile(r"[1-9][0-9]{0,3}")


@dataclass
class CableList:
    """The rows that can be read, and what is wrong with others."""

    cables: list[Cable] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)
    """Each a full sentence that begins with the file and line."""


def read_cable_list(path: Path, nodes: frozenset[str]) -> CableList:
    """The cables of a list; `nodes` are the names of the cluster's nodes, every other name is a switch."""
    found = CableList()
    try:
        if path.exists() and not path.is_file():
            found.mistakes.append(f"{path} is not a file.")
            return found
        if path.stat().st_size > MAX_BYTES:
            found.mistakes.append(f"{path.name} is larger than {MAX_BYTES // 2**20} MiB.")
            return found
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        found.mistakes.append(f"{path} cannot be read: {error.strerror}.")
        return found
    except UnicodeDecodeError:
        found.mistakes.append(f"{path.name} is not a text in UTF-8.")
        return found
    try:
        for cable in _rows(text, path.name, nodes, found.mistakes):
            found.cables.append(cable)
    except csv.Error as error:
        found.mistakes.append(f"{path.name} is not a CSV file: {error}.")
    return found


def _rows(text: str, name: str, nodes: frozenset[str], mistakes: list[str]) -> Iterator[Cable]:
    lines = [line if not line.lstrip().startswith("#") else "" for line in text.splitlines()]
    reader = csv.DictReader(lines, strict=True, skipinitialspace=True)
    header = [(column or "").strip() for column in reader.fieldnames or ()]
    reader.fieldnames = header
    missing = [column for column in COLUMNS if column not in header]
    unknown = [column for column in header if column not in (*COLUMNS, *OPTIONAL)]
    if missing or unknown or len(set(header)) < len(header):
        what = f"lacks {', '.join(missing)}" if missing else f"has {short(', '.join(unknown) or 'one twice')}"
        mistakes.append(f"{name}: the first line names the columns {', '.join(COLUMNS)}; this one {what}.")
        return
    for row in reader:
        where = f"{name}:{reader.line_num}"
        values = {key: (value or "").strip() for key, value in row.items() if isinstance(key, str)}
        if None in row:
            mistakes.append(f"{where} has more columns than the first line.")
            continue
        cable = _cable(values, where, nodes)
        if isinstance(cable, str):
            mistakes.append(f"{where}: {cable}")
        else:
            yield cable


def _cable(row: dict[str, str], where: str, nodes: frozenset[str]) -> Cable | str:
    """The cable of a row, or what is wrong with it."""
    near, far = _end(row["from"], row["from_port"], nodes), _end(row["to"], row["to_port"], nodes)
    if isinstance(near, str):
        return near
    if isinstance(far, str):
        return far
    if isinstance(near, SwitchPort) and isinstance(far, NodePort):
        near, far = far, near
    if isinstance(far, NodePort):
        return f"{near} and {far} are both ports of nodes."
    if near == far:
        return f"{near} is at both ends."
    speed, lanes = row.get("speed_gbps", ""), row.get("lanes", "")
    gbps = float(speed) if _SPEED.fullmatch(speed) else None
    if speed and (gbps is None or not 0 < gbps <= 3200):
        return f"{short(speed)} is not a speed in Gb/s, e.g. 400."
    if lanes and lanes not in map(str, LANES):
        return f"{short(lanes)} is not a number of lanes: {', '.join(map(str, LANES))}."
    return Cable(near, far, gbps, int(lanes) if lanes else None, row.get("label") or None, where)


def _end(name: str, port: str, nodes: frozenset[str]) -> End | str:
    if name in nodes:
        rail = _RAIL.fullmatch(port)
        return NodePort(name, int(rail[1])) if rail else f"{short(port)} is not a rail of {name}, e.g. rail0."
    if not name:
        return "A cable has two ends, each with a name and a port."
    number = _PORT.fullmatch(port)
    return (
        SwitchPort(name, int(port)) if number else f"{short(port)} is not a port of {short(name)}, e.g. 12."
    )
