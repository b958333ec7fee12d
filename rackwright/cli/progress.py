"""Live progress of long work on standard error: what is waited for, for how long, and how long it usually takes.

`Waiting` is what all commands use; `Progress` is the one that follows the engine's runs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import RLock
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rackwright.durations import History, NoHistory, duration, usual_words
from rackwright.engine.former_runs import whole
from rackwright.model.ranges import fold

_SHOWN = 8
_LEAST_SECONDS = 1.0
"""What took less had nothing to do, e.g. because an image was there already: it is not recorded."""
_SHOWN_AFTER_SECONDS = 3.0
"""Seconds after which the time that something takes is shown."""
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


@dataclass(frozen=True)
class _Awaited:
    """One thing that is waited for."""

    text: str
    step: str
    """Its name in the history."""
    began: float
    """By time.monotonic()."""
    usual: str | None

    def times(self, now: float) -> str:
        """E.g. `42 s, usually 1 min 40 s`."""
        taken = now - self.began
        words = [duration(taken)] if taken >= _SHOWN_AFTER_SECONDS else []
        return ", ".join([*words, *([self.usual] if self.usual else [])])


class Waiting:
    """Shows what is waited for; a context manager, whose methods may be called from any thread.

    On a terminal the display is live and is gone at the end, however that comes. Elsewhere there is one line for
    each thing when it begins. What ended well is recorded in the history.
    """

    def __init__(self, console: Console, history: History | None = None) -> None:
        self._console = console
        self._history = history if history is not None else NoHistory()
        self._awaited: dict[str, _Awaited] = {}
        self._lock = RLock()
        self._live = (
            Live(console=console, get_renderable=self._table, refresh_per_second=4, transient=True)
            if console.is_terminal
            else None
        )

    def __enter__(self) -> Self:
        self.resume()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pause()
        for name in list(self._awaited):
            self.end(name, well=kind is None)

    def pause(self) -> None:
        """Remove the live display, for a prompt or at the end."""
        if self._live is not None:
            self._live.stop()

    def resume(self) -> None:
        """Show it again."""
        if self._live is not None:
            self._live.start()

    def begin(self, name: str, text: str, step: str | None = None) -> None:
        """Wait for something; the one of this name before it has ended well.

        + text: what is shown, e.g. `worker1: installing`
        + step: what the history calls it; `text` without it
        """
        with self._lock:
            self.end(name)
            step = step if step is not None else text
            one = _Awaited(text, step, time.monotonic(), usual_words(self._history.of(step)))
            self._awaited[name] = one
            if self._live is None:
                self._began(one)

    def end(self, name: str, *, well: bool = True) -> None:
        """It has ended; nothing where nothing of this name is waited for."""
        with self._lock:
            one = self._awaited.pop(name, None)
            taken = time.monotonic() - one.began if one is not None else 0.0
            if one is not None and well and taken >= _LEAST_SECONDS:
                self._history.record(one.step, taken)

    def step(self, text: str) -> None:
        """The next of steps that follow one another."""
        self.begin("", text)

    def print(self, text: str) -> None:
        """A line that stays, above what is live."""
        self._console.print(Text(text), soft_wrap=True)

    def _began(self, one: _Awaited) -> None:
        self.print(f"{one.text} ({one.usual})" if one.usual else one.text)

    def _table(self) -> Table:
        now = time.monotonic()
        table = Table.grid(padding=(0, 2))
        with self._lock:
            rows = list(self._awaited.values())
        for one in rows[:_SHOWN]:
            table.add_row(Text(one.text), Text(one.times(now), style="dim"))
        if len(rows) > _SHOWN:
            table.add_row(Text(f"and {len(rows) - _SHOWN} more"), "")
        return table


class Progress(Waiting):
    """Counts nodes and shows what some of them are doing; a Watcher for the engine.

    Where stderr is not a terminal it prints one line per finished node instead.
    """

    def __init__(self, nodes: int, console: Console, history: History | None = None) -> None:
        self._nodes = nodes
        self._done: dict[str, set[str]] = {"planned": set(), "applied": set()}
        """Nodes: one that reboots is planned and applied again."""
        self._changing: set[str] = set()
        self._began_at: float | None = None
        """When the first wave began."""
        super().__init__(console, history)  # last: the display draws itself at once

    def __call__(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "started":
            doing = f"{event['role']}: {event['name']}"
            self.begin(event["node"], f"{event['node']}  {doing}", doing)
        elif kind == "planned":
            self._done["planned"].add(event["plan"]["node"])
            if event["plan"]["operations"]:
                self._changing.add(event["plan"]["node"])
        elif kind == "applied":
            self._done["applied"].add(event["outcome"]["node"])
            self.end(event["outcome"]["node"])
            if self._live is None:
                self._print_done(event["outcome"])
        elif kind == "notice":
            self._console.print(event["text"], highlight=False, markup=False)
        elif kind == "stopping":
            self._console.print("stopping after the current operation; press Ctrl-C again to exit at once")
        elif (text := step_text(event)) is not None:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)
        if kind == "wave" and self._began_at is None:
            self._began_at = time.monotonic()

    def _began(self, one: _Awaited) -> None:
        """Operations are too many for a line each."""

    def _print_done(self, outcome: dict[str, Any]) -> None:
        state = "done" if outcome["ok"] else "failed"
        self._console.print(f"{outcome['node']}: {state} after {outcome['seconds']:.1f} s", highlight=False)

    def _table(self) -> Table:
        counts = f"planned {len(self._done['planned'])}/{self._nodes}  applied {len(self._done['applied'])}"
        outer = Table.grid()
        outer.add_row(Text.assemble(counts, "  ", (self._whole(), "dim")))
        if self._awaited:
            outer.add_row(super()._table())
        return outer

    def _whole(self) -> str:
        """How long the run has taken since its first wave, and how long such runs usually take."""
        if self._began_at is None:
            return ""
        usual = usual_words(self._history.of(whole(len(self._changing))))
        return ", ".join(filter(None, (duration(time.monotonic() - self._began_at), usual)))
