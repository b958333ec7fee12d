"""Lines of a text as sshd and sudo parse them."""

from __future__ import annotations


def lines_of(text: str) -> list[str]:
    """A newline ends a line, and no other character does; the last line may lack its own."""
    return text.removesuffix("\n").split("\n") if text else []
