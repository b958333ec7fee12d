"""The base file with a section `fabrics:`, and a cable list beside it."""

from __future__ import annotations

from pathlib import Path

from rackwright.clusterfile.load import load_cluster
from rackwright.model.fabric import Fabric
from tests.unit.clusterfile.base_file import change, problems_of

LEAVES = ("    switch: s[1-2]\n", '    switch: ["a[1-2]", "b[1-2]"]\n')
"""Two units of two nodes, with a leaf for each of their two rails."""
NO_LEAVES = ("    switch: s[1-2]\n", "")
HEADER = "from,from_port,to,to_port"
LIST = "fabrics:\n  ib: {cables: cables.csv}\n"
SECTION_LINE = 29
"""Of what stands first below `fabrics:`."""


def section(text: str) -> tuple[str, str]:
    return "ssh:\n  user", f"{text}\nssh:\n  user"


def fabric_of(folder: Path, text: str, *edits: tuple[str, str], network: str = "ib") -> Fabric:
    path = folder / "demo.yaml"
    path.write_text(change(section(text), *edits))
    return load_cluster(path).fabrics[network]


def said(folder: Path, text: str, *edits: tuple[str, str]) -> list[tuple[int, str, str | None]]:
    """Line, message and hint of each mistake."""
    return [(one.line, one.message, one.hint) for one in problems_of(folder, change(section(text), *edits))]


def listed(folder: Path, *rows: str, header: str = HEADER) -> None:
    (folder / "cables.csv").write_text("\n".join((header, *rows)) + "\n")
