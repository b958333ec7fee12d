"""The last lines of a node's serial console: the only evidence of a node that does not answer."""

from __future__ import annotations

import os
import re
from pathlib import Path

from rackwright.boundary import printable
from rackwright.lab import names
from rackwright.lab.qemu import CONSOLE_LOG
from rackwright.model.cluster import Cluster, Node
from rackwright.model.types import Platform

LINES = 15
_READ_BYTES = 64 * 2**10
_LINE_MAX = 200
_TERMINAL = re.compile(r"\x1b\[[0-9;?=]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>78cM]")
"""Escape sequences of firmware and boot loaders: colours, cursor moves, character sets (ECMA-48, VT100)."""


def last_lines(cluster: Cluster, node: Node) -> str:
    """A sentence with the console's last lines, or why there are none; never raises."""
    log = log_of(cluster, node)
    if log is None:
        return f"no serial console of {node.name} is declared"
    try:
        with log.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - _READ_BYTES, 0))
            text = file.read(_READ_BYTES).decode(errors="replace")
    except OSError as error:
        return f"cannot read its serial console {log}: {error.strerror}"
    lines = readable(text)
    return (
        "\n".join(["last lines of its serial console:", *lines]) if lines else "its serial console is silent"
    )


def log_of(cluster: Cluster, node: Node) -> Path | None:
    """File with the console log; None if none is declared. So far only the lab's virtual machines have one."""
    if node.lab is None or node.platform is not Platform.VM:
        return None
    return names.node_state(cluster.name, node.name) / CONSOLE_LOG


def readable(text: str) -> list[str]:
    """The last non-empty lines, printable; of an overwritten line, only the last text."""
    lines = (line.rstrip().rpartition("\r")[2].strip() for line in _TERMINAL.sub("", text).split("\n"))
    return [printable(line, _LINE_MAX) for line in lines if line][-LINES:]
