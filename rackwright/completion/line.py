"""The words of a command line -> the candidates for the last one, which is being typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from rackwright.completion.commands import Argument, Command, Option
from rackwright.completion.values import read, values

_CLUSTER_FILE = "FILE"


class Files(StrEnum):
    """The files that the shell adds; it knows best how to list and quote them."""

    NONE = "none"
    ANY = "any"
    YAML = "yaml"
    FOLDERS = "folders"


_FILES = {_CLUSTER_FILE: Files.YAML, "PATH": Files.ANY, "DIR": Files.FOLDERS, "FOLDER": Files.FOLDERS}


@dataclass(frozen=True)
class Answer:
    """Words to their descriptions, and which files are added to them."""

    words: Mapping[str, str] = field(default_factory=dict)
    files: Files = Files.NONE


@dataclass
class _Line:
    """What stands before the word that is being typed."""

    command: Command
    positional: list[str] = field(default_factory=list)
    given: dict[str, str] = field(default_factory=dict)
    """Name of each option to its value; empty for a flag."""
    pending: Option | None = None
    """An option whose value comes next."""
    only_arguments: bool = False
    """After `--`."""


def answer(root: Command, load: Callable[[str], Command | None], words: Sequence[str]) -> Answer:
    """The candidates for the last word.

    + root: its `commands` hold the description of each command alone
    + load: a command of the root as a whole; None where there is none
    """
    *before, typed = words
    line = _Line(root)
    for word in before:
        if not _take(line, word, load if line.command is root else None):
            return Answer()
    return _complete(line, typed)


def _take(line: _Line, word: str, load: Callable[[str], Command | None] | None) -> bool:
    """Go over one word; False where it can be nothing that is known."""
    if line.pending is not None:
        line.given[line.pending.names[0]] = word
        line.pending = None
    elif word == "--" and not line.only_arguments:
        line.only_arguments = True
    elif word.startswith("-") and len(word) > 1 and not line.only_arguments:
        name, equals, value = word.partition("=")
        option = _default(line.command).option(name) or line.command.option(name)
        if option is not None:
            line.given[option.names[0]] = value
            line.pending = option if option.value is not None and not equals else None
    elif line.command.commands:
        below = load(word) if load is not None else line.command.commands.get(word)
        if below is None and line.command.default is not None:
            below = line.command.commands[line.command.default]
            line.positional.append(word)
        if below is None:
            return False
        line.command = below
    else:
        line.positional.append(word)
    return True


def _default(command: Command) -> Command:
    return command.commands[command.default] if command.default is not None else command


def _complete(line: _Line, typed: str) -> Answer:
    command = _default(line.command)
    if line.pending is not None and line.pending.value is not None:
        return _value(line, line.pending.value, typed)
    if typed.startswith("-") and not line.only_arguments:
        name, equals, begun = typed.partition("=")
        option = command.option(name)
        if not equals:
            return _options(line, command, typed)
        if option is None or option.value is None:
            return Answer()
        found = _value(line, option.value, begun)
        return Answer({f"{name}={word}": text for word, text in found.words.items()}, found.files)
    below = {name: one.help for name, one in line.command.commands.items() if name.startswith(typed)}
    argument = _argument(command, len(line.positional))
    if argument is None:
        return Answer(below) if line.command.commands else _options(line, command, typed)
    found = _value(line, argument, typed)
    return Answer({**below, **found.words}, found.files)


def _argument(command: Command, place: int) -> Argument | None:
    arguments = command.arguments
    if place < len(arguments):
        return arguments[place]
    return arguments[-1] if arguments and arguments[-1].many else None


def _options(line: _Line, command: Command, typed: str) -> Answer:
    """The names of options that begin so; the short ones only where one is typed."""
    found = {}
    for option in command.options:
        for name in option.names:
            wanted = name.startswith("--") or len(typed) == 2
            if wanted and name.startswith(typed) and (option.value is not None or name not in line.given):
                found[name] = option.help
    return Answer(found)


def _value(line: _Line, argument: Argument, typed: str) -> Answer:
    words = dict.fromkeys((one for one in argument.words if one.startswith(typed)), "")
    files = Files.NONE
    cluster = None
    for kind in argument.takes.split("|"):
        if kind in _FILES:
            files = _FILES[kind]
            continue
        if cluster is None:
            cluster = read(_cluster_file(line))
        words.update(dict.fromkeys(values(kind, cluster, typed), ""))
    return Answer(words, files)


def _cluster_file(line: _Line) -> Path | None:
    """The file on the line, or the one that the command reads without."""
    command = _default(line.command)
    for place, argument in enumerate(command.arguments):
        if argument.takes == _CLUSTER_FILE and (found := _at(line, place) or argument.default):
            return Path(found).expanduser()
    for option in command.options:
        if option.value is not None and option.value.takes == _CLUSTER_FILE:
            found = line.given.get(option.names[0]) or option.value.default
            if found:
                return Path(found).expanduser()
    return next((Path(one) for one in line.positional if Path(one).suffix in (".yaml", ".yml")), None)


def _at(line: _Line, place: int) -> str | None:
    return line.positional[place] if place < len(line.positional) else None
