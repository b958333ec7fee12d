"""The screen of `rackwright top`: a list of nodes that is asked again in the background."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.widgets import DataTable, Footer, Input, Static

from rackwright.boundary import printable
from rackwright.cli.top_screens import Ask, Confirm, Help, Why
from rackwright.cli.top_text import COLUMNS, cells, rack_line, status_line
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.top.source import Source
from rackwright.top.view import Row, View, racks, rows

T = TypeVar("T")


class TopApp(App[None]):
    """Shows what a source knows. Nothing that the source does, or does not do, stops the keys."""

    CSS = """
    #nodes { height: 1fr; }
    Window { align: center middle; }
    Window > Vertical { width: 90%; max-width: 120; height: auto; max-height: 90%; border: round $accent;
        padding: 0 1; background: $surface; }
    Window Label { text-style: bold; padding: 0 0 1 0; }
    Window VerticalScroll { height: auto; max-height: 75vh; }
    #status, #racks { height: auto; max-height: 8; padding: 0 1; }
    #racks { border-bottom: solid $primary-darken-2; }
    #filter { display: none; height: 3; }
    #filter.open { display: block; }
    #detail { height: auto; max-height: 4; padding: 0 1; border-top: solid $primary-darken-2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "why", "Why"),
        Binding("d", "drain", "Drain"),
        Binding("r", "resume", "Resume"),
        Binding("c", "console", "Console"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("f", "refresh", "Ask now"),
        Binding("question_mark", "help", "Keys", key_display="?"),
        Binding("q", "quit", "Quit"),
        Binding("escape", "all", "All nodes", show=False),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self, cluster: Cluster, nodes: Sequence[Node], source: Source, *, every_seconds: float = 5
    ) -> None:
        super().__init__()
        self._cluster, self._declared, self._source = cluster, tuple(nodes), source
        self._every = every_seconds
        self._view: View | None = None
        self._seen_at = time.monotonic()
        """When the view came, or the program began."""
        self._problem: str | None = None
        """Why the last attempt gave none."""
        self._asking = False
        self._rows: dict[str, Row] = {}
        self._shown: dict[str, tuple[Text, ...]] = {}
        """Cells as they are on the screen: only those that differ are drawn again."""
        self._words: list[str] = []

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield Static(id="status")
        yield Static(id="racks")
        yield DataTable(id="nodes", cursor_type="row", zebra_stripes=True)
        yield Static(id="detail")
        yield Input(id="filter", placeholder="words that a node's line holds, e.g. rack3 drained")
        yield Footer()

    def on_mount(self) -> None:
        """Begin to ask."""
        self.title = f"rackwright top {self._cluster.name}"
        table = self._table
        for name, width in COLUMNS:
            table.add_column(name, key=name, width=width)
        table.focus()
        self._show_status()
        self.set_interval(self._every, self.action_refresh)
        self.set_interval(1, self._show_status)
        self.action_refresh()

    @property
    def _table(self) -> DataTable[Text]:
        return self.screen_stack[0].query_one("#nodes", DataTable)

    def _static(self, name: str) -> Static:
        return self.screen_stack[0].query_one(name, Static)

    # asking ---------------------------------------------------------------------------------------------------

    def _in_background(self, work: Callable[[], T], done: Callable[[T | str], None]) -> None:
        """Do work in a thread that the end of the program does not wait for; `done` gets its result or why there is none."""

        def run() -> None:
            found: T | str
            try:
                found = work()
            except RackwrightError as error:
                found = error.message + (f" ({error.hint})" if error.hint else "")
            except Exception as problem:  # noqa: BLE001 - what a head makes of a question ends no screen
                found = f"{type(problem).__name__}: {problem}"
            with contextlib.suppress(RuntimeError, NoMatches):  # the program has ended, or ends, meanwhile
                self.call_from_thread(done, found)

        threading.Thread(target=run, name="top", daemon=True).start()

    def action_refresh(self) -> None:
        """Ask again, unless an answer is awaited."""
        if not self._asking:
            self._asking = True
            self._in_background(self._source.look, self._looked)
            self._show_status()

    def _looked(self, found: View | str) -> None:
        self._asking = False
        if isinstance(found, str):
            self._problem = printable(found, 300)
        else:
            self._view, self._problem, self._seen_at = found, None, time.monotonic()
            self._rows = {row.node: row for row in rows(self._cluster, found, self._declared)}
            self._show_rows()
        self._show_status()

    # showing --------------------------------------------------------------------------------------------------

    def _show_status(self) -> None:
        age = time.monotonic() - self._seen_at
        line = status_line(self._cluster.name, self._view, age, self._every, self._problem, self._asking)
        with contextlib.suppress(NoMatches):  # the last tick may come while the screen is taken down
            self._static("#status").update(line)

    def _show_rows(self) -> None:
        """Change the cells that differ; the list is built again only where other nodes are shown."""
        table = self._table
        wanted = {name: row for name, row in self._rows.items() if row.holds(self._words)}
        with self.batch_update():
            if list(wanted) != list(self._shown):
                chosen = self._chosen_name()
                table.clear()
                self._shown = {name: cells(row) for name, row in wanted.items()}
                for name, texts in self._shown.items():
                    table.add_row(*texts, key=name)
                if chosen in self._shown:
                    table.move_cursor(row=table.get_row_index(chosen))
            else:
                for name, row in wanted.items():
                    self._change(table, name, cells(row))
        self._static("#racks").update(rack_line(racks(self._rows.values())))
        self._show_detail()

    def _change(self, table: DataTable[Text], name: str, new: tuple[Text, ...]) -> None:
        for (column, _), old_cell, cell in zip(COLUMNS, self._shown[name], new, strict=True):
            if old_cell != cell:
                table.update_cell(name, column, cell, update_width=True)
        self._shown[name] = new

    def _show_detail(self) -> None:
        row = self._chosen()
        text = (
            Text("no node matches" if self._words else "")
            if row is None
            else Text(f"{row.node}: {row.reason or row.level}")
        )
        self._static("#detail").update(text)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Another node is chosen."""
        self._show_detail()

    def _chosen_name(self) -> str:
        table = self._table
        if not table.row_count:
            return ""
        return str(table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value)

    def _chosen(self) -> Row | None:
        return self._rows.get(self._chosen_name())

    # keys -----------------------------------------------------------------------------------------------------

    def action_help(self) -> None:
        """The keys."""
        self.push_screen(Help())

    def action_filter(self) -> None:
        """Open the line for words."""
        line = self.query_one("#filter", Input)
        line.add_class("open")
        line.focus()

    def action_all(self) -> None:
        """All nodes again."""
        line = self.query_one("#filter", Input)
        line.value = ""
        line.remove_class("open")
        self._table.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what the words choose, while they are typed."""
        if event.input.id == "filter":
            self._words = event.value.split()
            self._show_rows()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Back to the list, with what the words have chosen."""
        if event.input.id == "filter":
            event.input.remove_class("open")
            self._table.focus()

    def action_why(self) -> None:
        """Explain the chosen node."""
        if (row := self._chosen()) is not None:
            self.push_screen(Why(row.node, self._source.why(row.node)))

    def action_drain(self) -> None:
        """Ask for a reason, and drain."""
        if (row := self._chosen()) is None:
            return
        text = f"Running jobs ({row.jobs}) go on to their end; no new one starts."
        ask = Ask(f"Drain {row.node}: why?", text, "e.g. ticket 4711: ECC errors on GPU 3")

        def given(reason: str | None) -> None:
            if reason is not None:
                self._act(f"{row.node} is drained", lambda: self._source.drain(row.node, reason))

        self.push_screen(ask, given)

    def action_resume(self) -> None:
        """Show why it is drained, ask, and resume."""
        if (row := self._chosen()) is None:
            return
        if row.drain_reason is None:
            self.notify(f"{row.node}: {row.state}, not drained", severity="warning", markup=False)
            return
        reason = row.drain_reason

        def given(answer: str | None) -> None:
            if answer is not None:
                self._act(f"{row.node} is back in service", lambda: self._source.resume(row.node, reason))

        self.push_screen(
            Confirm(f"Put {row.node} back into service?", f"It is {row.state}: {row.reason}"), given
        )

    def _act(self, done: str, act: Callable[[], None]) -> None:
        def work() -> tuple[()]:
            act()
            return ()

        def ended(found: tuple[()] | str) -> None:
            failed = isinstance(found, str)
            text = printable(found, 300) if isinstance(found, str) else done
            self.notify(text, severity="error" if failed else "information", timeout=15, markup=False)
            self.action_refresh()

        self._in_background(work, ended)

    def action_console(self) -> None:
        """Give the terminal to the node's console until that ends."""
        if (row := self._chosen()) is None:
            return
        try:
            program = self._source.console(row.node)
        except RackwrightError as error:
            self.notify(error.message, severity="warning", markup=False)
            return
        with self.suspend():
            subprocess.run(program, check=False)
        self.refresh()
