"""The command line. Each command is a file here and one line in `_COMMANDS`.

A command's module is imported when the command runs, so that `validate` loads neither pyinfra nor
testinfra. `rackwright/cli/plan.py` defines `plan_command`, a function that typer can read; a group
of commands such as `rackwright/cli/lab.py` defines `lab_app`, a typer.Typer.
"""

from __future__ import annotations

import importlib
import io
import keyword
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from rackwright import __version__
from rackwright.cli.groups import alike
from rackwright.cli.lines import say
from rackwright.documents.nearest import suggest
from rackwright.errors import ExitCode, RackwrightError

_COMMANDS = {
    "init": "Write a site folder: cluster file, role, checks, CI.",
    "validate": "Check a cluster file offline; report every mistake at once.",
    "import": "Write a cluster file from Ansible, a CSV list or NetBox.",
    "schema": "Print the JSON Schema of the cluster file or of --json.",
    "show": "Show the resolved cluster and where values come from.",
    "map": "Draw racks, nodes and switches as one page of HTML.",
    "catalog": "Print node models and shared tables, with sources.",
    "lock": "Solve the GPU stack to exact versions; write the lock.",
    "bundle": "List, pack or check what an air-gapped site mirrors.",
    "render": "Print the files a node would get, without a connection.",
    "discover": "Look into machines without an OS; compare, or adopt.",
    "install": "Install machines through their BMCs.",
    "provision": "Install what is not ready, then accept the cluster.",
    "image": "Build disk and OCI images with a group's packages installed.",
    "firmware": "Firmware and BIOS of nodes: compare, update, set.",
    "decommission": "Erase all disks of machines, with a certificate.",
    "plan": "Show what apply would change. Changes nothing.",
    "apply": "Show the plan, confirm, bring nodes to the declared state.",
    "reboot": "Reboot nodes in waves; drained first, verified after.",
    "runs": "List the runs that changed something, or show one.",
    "resume": "Finish a run that was interrupted.",
    "secrets": "Share, back up and rotate the secrets of a cluster.",
    "restore": "Put back a backup of a head: history, accounts, queue.",
    "verify": "Verify nodes against the declaration.",
    "health": "Probe the nodes' hardware; compare it with the declared SKU.",
    "fabric": "Show the declared cabling; compare it with what is there.",
    "storage": "Show declared filesystems; measure them against floors.",
    "burnin": "Measure the workers alone and together against floors.",
    "accept": "Validate, apply, verify, burn in; one verdict and a report.",
    "top": "Show nodes, jobs, drains and alerts live in the terminal.",
    "why": "Explain the state of a node and what to do about it.",
    "drift": "Report nodes that no longer match the cluster file.",
    "logs": "Print lines of all nodes' journals, of one job or node.",
    "dashboards": "Draw the cluster's metrics as HTML, or as Grafana's files.",
    "metrics": "Print runs and burn-ins as Prometheus metrics.",
    "bmc": "Nodes through their BMCs: power, health, console, log.",
    "lab": "Boot a cluster file as containers and VMs on this host.",
    "drill": "Break a lab rack; see that its alerts arrive.",
    "path": "Print the folder of the shipped deploys, templates or roles.",
    "completion": "Print what makes bash, zsh or fish complete commands.",
}
"""Command to its line in the help, in the order of the help."""
_SECTIONS = {
    "init": "Describe",
    "discover": "Provision",
    "plan": "Change",
    "verify": "Prove",
    "top": "Operate",
    "lab": "Lab",
    "path": "This program",
}
"""First command of each section of the help to the heading."""

_INTERRUPTED = 130

_UsageError: type[Any] = typer.BadParameter.__mro__[1]
_ClickException: type[Any] = typer.BadParameter.__mro__[2]
"""click's own classes, wherever this version of typer keeps them."""


class UnknownCommand(RackwrightError):  # noqa: N818 - reads as a sentence
    """There is no such command."""

    exit_code = ExitCode.USAGE


class _LazyGroup(typer.core.TyperGroup):
    """Imports a command when it is run; its own help needs no command's module."""

    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 - typer keeps its context private
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        if cmd_name not in _COMMANDS:
            raise UnknownCommand(
                f"There is no command {cmd_name}.", hint=suggest(cmd_name, _COMMANDS, what="commands")
            )
        if self._listing or ctx.resilient_parsing:
            return typer.core.TyperCommand(cmd_name, help=_COMMANDS[cmd_name])
        return _load(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        sections: dict[str, list[tuple[str, str]]] = {}
        width = max(len(name) for name in _COMMANDS)  # `map` is a command's module here
        for name, summary in _COMMANDS.items():
            heading = _SECTIONS.get(name) or next(reversed(sections))
            sections.setdefault(heading, []).append((name.ljust(width), summary))
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False


def _module(name: str) -> Any:  # noqa: ANN401 - a module
    return importlib.import_module(f"rackwright.cli.{name}{'_' if keyword.iskeyword(name) else ''}")


def _load(name: str) -> Any:  # noqa: ANN401 - click's Command
    try:
        module = _module(name)
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("rackwright.cli."):
            raise
        raise RackwrightError(f"The command {name} is not part of this version.") from None
    group = getattr(module, f"{name}_app", None)
    if group is None:
        group = typer.Typer()
        group.command(name)(getattr(module, f"{name}_command"))
    command: Any = typer.main.get_command(group)
    command.name = name
    return alike(command)


app = typer.Typer(
    name="rackwright",
    cls=_LazyGroup,
    help="One typed cluster file becomes an installed, verified and burnt-in GPU cluster.",
    epilog="Exit status: 0 clean, 1 error or invalid input, 2 changes pending, 3 a check failed, "
    "4 something is UNKNOWN, 64 usage.",
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # its tracebacks show local variables, and those may hold secrets
)


def _print_version(value: bool) -> None:
    if value:
        say(f"rackwright {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """One typed cluster file becomes an installed, verified and burnt-in GPU cluster."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; errors go to stderr."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:2] == ["completion", "answer"]:
        # past typer, which loads pydantic to convert options: that takes longer than the answer
        return int(_module("completion_answer").print_answer(words[2:]))
    command = typer.main.get_command(app)
    try:
        result = command.main(args=arguments, prog_name="rackwright", standalone_mode=False)
    except RackwrightError as error:
        return _print_error(error.message, error.hint, error.exit_code)
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # nothing was given: show the help
            error.show()
            return int(ExitCode.USAGE)
        place = error.ctx.command_path if error.ctx is not None else "rackwright"
        return _print_error(error.format_message(), f"see `{place} --help`", ExitCode.USAGE)
    except _ClickException as error:
        return _print_error(error.format_message(), None, ExitCode.ERROR)
    except (KeyboardInterrupt, typer.Abort):
        return _print_interrupted()
    except BrokenPipeError:
        # the reader has exited; leave nothing for the interpreter to flush into the closed pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.ERROR)
    status = result if isinstance(result, int) else int(ExitCode.CLEAN)
    return _print_interrupted() if status == _INTERRUPTED else status


def _print_error(message: str, hint: str | None, status: ExitCode) -> int:
    say(f"error: {message}", err=True)
    if hint is not None:
        say(f"hint: {hint}", err=True)
    return int(status)


def _print_interrupted() -> int:
    say("interrupted", err=True)
    return _INTERRUPTED


def main() -> None:
    """Entry point of the `rackwright` program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, io.TextIOWrapper
        ):  # a terminal whose encoding lacks a character gets its escape
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run())
