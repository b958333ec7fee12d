"""What the command line prints: no control character comes from a node, and rich's own colours stay."""

from __future__ import annotations

import ast
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.markup import escape
from rich.table import Table

import rackwright.cli
from rackwright.cli import _print_error
from rackwright.cli.plan_view import show_outcome, show_plan
from rackwright.cli.progress import Progress
from rackwright.cli.terminal import Console, say
from rackwright.errors import ExitCode
from rackwright.plan.changes import Change
from rackwright.plan.node_plan import ApplyResult, NodeOutcome, NodePlan, PlannedOperation, PlanResult
from tests.unit.answers import few, is_harmless

FORGED = "\x1b[2J\x1b]0;owned\x07\r:warning: [/red]"
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def printed(what: object, *, colours: bool) -> str:
    """What arrives in a terminal, or in a file."""
    stream = io.StringIO()
    Console(file=stream, force_terminal=colours, width=200, soft_wrap=True).print(what)
    return stream.getvalue()


@pytest.mark.parametrize("colours", [True, False])
def test_colours_stay_and_nothing_else(colours: bool) -> None:
    shown = printed(f"[red]bad[/red]: {escape(FORGED)}", colours=colours)
    assert is_harmless(_STYLE.sub("", shown), "\n")
    assert ("\x1b[31mbad" in shown) is colours
    assert "\\x1b" in shown
    assert ":warning:" in shown


@pytest.mark.parametrize("colours", [True, False])
def test_tables_too(colours: bool) -> None:
    table = Table("title")
    table.add_row(escape(FORGED))
    assert is_harmless(_STYLE.sub("", printed(table, colours=colours)), "\n")


def test_every_view_of_a_plan_and_its_outcome() -> None:
    change = Change("file", f"/x{FORGED}", FORGED, FORGED, ("---", "+++", f"+{FORGED}"), FORGED)
    object.__setattr__(change, "target", FORGED)  # as if a field had been forgotten
    operation = PlannedOperation("base", "Write", (change,), ())
    plan = PlanResult("lab", "lab.yaml", "", {"n1": NodePlan("n1", (operation,), note=FORGED)})
    failed = NodePlan("n2", error="x")
    object.__setattr__(failed, "error", FORGED)
    plan.nodes["n2"] = failed
    outcome = NodeOutcome("n1", ok=False, error="x")
    object.__setattr__(outcome, "error", FORGED)
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=200)
    show_plan(plan, console, verbose=True)
    show_outcome(ApplyResult("lab", {"n1": outcome}), console)
    progress = Progress(1, console)
    progress({"event": "started", "node": "n1", "role": "base", "name": FORGED})
    console.print(progress._table())
    assert is_harmless(_STYLE.sub("", stream.getvalue()), "\n")


@few
@given(st.text(st.characters()))
def test_any_text_is_shown(text: str) -> None:
    shown = printed(escape(text), colours=False)
    assert is_harmless(shown, "\n\t")
    shown.encode()


def test_plain_lines_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"a\n{FORGED}")
    say(FORGED, err=True)
    assert _print_error(f"one\n{FORGED}", FORGED, ExitCode.ERROR) == 1
    found = capsys.readouterr()
    assert is_harmless(found.out + found.err, "\n")
    assert found.err.splitlines()[1:3] == ["error: one", found.err.splitlines()[2]]


def test_no_command_prints_past_it() -> None:
    """A console that is made elsewhere is rich's own, which passes escape sequences on."""
    for path in sorted(Path(rackwright.cli.__file__).parent.glob("*.py")):
        tree = ast.parse(path.read_text())
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "rich.console"
                    for alias in node.names}  # fmt: skip
        made = {
            node.func.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not ({"Console"} & imported & made), path.name
