"""The commands as plain data for completion; kept in the user's cache, as loading a command takes half a second."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from rackwright import __version__, cli
from rackwright.cli.groups import value_type
from rackwright.completion.commands import Argument, Command, Option

_HELP = Option(("--help",), "Show this message and exit.")
_TEXT_MAX = 80
"""Characters of a description that a shell shows beside a word."""


def root() -> Command:
    """The program itself, with no more than a description of each command."""
    commands = {name: Command(text) for name, text in cli._COMMANDS.items()}
    return Command(options=(Option(("--version",), "Print the version."), _HELP), commands=commands)


def load(name: str) -> Command | None:
    """One command as a whole, from the cache where it is there."""
    if name not in cli._COMMANDS:
        return None
    path = _cache() / f"{name}.json"
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        return Command.from_json(json.loads(path.read_text()))
    command = describe(cli._load(name))
    with contextlib.suppress(OSError):  # it is quicker next time, and needed by nothing
        _keep(path, json.dumps(command.to_json()))
    return command


def describe(command: Any) -> Command:  # noqa: ANN401 - click's Command
    """A command of typer's as plain data."""
    below = {name: describe(one) for name, one in getattr(command, "commands", {}).items() if not one.hidden}
    context = command.context_class(command, info_name=command.name)
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    options = [_option(one, context) for one in shown if one.param_type_name == "option"]
    arguments = [_argument(one, context) for one in shown if one.param_type_name == "argument"]
    text = command.short_help or (command.help or "").partition("\n")[0]
    return Command(
        text[:_TEXT_MAX], (*options, _HELP), tuple(arguments), below, getattr(command, "default", None)
    )


def _option(parameter: Any, context: Any) -> Option:  # noqa: ANN401
    names = (*parameter.opts, *parameter.secondary_opts)
    text = " ".join((parameter.help or "").split())[:_TEXT_MAX]
    return Option(names, text, None if parameter.is_flag else _argument(parameter, context))


def _argument(parameter: Any, context: Any) -> Argument:  # noqa: ANN401
    takes = (parameter.metavar or parameter.name.upper()).strip("[]")
    if value_type(parameter) == "path" and takes not in ("FILE", "DIR", "FOLDER"):
        takes = "FILE" if parameter.name == "file" else "PATH"
    words = tuple(item.value for item in parameter.shell_complete(context, "") if item.type == "plain")
    default = parameter.default
    return Argument(takes, words, parameter.nargs == -1, str(default) if isinstance(default, Path) else None)


def _cache() -> Path:
    """The folder of this version's commands; its name has the version and the time of the newest file."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(base) if base.startswith("/") else Path.home() / ".cache"
    with os.scandir(Path(__file__).parent) as files:
        newest = max(one.stat().st_mtime_ns for one in files if one.name.endswith(".py"))
    return folder / "rackwright" / "completion" / f"{__version__}-{newest}"


def _keep(path: Path, text: str) -> None:
    """Write a file whole; what other versions kept is removed."""
    if not path.parent.exists():
        with contextlib.suppress(OSError):
            for old in path.parent.parent.iterdir():
                shutil.rmtree(old, ignore_errors=True)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_suffix(f".{os.getpid()}")
    new.write_text(text)
    new.replace(path)
