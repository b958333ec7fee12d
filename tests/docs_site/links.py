"""Links of a page in the repository, as links of the site; and those that the site adds."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
_IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"(^ *```.*?^ *```|^    [^\n]*$)", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?<![\[`])`rackwright ([a-z-]+)( [^`]*)?`(?!\])")
_ROLE = re.compile(r"\b(roles? )`([a-z0-9_]+)`(?!\])")
_ITEM = re.compile(r"[-*] |\d+\. |\|")
_HIDDEN = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True)
class Site:
    """What a link can lead to."""

    commands: Collection[str]
    roles: Collection[str]


def outside(text: str, page: str) -> set[str]:
    """Paths in the repository, outside docs/, that a page of docs/ links to."""
    return {
        target
        for _, link in _LINK.findall(_without_code(text))
        if (target := _in_repository(link, f"docs/{page}")) and not target.startswith("docs/")
    }


def page_of(path: str) -> str:
    """Where a file outside docs/ is shown, below docs/."""
    if path.endswith(".md") and "/" not in path:
        return f"repository/{path.removesuffix('.md').lower()}.md"
    return f"files/{path.removesuffix('.md')}.md"


def translated(text: str, source: str, shown_at: str, titles: Mapping[str, str] | None = None) -> str:
    """Text of the file `source` of the repository with its links as from the page `shown_at` below docs/.

    A link in brackets whose text is the name of a page's file gets the page's title; `titles` has those, by path
    below docs/.
    """

    def link(match: re.Match[str]) -> str:
        target = _in_repository(match[2], source)
        if target is None:
            return match[0]
        path, _, anchor = match[2].partition("#")
        there = target.removeprefix("docs/") if target.startswith("docs/") else page_of(target)
        relative = posixpath.relpath(there, posixpath.dirname(shown_at) or ".")
        is_name = match[1] in (path, posixpath.basename(path), target)
        is_name &= match.string[: match.start()].endswith("(")  # in a sentence a title reads badly
        label = (titles or {}).get(there, match[1]) if is_name else match[1]
        return f"[{label}]({relative}{'#' + anchor if anchor else ''})"

    def image(match: re.Match[str]) -> str:
        target = _in_repository(match[2], source)
        if target is None:
            return match[0]
        there = posixpath.relpath(target.removeprefix("docs/"), posixpath.dirname(shown_at) or ".")
        return f"![{match[1]}]({there})"

    return _outside_code(text, lambda piece: _IMAGE.sub(image, _LINK.sub(link, piece)))


def linked(text: str, page: str, site: Site) -> str:
    """The text with links to the pages of the commands and roles that it names, the first time each."""
    up = "../" * page.count("/")
    seen: set[str] = set()

    def command(match: re.Match[str]) -> str:
        target = f"commands/{match[1]}.md"
        if match[1] not in site.commands or target in seen:
            return match[0]
        seen.add(target)
        return f"[{match[0]}]({up}{target})"

    def role(match: re.Match[str]) -> str:
        target = f"roles/{match[2]}.md"
        if match[2] not in site.roles or target in seen:
            return match[0]
        seen.add(target)
        return f"{match[1]}[`{match[2]}`]({up}{target})"

    def lines(piece: str) -> str:
        return "\n".join(
            line
            if line.startswith("#") or _LINK.search(line)
            else _ROLE.sub(role, _COMMAND.sub(command, line))
            for line in piece.split("\n")
        )

    for what, target in (("command", "commands/index.md"), ("role", "roles/index.md")):
        text = text.replace(f"a page for each {what}", f"[a page for each {what}]({up}{target})", 1)
    return _outside_code(text, lines)


def readable(text: str) -> str:
    """Markdown of forges as Python's Markdown reads it: a list or table needs an empty line before it."""
    return _outside_code(_HIDDEN.sub("", text).replace("<details>", "<details markdown>"), _with_empty_lines)


def _with_empty_lines(piece: str) -> str:
    lines: list[str] = []
    for line in piece.split("\n"):
        before = lines[-1] if lines else ""
        if _ITEM.match(line) and before.strip() and not _ITEM.match(before) and not before.startswith("  "):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def _in_repository(link: str, source: str) -> str | None:
    """The path in the repository that a link of `source` leads to; None for another site and for an anchor."""
    path = link.partition("#")[0]
    if not path or re.match(r"[a-z]+:", path):
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), path))


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    return "".join(piece if number % 2 else change(piece) for number, piece in enumerate(_FENCE.split(text)))


def _without_code(text: str) -> str:
    return "".join(piece for number, piece in enumerate(_FENCE.split(text)) if number % 2 == 0)
