"""What Storage Scale's commands print with -Y: colons between fields, a header line for each section."""

from __future__ import annotations

from urllib.parse import unquote

from rackwright.claims.check import Undetermined

BIN = "/usr/lpp/mmfs/bin"
STATE = f"timeout 60 {BIN}/mmgetstate -Y"
CLUSTER = f"timeout 60 {BIN}/mmlscluster -Y"
CONFIG = f"timeout 60 {BIN}/mmdiag --config -Y"
NO_MEMBER = "does not belong to a GPFS cluster"


def rows(text: str, section: str) -> tuple[dict[str, str], ...]:
    """The lines of a section by the fields of its header; values are percent-encoded."""
    header: list[str] = []
    found = []
    for line in text.splitlines():
        fields = line.split(":")
        if len(fields) < 4 or fields[1] != section:
            continue
        if fields[2] == "HEADER":
            header = fields
        elif header:
            found.append({name: unquote(value) for name, value in zip(header, fields, strict=False) if name})
    if not found:
        raise Undetermined(f"no lines of the section {section!r} are printed: {text.strip()[:80]!r}")
    return tuple(found)


def field(row: dict[str, str], name: str) -> str:
    """A field of a line."""
    if name not in row:
        raise Undetermined(f"the header has no field {name}")
    return row[name]
