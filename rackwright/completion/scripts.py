"""The scripts that shells load, and how an answer is written for each."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from rackwright.boundary import printable
from rackwright.completion.line import Answer

_BREAKS = "=:"
"""Characters at which bash begins a new word, and rackwright does not."""


class Shell(StrEnum):
    """A shell that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def script(shell: Shell) -> str:
    """What the shell loads."""
    return (Path(__file__).parent / f"rackwright.{shell}").read_text()


def typed_words(shell: Shell, words: Sequence[str]) -> list[str]:
    """The words after the program's name, the last as far as it is typed.

    + words: of bash the line up to the cursor and COMP_WORDBREAKS, of the others the words themselves
    """
    return _split(words[0])[1:] if shell is Shell.BASH else list(words)


def _split(line: str) -> list[str]:
    """The words of a line that may end within quotes."""
    for closing in ("", "'", '"'):
        try:
            words = shlex.split(line + closing)
        except ValueError:
            continue
        # a blank at the end begins a new word, unless it is quoted or escaped
        return words if shlex.split(line + closing + "x") != [*words, "x"] else [*words, ""]
    return []


def lines(shell: Shell, answer: Answer, words: Sequence[str]) -> list[str]:
    """The kind of files, then a line for each word."""
    found = {printable(word): printable(text) for word, text in answer.words.items()}
    written = {Shell.BASH: _bash, Shell.ZSH: _zsh, Shell.FISH: _fish}[shell](found, words)
    return [str(answer.files), *written]


def _bash(found: Mapping[str, str], words: Sequence[str]) -> list[str]:
    """Without what stands before the last `=` or `:`, where bash begins its word."""
    typed = (_split(words[0]) or [""])[-1]
    breaks = [one for one in _BREAKS if one in (words[1] if len(words) > 1 else _BREAKS)]
    cut = max((typed.rfind(one) for one in breaks), default=-1) + 1
    return [word[cut:] for word in found]


def _zsh(found: Mapping[str, str], words: Sequence[str]) -> list[str]:
    return [
        word.replace("\\", "\\\\").replace(":", "\\:") + (f":{text}" if text else "")
        for word, text in found.items()
    ]


def _fish(found: Mapping[str, str], words: Sequence[str]) -> list[str]:
    return [f"{word}\t{text}" if text else word for word, text in found.items()]
