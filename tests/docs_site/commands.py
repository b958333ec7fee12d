"""A page for each command, from what its `--help` is made of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rackwright.cli import _COMMANDS, _load
from rackwright.errors import ExitCode
from tests.docs_site.markdown import cell, code, page, prose, section, table

FOLDER = "commands"
_EVERYWHERE = frozenset({"help", "install_completion", "show_completion"})
"""Options that explain nothing about a command."""
EXIT_STATUS = {
    ExitCode.CLEAN: "clean: nothing to change, every check passed",
    ExitCode.ERROR: "an error, or invalid input",
    ExitCode.CHANGES_PENDING: "changes are pending",
    ExitCode.CHECK_FAILED: "a check failed",
    ExitCode.UNKNOWN: "something is UNKNOWN, or a node is unreachable",
    ExitCode.USAGE: "wrong usage of the command line",
}


def names() -> tuple[str, ...]:
    """Every command, in the order of `rackwright --help`."""
    return tuple(_COMMANDS)


def pages() -> dict[str, str]:
    """Path below docs/ -> text: the overview and a page for each command."""
    summaries = _COMMANDS
    rows = [(f"[{code(name)}]({name}.md)", prose(summary)) for name, summary in summaries.items()]
    overview = page(
        "# Commands",
        "Each page is made from the command's `--help`. `rackwright COMMAND --help` prints the same.",
        table(("command", "what for"), rows),
        section("Exit status", _exit_table()),
    )
    return {
        f"{FOLDER}/index.md": overview,
        **{f"{FOLDER}/{name}.md": command_page(name) for name in summaries},
    }


def command_page(name: str) -> str:
    """The page of one command with its subcommands."""
    command = _load(name)
    return page(
        f"# rackwright {name}",
        *_parts(command, ["rackwright", name], level=2),
        section("Exit status", _exit_table() + "\n\nWhere the text above names a status, that holds."),
    )


def _exit_table() -> str:
    return table(("status", "meaning"), [(str(int(status)), EXIT_STATUS[status]) for status in ExitCode])


def _parts(command: Any, path: list[str], level: int) -> Iterator[str]:  # typer keeps click private
    context = command.make_context(" ".join(path), [], resilient_parsing=True)
    yield f"```text\n{re.sub(r'^Usage: *', '', command.get_usage(context))}\n```"
    yield _help(command.help or "")
    parameters = [
        one for one in command.get_params(context) if one.name not in _EVERYWHERE and not one.hidden
    ]
    arguments = [one for one in parameters if one.param_type_name == "argument"]
    options = [one for one in parameters if one.param_type_name == "option"]
    yield _bold("Arguments", table(("argument", "meaning"), (_row(one, context) for one in arguments)))
    yield _bold("Options", table(("option", "meaning"), (_row(one, context) for one in options)))
    for name, subcommand in getattr(command, "commands", {}).items():
        if not subcommand.hidden:
            below = [*path, name]
            yield section(f"{' '.join(below)}", page(*_parts(subcommand, below, level + 1)), level)


def _bold(title: str, body: str) -> str:
    return f"**{title}**\n\n{body}" if body else ""


def _row(parameter: Any, context: Any) -> tuple[str, str]:
    names, meaning = parameter.get_help_record(context)
    return code(cell(names)).replace("\\|", "&#124;"), prose(meaning)


def _help(text: str) -> str:
    """Paragraphs; those that click keeps as they are (after a line with a backspace) as code."""
    shown = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        kept = paragraph.startswith("\b")
        lines = paragraph.removeprefix("\b").strip("\n")
        shown.append(f"```text\n{lines}\n```" if kept else prose(" ".join(lines.split())))
    return "\n\n".join(shown)
