"""Asks for what an erasure needs: the serial number of each machine whose disks are listed, typed at this terminal."""

from __future__ import annotations

import os
import select
import sys
import termios
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from rackwright.boundary import printable
from rackwright.cli.terminal import Console
from rackwright.errors import InstallError
from rackwright.install.erasure import MODE, judge
from rackwright.install.inventory import Inventory
from rackwright.install.record import Journal, Record
from rackwright.install.run import confirm
from rackwright.install.states import State
from rackwright.model.cluster import Cluster, Node

_LINE_MAX = 4096


class Consent:
    """Called repeatedly while machines work: lists the disks of those that wait, and takes what is typed."""

    def __init__(self, cluster: Cluster, nodes: Sequence[Node], console: Console) -> None:
        self._cluster, self._console = cluster, console
        self._journals = {node.name: (node, Journal(cluster.name, node.name)) for node in nodes}
        self._shown: dict[str, object] = {}
        self._terminal = sys.stdin.isatty()

    def __call__(self) -> None:
        waiting = [
            (node, record) for node, journal in self._journals.values() if _waits(record := journal.record)
        ]
        for node, record in waiting:
            if self._shown.get(node.name) != (record.run, record.held):
                self._shown[node.name] = (record.run, record.held)
                self._show(node, record)
        if waiting and self._terminal and (typed := self._line()) is not None:
            self._take(typed, waiting)

    def _show(self, node: Node, record: Record) -> None:
        self._console.print(disk_table(node, record))
        if self._terminal:
            termios.tcflush(
                sys.stdin, termios.TCIFLUSH
            )  # what was typed before the list does not agree to it
            text = f"Type the serial number of {node.name}'s machine to erase ALL these disks for good:"
        else:
            text = (
                f"to erase ALL these disks for good: rackwright decommission FILE --erase {node.name}=SERIAL"
            )
        self._console.print(Text(text), soft_wrap=True)

    def _line(self) -> str | None:
        """A line that was typed, without waiting for one."""
        if not select.select([sys.stdin], [], [], 0)[0]:
            return None
        typed = os.read(sys.stdin.fileno(), _LINE_MAX)
        self._terminal = bool(typed)  # it was closed
        return typed.decode(errors="replace").strip() or None

    def _take(self, typed: str, waiting: Sequence[tuple[Node, Record]]) -> None:
        meant = [node for node, record in waiting if typed in record.held]
        if not meant:
            names = ", ".join(node.name for node, _ in waiting)
            text = f"{printable(typed, 60)!r} is not the serial number of a machine that waits ({names})"
            self._console.print(Text(text), soft_wrap=True)
        for node in meant:
            try:
                confirm(self._cluster, node, typed, MODE)
            except InstallError as error:  # its run has ended in this moment
                self._console.print(Text(error.message), soft_wrap=True)


def _waits(record: Record) -> bool:
    return (
        record.mode == MODE
        and record.state is State.HELD
        and any(record.confirmed.get(name) != content for name, content in record.held.items())
    )


def disk_table(node: Node, record: Record) -> Table:
    """All disks of a machine that waits, and what they hold."""
    erasure = judge(node, Inventory.model_validate(record.inventory), record)
    table = Table(title=f"{node.name}: ALL of this is erased", title_justify="left")
    for column in ("disk", "serial", "model", "size", "holds"):
        table.add_column(column, overflow="fold")
    listed = [(disk, ", ".join(disk.signatures) or "no known signature") for disk in erasure.disks]
    listed += [(disk, f"CANNOT BE ERASED: {why}") for disk, why in erasure.left]
    for disk, holds in listed:
        size = f"{disk.size_bytes / 10**9:.0f} GB"
        table.add_row(*map(Text, (disk.path, disk.serial or "-", disk.model or "-", size, holds)))
    return table
