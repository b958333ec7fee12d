"""NodeSet ranges: expands `gpu[001-128]` to names, after checking every limit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from math import prod

from ClusterShell.NodeSet import (
    RESOLVER_NOGROUP,
    NodeSet,
    NodeSetException,
    NodeSetParseRangeError,
)
from ClusterShell.RangeSet import RangeSetException

MAX_NAMES = 20_000
"""Most names in one range; Slurm's limit is 65,533 nodes."""

_PLAIN = re.compile(r"[a-z0-9-]+")
_BRACKET = re.compile(r"\[([^\]]*)\]")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?(?:/([0-9]+))?")


class RangeMistake(ValueError):  # noqa: N818 - a mistake in the file, not an internal failure
    """The range is malformed; `message` is a full sentence, `hint` what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def expand(text: str) -> tuple[str, ...]:
    """Names of a NodeSet, in order. Raises RangeMistake; never expands more than MAX_NAMES.

    Node groups (`@name`) are refused: each control node could expand them differently.
    """
    if _PLAIN.fullmatch(text):
        return (text,)
    if re.search(r"\s", text):
        raise RangeMistake("A range must not contain spaces.", "separate several ranges with commas")
    if "@" in text or "*" in text:
        raise RangeMistake(
            "Node groups and wildcards are not allowed in a cluster file.", "e.g. `gpu[001-128]`"
        )
    if text.count("[") != text.count("]"):
        raise RangeMistake("Unbalanced brackets in the range.", "e.g. `gpu[001-128]`")
    pieces = (piece for inside in _BRACKET.findall(text) for piece in inside.split(","))
    if not all(_RANGE.fullmatch(piece) for piece in pieces):
        raise RangeMistake(*_range_mistake(text))
    size = _size(text)
    if size > MAX_NAMES:
        raise RangeMistake(f"The range has more than {MAX_NAMES} names.", None)
    try:
        names = tuple(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except (NodeSetParseRangeError, RangeSetException):
        raise RangeMistake(*_range_mistake(text)) from None
    except NodeSetException:
        raise RangeMistake("Not a valid NodeSet.", "e.g. `gpu[001-128]` or `gpu[1-4],login1`") from None
    if not names:
        raise RangeMistake("The range is empty.", "e.g. `gpu[001-128]`")
    if not re.search(r"[!&^]", text) and len(names) != size:
        raise RangeMistake("The range contains the same name twice.", None)
    return names


def _size(text: str) -> int:
    """Number of names in a range as written, duplicates included; malformed parts count as one."""
    depth, parts, start = 0, [], 0
    for index, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if depth == 0 and letter in ",!&^":
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return sum(
        prod(sum(_width(piece) for piece in inside.split(",")) for inside in _BRACKET.findall(part))
        for part in parts
    )


def _width(piece: str) -> int:
    match = _RANGE.fullmatch(piece)
    if match is None:
        return 1
    first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
    return max(1, (last - first) // max(1, step) + 1)


def _range_mistake(text: str) -> tuple[str, str]:
    for inside in _BRACKET.findall(text):
        for piece in inside.split(","):
            match = _RANGE.fullmatch(piece)
            if not piece:
                return "The range in brackets is empty.", "e.g. `gpu[001-128]`"
            if match is None:
                return "The range in brackets may contain only numbers.", "e.g. `gpu[001-128]`"
            if match[2] and int(match[1]) > int(match[2]):
                return "The range runs backwards.", f"write `{match[2]}-{match[1]}`"
            if match[2] and len(match[1]) != len(match[2]) and "0" in (match[1][0], match[2][0]):
                return (
                    "The numbers of the range have different widths.",
                    f"write `{match[1].zfill(len(match[2]))}-{match[2]}`",
                )
    return "Not a valid NodeSet.", "e.g. `gpu[001-128]`"


def fold(names: Iterable[str]) -> str:
    """Node names in NodeSet form, `gpu[001-016],head1`; Slurm reads it too."""
    nodes = NodeSet.fromlist(sorted(names), resolver=RESOLVER_NOGROUP)
    nodes.fold_axis = (-1,)  # slurm.conf allows at most two ranges in a name
    return str(nodes)


@cache
def unit_name(switches: tuple[str, ...]) -> str:
    """One name for a set of leaf switches: `su1-leaf1-8` for su1-leaf1 to su1-leaf8; a single leaf keeps its name.

    `_` separates non-consecutive numbers: switch names cannot contain it, so 1_3 differs from 1-3.
    """
    return re.sub(r"[][]", "", fold(dict.fromkeys(switches))).replace(",", "_")
