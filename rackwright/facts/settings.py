"""The answer of one command."""

from __future__ import annotations

from pyinfra.api.facts import FactBase


class Answer(FactBase[str | None]):
    """What a command prints, stripped; None when it fails or prints nothing."""

    def command(self, read: str) -> str:
        return f"({read}) 2>/dev/null || :"

    @staticmethod
    def default() -> str | None:
        return None

    def process(self, output: list[str]) -> str | None:
        return "\n".join(output).strip() or None
