"""The answer to one Tab, which the scripts of `rackwright completion` ask for."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from rackwright.cli.completion_tree import load, root
from rackwright.cli.lines import say_exactly
from rackwright.completion.line import Answer, answer
from rackwright.completion.scripts import Shell, lines, typed_words


def print_answer(arguments: Sequence[str]) -> int:
    """Print the candidates for the last word, and nothing else; arguments: the shell, `--`, the words."""
    with contextlib.suppress(Exception):  # an error would appear in the line that is being typed
        name, _, *words = arguments
        shell, found = Shell(name), Answer()
        with contextlib.suppress(Exception):
            found = answer(root(), load, typed_words(shell, words))
        say_exactly("".join(f"{line}\n" for line in lines(shell, found, words)))
    return 0
