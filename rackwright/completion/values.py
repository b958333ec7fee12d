"""Names that a cluster file declares, read without checking it: the file may be in the middle of an edit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rackwright.documents.syntax import DocumentError
from rackwright.documents.yaml_data import YamlBuilder
from rackwright.model.ranges import RangeMistake, expand
from rackwright.state_folder import state_root

_MAX_BYTES = 4 << 20
_RUNS = 20
"""Newest runs that are offered."""
_LAST_COMMA = re.compile(r".*,(?![^\[]*\])")
"""Up to the last comma outside brackets: `gpu[1,2],lo` is `gpu[1,2],` and `lo`."""
Read = dict[str, Any]


def read(path: Path | None) -> Read:
    """The cluster file as plain data; empty where there is none that can be read."""
    try:
        if path is None or path.stat().st_size > _MAX_BYTES:
            return {}
        data = YamlBuilder(path.read_text()).data
    except (OSError, ValueError, DocumentError):
        return {}
    return data if isinstance(data, dict) else {}


def _groups(cluster: Read) -> list[str]:
    """The NodeSets of the groups, as they are written."""
    groups = cluster.get("nodes")
    entries = groups if isinstance(groups, list) else []
    return [one["nodes"] for one in entries if isinstance(one, dict) and isinstance(one.get("nodes"), str)]


def _nodes(cluster: Read, typed: str) -> Iterator[str]:
    for group in _groups(cluster):
        yield from _names(group)


def _names(group: str) -> tuple[str, ...]:
    """None of a range that is malformed."""
    try:
        return expand(group)
    except RangeMistake:
        return ()


def _heads(cluster: Read, typed: str) -> Iterator[str]:
    groups = [one for one in cluster.get("nodes") or () if isinstance(one, dict)]
    yield from _nodes({"nodes": [one for one in groups if "head" in (one.get("roles") or ())]}, typed)


def _nodeset(cluster: Read, typed: str) -> Iterator[str]:
    """Groups as they are written; single names too once a letter is typed."""
    before = match[0] if (match := _LAST_COMMA.match(typed)) else ""
    after = typed.removeprefix(before)
    groups = [group for group in _groups(cluster) if _names(group)]
    names = _nodes(cluster, typed) if after else ()
    yield from (before + name for name in dict.fromkeys((*groups, *names)))


def _serials(cluster: Read, typed: str) -> Iterator[str]:
    return (f"{name}=" for name in _nodes(cluster, typed))


def _keys(cluster: Read, typed: str, *, section: str) -> Iterable[str]:
    found = cluster.get(section)
    return found if isinstance(found, dict) else ()


def _runs(cluster: Read, typed: str) -> list[str]:
    """The newest runs of this user first."""
    return sorted((path.stem for path in state_root().glob("*/runs/*.jsonl")), reverse=True)[:_RUNS]


KINDS: dict[str, Callable[[Read, str], Iterable[str]]] = {
    "NODE": _nodes,
    "HEAD": _heads,
    "NODESET": _nodeset,
    "NODE=SERIAL": _serials,
    "ROLE": partial(_keys, section="roles"),
    "NETWORK": partial(_keys, section="networks"),
    "FILESYSTEM": partial(_keys, section="storage"),
    "ID": _runs,
}
"""What a metavar in the help stands for -> its values."""


def values(kind: str, cluster: Read, typed: str) -> list[str]:
    """The values of a kind that begin with what is typed."""
    found = KINDS[kind](cluster, typed) if kind in KINDS else ()
    return [one for one in found if isinstance(one, str) and one.startswith(typed)]
