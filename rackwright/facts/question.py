"""A fact's question: a shell command, and what the helper on the node may do instead.

The command is the definition; the helper (rackwright/factcache/helper.py) prints the very same lines
without forking a shell for each question. Plain pyinfra and nodes without Python run the command.
"""

from __future__ import annotations

from typing import Any

from pyinfra.api.command import StringCommand


class Question(StringCommand):
    """`kind` and `arguments` are the helper's function and its JSON arguments."""

    def __init__(self, command: str, kind: str, **arguments: Any) -> None:  # noqa: ANN401 - JSON data
        super().__init__(command)
        self.asked: dict[str, Any] = {"kind": kind, **arguments}
