"""The cable list of a fabric: a CSV file with one row for each cable."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

from rackwright.documents.nearest import nearest, short, suggest
from rackwright.model.fabric import Cable, End, NodePort, SwitchPort
from rackwright.model.plain_text import mistake_in
from rackwright.model.text import label_mistake

COLUMNS = ("from", "from_port", "to", "to_port")
OPTIONAL = ("speed_gbps", "lanes", "label")
MAX_BYTES = 16 * 2**20
MAX_LINE = 1000
MAX_LABEL = 64
MAX_MISTAKES = 20
LANES = (1, 2, 4, 8, 12)
_ENDS_OF_LINES = re.compile(r"\r\n|\r|\n")
_RAIL = re.compile(r"(?:rail[ _-]?)?([0-9]{1,2})", re.IGNORECASE | re.ASCII)
_SPEED = re.compile(r"[0-9]{1,4}(\.[0-9]{1,3})?")
_NUMBERS = re.compile(r"[0-9]+")
_PORT = re.compile(r"[1-9][0-9]{0,3}")
_HEADER_HINT = f"begin the list with `{','.join(COLUMNS)}`; {', '.join(OPTIONAL)} may follow"
_PORT_HINT = "a port of a switch is a number from 1"


@dataclass(frozen=True)
class Names:
    """What the rows of a list can name."""

    network: str
    nodes: Collection[str]
    """Every node of the cluster; any other name is a switch."""
    ports: Collection[NodePort]
    """Of the nodes on the network."""
    switches: Collection[str] = ()
    """That the cluster file names."""
    every_leaf: bool = False
    """Whether a node can be cabled to these switches alone."""
    every_switch: bool = False
    """Whether a cable between switches can end in these alone."""

    @cached_property
    def like_nodes(self) -> frozenset[str]:
        """Names of nodes without their numbers, that no declared switch is called like."""
        return frozenset(map(_stem, self.nodes)) - frozenset(map(_stem, self.switches))


def _stem(name: str) -> str:
    return _NUMBERS.sub("#", name)


@dataclass(frozen=True, slots=True)
class ListMistake:
    """One mistake in a list; the message begins with the file and line."""

    message: str
    hint: str | None = None


@dataclass
class CableList:
    """The rows that can be read, and what is wrong with others."""

    cables: list[Cable] = field(default_factory=list)
    mistakes: list[ListMistake] = field(default_factory=list)


Hint = str | Callable[[], str | None] | None


class _Wrong(Exception):  # noqa: N818 - why a row or a file is not read
    def __init__(self, message: str, hint: Hint = None) -> None:
        super().__init__(message)
        self.message = message
        self._hint = hint

    @property
    def hint(self) -> str | None:
        """What to do; names that are near take a while to find."""
        return self._hint() if callable(self._hint) else self._hint


def read_cable_list(path: Path, names: Names) -> CableList:
    """The cables of a list, and every mistake in it."""
    found = CableList()
    try:
        lines = _lines(_text(path))
        header = _header(path, lines)
    except _Wrong as wrong:
        found.mistakes.append(ListMistake(wrong.message, wrong.hint))
        return found
    seen: dict[frozenset[End], int] = {}
    for number, line in lines:
        where = f"{path.name}:{number}"
        try:
            row = _row(line, header)
            cable = _cable(row, where, names) if any(row.values()) else None
            if cable is not None:
                earlier = seen.setdefault(frozenset(cable.ends), number)
                if earlier != number:
                    raise _Wrong(f"This cable is in line {earlier} already.", "remove one of the rows")
                found.cables.append(cable)
        except _Wrong as wrong:
            hint = wrong.hint if len(found.mistakes) < MAX_MISTAKES else None
            found.mistakes.append(ListMistake(f"{where}: {wrong.message}", hint))
    return found


def _text(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():
            hint = "give the file inside it" if path.is_dir() else None
            raise _Wrong(f"{path} is not a file.", hint)
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _Wrong(f"{path} does not exist.", "the path is relative to the cluster file") from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise _Wrong(f"{path} cannot be read: {reason}.") from None
    if len(raw) > MAX_BYTES:
        raise _Wrong(f"{path.name} is larger than {MAX_BYTES // 2**20} MiB.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = len(_ENDS_OF_LINES.findall(raw[: error.start].decode())) + 1
        byte = f"byte 0x{raw[error.start]:02x} is not a character"
        raise _Wrong(
            f"{path.name}:{line}: The file is not UTF-8: {byte}.", "save the file as UTF-8"
        ) from None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are neither blank nor a comment, with their numbers."""
    for number, line in enumerate(_ENDS_OF_LINES.split(text), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line


def _header(path: Path, lines: Iterator[tuple[int, str]]) -> tuple[str, ...]:
    """The columns, as the first row names them."""
    number, line = next(lines, (0, ""))
    if not number:
        raise _Wrong(f"{path.name} is empty.", _HEADER_HINT)
    where = f"{path.name}:{number}: "
    try:
        header = tuple(cell.lower() for cell in _cells(line.rstrip(", \t")))
    except _Wrong as wrong:
        raise _Wrong(f"{where}{wrong.message}", wrong.hint) from None
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        other = next((sign for sign in (";", "\t") if sign in line), None)
        hint = "separate the columns with commas" if other else _HEADER_HINT
        raise _Wrong(f"{where}The header lacks {', '.join(missing)}.", hint)
    for index, column in enumerate(header):
        if column in header[:index]:
            raise _Wrong(
                f"{where}The header has {short(column) or 'a column without a name'} twice.", "remove one"
            )
        if column not in (*COLUMNS, *OPTIONAL):
            known = suggest(column, (*COLUMNS, *OPTIONAL), what="columns")
            raise _Wrong(
                f"{where}Unknown column {short(column)}." if column else f"{where}A column has no name.",
                known,
            )
    return header


def _cells(line: str) -> list[str]:
    if len(line) > MAX_LINE:
        raise _Wrong(f"The line has more than {MAX_LINE} characters.")
    try:
        return [cell.strip() for cell in next(csv.reader([line], strict=True, skipinitialspace=True))]
    except csv.Error as error:
        hint = 'put a text with commas or quotes in quotes, and double quotes in it: "K17 ""spare"""'
        if "unexpected end" in str(error):
            raise _Wrong("A quote is not closed on its line.", hint) from None
        raise _Wrong("A quote ends before its text does.", hint) from None


def _row(line: str, header: tuple[str, ...]) -> dict[str, str]:
    cells = _cells(line)
    if any(cells[len(header) :]):
        raise _Wrong(
            f"The row has {len(cells)} columns, the header {len(header)}.",
            "put a label with commas in quotes",
        )
    row = dict.fromkeys((*COLUMNS, *OPTIONAL), "") | dict(zip(header, cells, strict=False))
    for column, text in row.items():
        wrong = mistake_in(text, what=f"column {column}")
        if wrong is not None:
            raise _Wrong(*wrong)
    return row


def _cable(row: dict[str, str], where: str, names: Names) -> Cable:
    if not all(row[column] for column in COLUMNS):
        raise _Wrong("A cable has two ends, each with a name and a port.", "e.g. `gpu017,rail3,su1-leaf4,12`")
    near, far = _end(row["from"], row["from_port"], names), _end(row["to"], row["to_port"], names)
    if isinstance(near, SwitchPort) and isinstance(far, NodePort):
        near, far = far, near
    if isinstance(far, NodePort):
        raise _Wrong(f"{near} and {far} are both ports of nodes.", "a cable of a node ends in a switch")
    _check_switches(near, far, names)
    speed, lanes, label = row["speed_gbps"], row["lanes"], row["label"]
    gbps = float(speed) if _SPEED.fullmatch(speed) else None
    if speed and (gbps is None or not 0 < gbps <= 3200):
        raise _Wrong(f"{short(speed)} is not a speed in Gb/s.", "e.g. `400`")
    if lanes and lanes not in map(str, LANES):
        raise _Wrong(f"{short(lanes)} is not a number of lanes.", f"lanes: {', '.join(map(str, LANES))}")
    if len(label) > MAX_LABEL:
        raise _Wrong(f"A label has at most {MAX_LABEL} characters.")
    return Cable(near, far, gbps, int(lanes) if lanes else None, label or None, where)


def _end(name: str, port: str, names: Names) -> End:
    if name in names.nodes:
        rail = _RAIL.fullmatch(port)
        if rail is None:
            raise _Wrong(f"{short(port)} is not a rail of {name}.", "e.g. `rail0`")
        end = NodePort(name, int(rail[1]))
        if end not in names.ports:
            raise _Wrong(f"{end} has no address on {names.network}.", lambda: _rails(name, names))
        return end
    if _PORT.fullmatch(port):
        mistake = label_mistake(name)
        if mistake is not None:
            raise _Wrong(f"{short(name)} is not the name of a switch.", mistake[0].lower() + mistake[1:-1])
        return SwitchPort(name, int(port))
    if name not in names.switches and _RAIL.fullmatch(port):
        raise _Wrong(f"Unknown node {short(name)}.", lambda: nearest(name, names.nodes) or _PORT_HINT)
    raise _Wrong(f"{short(port)} is not a port of {short(name)}.", f"{_PORT_HINT}, e.g. `12`")


def _rails(node: str, names: Names) -> str | None:
    there = ", ".join(str(port.rail) for port in names.ports if port.node == node)
    return f"rails of {node}: {there}" if there else None


def _near_switch(name: str, names: Names, otherwise: str) -> str:
    return nearest(name, names.switches) or otherwise


def _check_switches(near: End, far: SwitchPort, names: Names) -> None:
    """Raise _Wrong for a switch that is not declared, and for a cable from a switch to itself."""
    switches = [near.switch, far.switch] if isinstance(near, SwitchPort) else [far.switch]
    every = names.every_leaf if isinstance(near, NodePort) else names.every_switch
    for switch in switches:
        if switch in names.switches:
            continue
        add = f"a switch of the list alone is declared with `switches: {{{switch}: {{}}}}`"
        if _stem(switch) in names.like_nodes:
            raise _Wrong(f"Unknown node {switch}.", add)
        if every:
            raise _Wrong(f"Unknown switch {switch}.", partial(_near_switch, switch, names, add))
    if len(switches) > len(set(switches)):
        raise _Wrong(f"Both ends of the cable are in {far.switch}.", "a cable joins two switches")
