"""Turns paragraphs and lists in the source into texts of rules."""

from __future__ import annotations


def prose(text: str) -> str:
    """One line."""
    return " ".join(text.split())


def listed(text: str) -> tuple[str, ...]:
    """The items of a list; each begins on a new line with `- ` at any indentation."""
    items: list[list[str]] = []
    for line in map(str.strip, text.strip().splitlines()):
        if line.startswith("- "):
            items.append([line[2:]])
        else:
            items[-1].append(line)
    return tuple(prose(" ".join(item)) for item in items)
