"""Live progress of a run on standard error."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from rackwright.model.ranges import fold

_SHOWN_NODES = 8
_STEPS = {
    "drain": "draining; running jobs are waited for",
    "drained": "drained",
    "reboot": "rebooting",
    "rebooted": "back after the reboot",
    "verified": "all checks passed",
    "resume": "back in service",
}


def step_text(event: dict[str, Any]) -> str | None:
    """One line about a step of the waves; None: the event is none, or about no node."""
    kind, nodes = event["event"], event.get("nodes", ())
    if kind == "wave":
        return f"wave {event['number']} of {event['of']}: {fold(nodes)}" if event["of"] > 1 else None
    return f"{fold(nodes)}: {_STEPS[kind]}" if kind in _STEPS and nodes else None


class Progress:
    """Counts nodes and shows what some of them are doing; a Watcher for the engine.

    Where stderr is not a terminal it prints one line per finished node instead.
    """

    def __init__(self, nodes: int, console: Console) -> None:
        self._nodes = nodes
        self._console = console
        self._doing: dict[str, str] = {}
        self._done: dict[str, set[str]] = {"planned": set(), "applied": set()}
        """Nodes: one that reboots is planned and applied again."""
        self._live = (
            Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal else None
        )

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pause()

    def pause(self) -> None:
        """Remove the live display, for a prompt or at the end."""
        if self._live is not None:
            self._live.stop()

    def resume(self) -> None:
        """Show it again."""
        if self._live is not None:
            self._live.start()

    def __call__(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "started":
            self._doing[event["node"]] = f"{event['role']}: {event['name']}"
        elif kind == "planned":
            self._done["planned"].add(event["plan"]["node"])
        elif kind == "applied":
            self._done["applied"].add(event["outcome"]["node"])
            self._doing.pop(event["outcome"]["node"], None)
            if self._live is None:
                self._print_done(event["outcome"])
        elif kind == "notice":
            self._console.print(event["text"], highlight=False, markup=False)
        elif kind == "stopping":
            self._console.print("stopping after the current operation; press Ctrl-C again to exit at once")
        elif (text := step_text(event)) is not None:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)
        if self._live is not None:
            self._live.update(self._table())

    def _print_done(self, outcome: dict[str, Any]) -> None:
        state = "done" if outcome["ok"] else "failed"
        self._console.print(f"{outcome['node']}: {state} after {outcome['seconds']:.1f} s", highlight=False)

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        table.add_row(
            f"planned {len(self._done['planned'])}/{self._nodes}", f"applied {len(self._done['applied'])}"
        )
        for node, doing in list(self._doing.items())[:_SHOWN_NODES]:
            table.add_row(node, escape(doing))
        if len(self._doing) > _SHOWN_NODES:
            table.add_row("", f"and {len(self._doing) - _SHOWN_NODES} more nodes")
        return table
