"""What Storage Scale's commands print with -Y: colons between fields, a header line for each section."""

from __future__ import annotations

from shlex import quote
from urllib.parse import unquote

from rackwright.claims.check import Undetermined

BIN = "/usr/lpp/mmfs/bin"
STATE = f"timeout 60 {BIN}/mmgetstate -Y"
CLUSTER = f"timeout 60 {BIN}/mmlscluster -Y"
CONFIG = f"timeout 60 {BIN}/mmdiag --config -Y"
NO_MEMBER = "does not belong to a GPFS cluster"
_SOURCES = "gpfs.gpl"
"""The package that mmbuildgpl builds the kernel layer from."""


def kernel_word(kernel: str | None) -> str:
    """A kernel as a word of the shell; None: the one that runs."""
    return '"$(uname -r)"' if kernel is None else quote(kernel)


def layer(of: str) -> str:
    """Shell: prints `built` where a kernel has its layer, `older` where its sources were installed after that.

    A layer fits one maintenance level (IBM, "mmbuildgpl command" and autoBuildGPL, read 2026-11-26), and an upgrade leaves
    the modules as they are. dpkg writes a package's list of files anew when it unpacks it. Without the sources (a site
    that installs gpfs.gplbin) the age is meaningless: `built`.
    """
    return (
        f'file=$(modinfo -k {of} -F filename mmfs26) && at=$(stat -Lc %Y "$file") || exit 1; '
        f"since=$(stat -c %Y /var/lib/dpkg/info/{_SOURCES}.list || rpm -q --qf '%{{INSTALLTIME}}' {_SOURCES}) || since=0; "
        '[ "$at" -ge "$since" ] && echo built || echo older'
    )


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
