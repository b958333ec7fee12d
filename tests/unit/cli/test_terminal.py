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
from rackwright.cli.lines import say, say_exactly
from rackwright.cli.plan_view import show_outcome, show_plan
from rackwright.cli.progress import Progress
from rackwright.cli.terminal import Console
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


def test_files_are_printed_exactly_unless_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    say_exactly(FORGED)
    assert capsys.readouterr().out == FORGED
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    say_exactly(FORGED)
    assert is_harmless(capsys.readouterr().out, "\n")


_COMMANDS = sorted(Path(rackwright.cli.__file__).parent.glob("*.py"))


def test_no_command_makes_a_console_of_its_own() -> None:
    """A console that is made elsewhere is rich's own, which passes escape sequences on."""
    for path in _COMMANDS:
        tree = ast.parse(path.read_text())
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "rich.console"
                    for alias in node.names}  # fmt: skip
        made = {
            node.func.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not ({"Console"} & imported & made), path.name


def prints_past_it(text: str) -> list[str]:
    """Calls of typer.echo, print and the like with anything but a constant or ASCII JSON."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or not _prints(node.func):
            continue
        for what in (*node.args, *(word.value for word in node.keywords if word.arg == "message")):
            dumped = ast.unparse(what).startswith("json.dumps(") and "ensure_ascii" not in ast.unparse(what)
            if not isinstance(what, ast.Constant) and not (isinstance(what, ast.Call) and dumped):
                found.append(ast.unparse(node))
    return found


def _prints(called: ast.expr) -> bool:
    if isinstance(called, ast.Name):
        return called.id in ("print", "echo", "secho")
    return ast.unparse(called).endswith((".echo", ".secho", "stdout.write", "stderr.write"))


def test_no_command_prints_past_it() -> None:
    found = {path.name: prints_past_it(path.read_text()) for path in _COMMANDS if path.name != "lines.py"}
    assert {name: calls for name, calls in found.items() if calls} == {}


@pytest.mark.parametrize(
    ("call", "harmless"),
    [
        ("typer.echo('done')", True),
        ("typer.echo(json.dumps(found, indent=2), err=True)", True),
        ("console.print(found)", True),
        ("typer.echo(found)", False),
        ("typer.echo(message=found)", False),
        ("typer.echo(f'{found}')", False),
        ("typer.echo(json.dumps(found, ensure_ascii=False))", False),
        ("typer.echo(json.dumps(found) + found)", False),
        ("print('a', found)", False),
        ("sys.stderr.write(found)", False),
        ("click.secho(found)", False),
    ],
)
def test_the_guard_objects(call: str, harmless: bool) -> None:
    assert (prints_past_it(call) == []) is harmless
