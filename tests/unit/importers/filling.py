"""Fills in what an imported cluster file lacks, with the examples that its marks give, as an operator would."""

from __future__ import annotations

import re

from rackwright.clusterfile.load import load
from rackwright.errors import ClusterFileError
from rackwright.model.cluster import Cluster

_MARKED = re.compile(
    r"^(?P<indent> *(?:- )?)(?P<key>\w+):(?P<value>.*?) ?# MISSING: .*e\.g\. `(?P<example>[^`]+)`$"
)


def marked_lines(text: str) -> list[int]:
    """Numbers of the lines that are marked, from 1."""
    return [number for number, line in enumerate(text.splitlines(), 1) if "# MISSING:" in line]


def filled(text: str) -> str:
    """The file with every example in its place."""
    lines: list[str] = []
    roles: str | None = None
    for line in text.splitlines():
        match = _MARKED.match(line)
        if match is None and roles is not None and line.strip().startswith("roles:"):
            line, roles = f"    {roles}", None
        if match is None:
            lines.append(line)
        elif match["key"] == "nodes":  # what is missing is another key of the group
            lines.append(f"{match['indent']}nodes:{match['value']}")
            if match["example"].startswith("roles:"):
                roles = match["example"]
            else:
                lines.append(f"    {match['example']}")
        else:
            lines.append(f"{match['indent']}{match['key']}: {match['example']}")
    return "\n".join(lines) + "\n"


def mistake_lines(path, text: str) -> list[int]:
    """Numbers of the lines that `validate` reports."""
    path.write_text(text)
    try:
        load(path)
    except ClusterFileError as error:
        return [problem.line for problem in error.problems]
    return []


def round_trip(path, text: str) -> Cluster:
    """The cluster of an imported file once it is filled in; what is marked is precisely what `validate` reports."""
    assert mistake_lines(path, text) == marked_lines(text), text
    path.write_text(filled(text))
    return load(path, warn=True).cluster
