"""The windows of `rackwright top`: keys, an explanation, a reason for a drain, a confirmation."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from rackwright.boundary import printable_lines

KEYS = (
    ("up, down, PgUp, PgDn", "choose a node"),
    ("/", "show only nodes with these words: a name, a rack, a state, a user, a part of a reason"),
    ("Esc", "leave a window; in the list: show all nodes again"),
    ("w", "why: who drained the node, what is wrong with it, and what to do"),
    ("d", "drain the node: asks for a reason; running jobs go on to their end"),
    ("r", "resume the node: only one that a person drained, and only after a confirmation"),
    ("c", "the node's console, in this terminal"),
    ("f", "ask again now"),
    ("q", "quit"),
)
_WHY_SECONDS = 180
_WHY_MAX = 200_000
"""Characters that are shown."""


class Window(ModalScreen[str | None]):
    """A window over the list, which Esc closes."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close")]

    def action_close(self) -> None:
        self.dismiss(None)


class Help(Window):
    """The keys."""

    def compose(self) -> ComposeResult:
        width = max(len(key) for key, _ in KEYS)
        lines = "\n".join(f"{key:<{width}}  {what}" for key, what in KEYS)
        with Vertical():
            yield Label("Keys")
            yield Static(Text(lines))


class Why(Window):
    """What `rackwright why` prints, in a process that ends with the window."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,w", "close", "Close")]

    def __init__(self, node: str, program: Sequence[str]) -> None:
        super().__init__()
        self._node = node
        self._program = list(program)
        self._process: subprocess.Popen[str] | None = None

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(Text(f"why {self._node}"))
            with VerticalScroll():
                yield Static(Text(f"asking about {self._node} ..."), id="text")

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        threading.Thread(target=self._ask, name="why", daemon=True).start()

    def on_unmount(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def _ask(self) -> None:
        try:
            self._process = process = subprocess.Popen(
                self._program,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
            text = _output_of(process)
        except OSError as error:
            text = f"UNKNOWN: {error}"
        with contextlib.suppress(RuntimeError):  # the program has ended meanwhile
            self.app.call_from_thread(self._show, text)

    def _show(self, text: str) -> None:
        if self.is_attached:
            self.query_one("#text", Static).update(Text(printable_lines(text[:_WHY_MAX].strip())))


def _output_of(process: subprocess.Popen[str]) -> str:
    try:
        out, err = process.communicate(timeout=_WHY_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return f"UNKNOWN: no explanation within {_WHY_SECONDS} s"
    return out if out.strip() else err


class Ask(Window):
    """A line of text; Enter takes it."""

    def __init__(self, title: str, text: str, placeholder: str) -> None:
        super().__init__()
        self._title, self._text, self._placeholder = title, text, placeholder

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(Text(self._title))
            yield Static(Text(self._text))
            yield Input(placeholder=self._placeholder)

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)


class Confirm(Window):
    """A question that `y` alone answers with yes."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "agree", "Yes"), Binding("n,q", "close", "No")]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title, self._text = title, text

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(Text(self._title))
            yield Static(Text(f"{self._text}\n\ny: yes   n: no"))

    def action_agree(self) -> None:
        self.dismiss("y")
