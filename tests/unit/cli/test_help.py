"""All help looks alike: that of the root, of every command, and of every command below one."""

from __future__ import annotations

import re

import pytest
import typer

from rackwright.cli import _COMMANDS, _load
from rackwright.cli.groups import alike

BOX = re.compile("[\N{BOX DRAWINGS LIGHT HORIZONTAL}-\N{BOX DRAWINGS LIGHT DIAGONAL CROSS}]")
USAGE = re.compile(r"Usage: rackwright(?P<words>( [a-z][a-z-]*)*)( \[OPTIONS\])?(?P<rest>.*)")


def _below(command, words):
    yield words
    for name, one in getattr(command, "commands", {}).items():
        yield from _below(one, (*words, name))


EVERY = [words for name in _COMMANDS for words in _below(_load(name), (name,))]


def test_the_walk_reaches_commands_below_commands():
    assert ("lab", "fault") in EVERY
    assert ("bmc", "power") in EVERY
    assert len(EVERY) > 2 * len(_COMMANDS)


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_every_help_is_plain(rackwright, words):
    result = rackwright(*words, "--help")
    assert (result.status, result.err) == (0, "")
    assert not BOX.search(result.out)
    assert "--install-completion" not in result.out
    first = result.out.splitlines()[0]
    usage = USAGE.fullmatch(first)
    assert usage is not None, first
    assert usage["words"].split() == list(words)
    names = re.sub(r"[a-z|]+\|[a-z|]+", "", usage["rest"])  # on|off
    assert names == names.upper(), f"{first}: the names of arguments are capitals"
    commands = result.out.partition("\nCommands:\n")[2]
    assert "..." not in commands, "a summary is cut off"


def test_a_new_group_looks_the_same_whatever_it_asks_for():
    group = typer.Typer(rich_markup_mode="rich", add_completion=True)

    @group.command()
    def one(node: str, count: int = 1) -> None:
        """Do the first thing. And then another."""

    @group.command()
    def other() -> None:
        """Do the other."""

    command = alike(typer.main.get_command(group))
    assert command.rich_markup_mode is None
    assert [one.name for one in command.params] == []
    assert command.no_args_is_help
    below = command.commands["one"]
    assert below.rich_markup_mode is None
    assert below.short_help == "Do the first thing."
    assert [one.metavar for one in below.params] == ["NODE", "N"]
