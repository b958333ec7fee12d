"""What installations and discoveries print: a line for each change of state, and a table at the end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from rich.table import Table
from rich.text import Text

from rackwright.cli.progress import Waiting
from rackwright.cli.terminal import Console
from rackwright.durations import History
from rackwright.errors import ExitCode
from rackwright.install.run import Outcome
from rackwright.install.states import State
from rackwright.install.survey import Line
from rackwright.model.cluster import Node

_STYLE = {
    State.READY: "green",
    State.SURVEYED: "green",
    State.ERASED: "green",
    State.FAILED: "red",
    State.HELD: "yellow",
}


class Steps:
    """Prints each change of state as it happens, from many threads; within `live()` it also shows what is waited for."""

    def __init__(self, console: Console, history: History | None = None) -> None:
        self._console, self._lock, self._begun = console, Lock(), time.monotonic()
        self._history = history
        self._waiting: Waiting | None = None

    @contextmanager
    def live(self) -> Iterator[None]:
        """On a terminal, show each node's state while this lasts. Ask the operator nothing meanwhile."""
        if not self._console.is_terminal:
            yield
            return
        with Waiting(self._console, self._history) as self._waiting:
            yield

    def __call__(self, node: str, state: State, reason: str) -> None:
        self._follow(node, state)
        with self._lock:
            line = Text(f"{time.monotonic() - self._begun:6.0f} s  {node}: ")
            line.append(str(state), style=_STYLE.get(state, ""))
            self._console.print(line.append(f"  {reason}" if reason else ""), soft_wrap=True, highlight=False)

    def _follow(self, node: str, state: State) -> None:
        if self._waiting is None:
            return
        self._waiting.end(node, well=state is not State.FAILED)
        if state not in _STYLE:  # those are where a node stays
            self._waiting.begin(node, f"{node}  {state}", str(state))


def show_plan(console: Console, nodes: Sequence[Node], verb: str, *, serials: bool = True) -> None:
    """What would be done to which machine.

    + serials: False where the serial number is to be read off the machine and typed
    """
    table = Table(title=f"to be {verb}", title_justify="left")
    shown = ("serial",) if serials else ()
    for column in ("node", "BMC", *shown, "MAC", "image", "disk", "boot"):
        table.add_column(column, overflow="fold")
    for node in nodes:
        install = node.install
        boot = (
            "-"
            if install is None
            else f"{install.boot}, Secure Boot {'on' if install.secure_boot else 'off'}"
        )
        cells = (
            node.name,
            "-" if node.bmc is None else f"{node.bmc.address} {node.bmc.protocol}",
            *((node.serial or "as its BMC reports",) if serials else ()),
            node.mac or "-",
            "-" if install is None else str(install.image or install.installer or "-"),
            "-" if install is None else _disks(node),
            boot,
        )
        table.add_row(*map(Text, cells))
    console.print(table)


def _disks(node: Node) -> str:
    install = node.install
    if install is None or install.diskless:
        return "none: in memory"
    rule = install.disk
    named = " ".join((*rule.serials, *rule.by_path)) or f"model {rule.model}"
    words = [named, "mirrored" if install.mirror else "", "LVM" if install.volumes == "lvm" else ""]
    return ", ".join(filter(None, words))


def show_outcomes(console: Console, outcomes: Sequence[Outcome]) -> None:
    """A row for each node, and the next step of those that need one."""
    table = Table()
    for column in ("node", "state", "time", "reason"):
        table.add_column(column, overflow="fold")
    for one in outcomes:
        state = "left alone" if one.refused else str(one.state)
        table.add_row(
            one.node,
            Text(state, style=_STYLE.get(one.state, "")),
            f"{one.seconds:.0f} s",
            Text(one.reason),  # it may quote what an agent found: no markup
        )
    console.print(table)
    for one in outcomes:
        if one.hint is not None:
            console.print(Text(f"hint: {one.node}: {one.hint}"), soft_wrap=True)


def exit_code(outcomes: Sequence[Outcome], wanted: State) -> ExitCode:
    """ERROR where a node did not get there, else CHECK_FAILED where one was left alone, else CLEAN."""
    if any(one.state is not wanted and not one.refused for one in outcomes):
        return ExitCode.ERROR
    return ExitCode.CHECK_FAILED if any(one.refused for one in outcomes) else ExitCode.CLEAN


def show_survey(console: Console, node: str, lines: Sequence[Line]) -> None:
    """What was found beside what is declared."""
    table = Table(title=node, title_justify="left")
    for column in ("", "declared", "found", ""):
        table.add_column(column, overflow="fold")
    for line in lines:
        style, word = {True: ("green", "agrees"), False: ("red", "differs"), None: ("", "")}[line.agrees]
        table.add_row(line.what, Text(line.declared or "-"), Text(line.found, style=style), word)
    console.print(table)
