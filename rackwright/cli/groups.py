"""What groups of commands share: a command that runs where the first word names none, and one look of all help."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import typer.core

_NOT_OURS = ("install_completion", "show_completion")
"""Options that typer adds; `rackwright completion` is used instead."""
_METAVARS = {"path": "PATH", "str": "TEXT", "text": "TEXT"}
_NUMBER = re.compile(r"(int|integer|float)( range)?")


class DefaultGroup(typer.core.TyperGroup):
    """A group of which one command runs where the first word names none."""

    default: str

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer keeps its context private
        if args and args[0] not in (*self.commands, "--help"):
            args = [self.default, *args]
        return list(super().parse_args(ctx, args))


def with_default(command: str) -> type[DefaultGroup]:
    """The class of a group in which `GROUP FILE` is `GROUP COMMAND FILE`."""
    return type("DefaultGroup", (DefaultGroup,), {"default": command})


def offer(words: Iterable[str]) -> Callable[[], list[str]]:
    """The `autocompletion=` of a parameter that takes one of these words; what names a file's nodes has its metavar."""
    return lambda: list(words)


def alike(command: Any) -> Any:  # noqa: ANN401 - click's Command
    """The same command with plain help, as the root has it, and all commands below it too."""
    command.rich_markup_mode = None
    command.params = [one for one in command.params if one.name not in _NOT_OURS]
    for one in command.params:
        if one.metavar is None and not getattr(one, "is_flag", False):
            one.metavar = _metavar(one)
    below = getattr(command, "commands", {})
    if below and not command.invoke_without_command:
        command.no_args_is_help = True
    for one in below.values():
        # a whole sentence, which is wrapped; click cuts it to one line otherwise
        one.short_help = one.short_help or _first_sentence(one.help or "")
        alike(one)
    return command


def value_type(parameter: Any) -> str:  # noqa: ANN401 - click's Parameter
    """What a parameter takes, e.g. `path`, `choice`, `int range`, `text`."""
    if hasattr(parameter, "type"):  # older versions of typer have click's types
        return str(parameter.type.name)
    descriptor = parameter.type_descriptor
    if descriptor.is_choice:
        return "choice"
    if descriptor.is_path:
        return "path"
    return str(parameter.bare_type())


def _metavar(parameter: Any) -> str | None:  # noqa: ANN401
    """Capitals, as they are written by hand; None for a choice, which lists its values."""
    if parameter.param_type_name == "argument":
        return str(parameter.name).upper()
    takes = value_type(parameter)
    return "N" if _NUMBER.fullmatch(takes) else _METAVARS.get(takes)


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=\.) ", paragraph)[0]
