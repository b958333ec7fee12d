"""Free lines that a site adds to a file that a role writes: `extra: {slurm_conf: [KeepAliveTime=30]}`.

A role's options have `extra`, a model with a field of `ExtraLines` for each file that takes some. The lines end in a
marked block of the file. Each is one line of the file's syntax and sets no key that rackwright sets itself: which keys
these are is read out of the file's template and its text, so that no second list of them can be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from rackwright.documents.nearest import short
from rackwright.model.options import RoleOptions
from rackwright.model.text import mistake
from rackwright.shipped import template_source

FIELD = "extra"
"""Name of the option of every role that takes extra lines."""
BEGIN = "# extra: declared in the cluster file, not checked by rackwright"
END = "# end of extra"
Problem = tuple[str, str, str | None]

_MOST = 1000
_WORD = re.compile(r"[A-Za-z][\w.-]*")
_PAIR = re.compile(r"(?:^|\s)([A-Za-z][\w.-]*)\s*[-+*/]?=")
_QUOTED = re.compile(r'"[^"]*"')
_LITERAL = re.compile(r"\"([A-Za-z]\w*)=[^\"]*\"")
_EXPRESSION = re.compile(r"\{\{(.*?)\}\}")
_NAME = re.compile(r"(?:options\.)?([a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)*)")


def _one_line(text: str) -> str:
    if not text.strip():
        raise mistake("The line is empty.", "remove it")
    if text != text.strip():
        raise mistake("The line begins or ends with a space.", "remove it")
    if len(text) > _MOST:
        raise mistake(f"The line has more than {_MOST} characters.")
    if text[0] in "#;!%":
        raise mistake(
            "A comment stays in the cluster file.", "put it behind a `#` there, outside of the quotes"
        )
    if text.endswith("\\"):
        raise mistake("The line ends with a backslash, which would join it with the next one.", "remove it")
    if not text.isascii():
        raise mistake("The line has characters that are not ASCII.", "remove them")
    return text


def _different(lines: tuple[str, ...]) -> tuple[str, ...]:
    for index, line in enumerate(lines):
        if line in lines[:index]:
            raise mistake(f"The line {short(line)} is there twice.", "remove one")
    return lines


ExtraLine = Annotated[str, AfterValidator(_one_line)]
ExtraLines = Annotated[tuple[ExtraLine, ...], Field(max_length=200), AfterValidator(_different)]
"""Lines of one file, in their order."""


@dataclass(frozen=True)
class Syntax:
    """How the lines of a file are read."""

    form: str
    """What a line is, for messages, e.g. `Key=Value`."""
    line: re.Pattern[str]
    several: bool = False
    """A line may set several keys."""
    folded: bool = False
    """Case, and `-` or `_`, are all one in keys; `loose_` before one too."""

    def keys(self, line: str) -> tuple[str, ...]:
        """The keys that a line sets, as the file has them; empty where it is not of the syntax."""
        if not self.line.fullmatch(line):
            return ()
        if self.several and "=" in line:
            return tuple(_PAIR.findall(_QUOTED.sub('""', line)))
        match = _WORD.match(line)
        return () if match is None else (match[0],)

    def plain(self, key: str) -> str:
        """A key as it is compared with others."""
        return key.lower().replace("-", "_").removeprefix("loose_") if self.folded else key


SLURM = Syntax(
    "Key=Value", re.compile(r"[A-Za-z][\w.-]*\s*[-+*/]?=\s*[^\s#][^#]*"), several=True, folded=True
)
"""slurm.conf(5): keys without regard to case, several on a line; `#` begins a comment."""
CHRONY = Syntax("directive and values", re.compile(r"[a-z]\w*(\s.*)?"), folded=True)
"""chrony.conf(5): directives without regard to case."""
SSHD = Syntax("Keyword value", re.compile(r"[A-Za-z]\w*[\s=]\s*\S.*"), folded=True)
"""sshd_config(5): keywords without regard to case."""
MARIADB = Syntax("option or option = value", re.compile(r"[a-z][\w-]*(\s*=\s*\S.*)?"), folded=True)
"""MariaDB's option files: `-` and `_` are the same in names, `loose_` makes an unknown one a warning."""
ENROOT = Syntax("ENROOT_KEY value", re.compile(r"ENROOT_[A-Z0-9_]+\s+\S.*"))
"""enroot.conf: variables of enroot."""


@dataclass(frozen=True)
class ExtraFile:
    """One file of a role that takes extra lines."""

    option: str
    """Field of `extra`, e.g. `slurm_conf`."""
    name: str
    """The file's name in messages."""
    syntax: Syntax
    templates: tuple[str, ...]
    """The templates of the file and of those that are read with it."""
    texts: tuple[str, ...] = ()
    """Their texts without extra lines, where keys come from loops."""

    def problems(self, lines: Sequence[str], options: type[RoleOptions]) -> Iterator[Problem]:
        """What is wrong with the lines: the syntax, and keys that rackwright sets itself."""
        managed = self.managed(options)
        for index, line in enumerate(lines):
            place, keys = f"{FIELD}.{self.option}[{index}]", self.syntax.keys(line)
            if not keys:
                yield place, f"The line is not of {self.name}'s form, `{self.syntax.form}`.", None
            for key in keys:
                if (plain := self.syntax.plain(key)) not in managed:
                    continue
                option = managed[plain]
                hint = (
                    f"use the option `{option}`"
                    if option
                    else "remove it; its value follows from the cluster file"
                )
                yield place, f"{key} in {self.name} is set by rackwright.", hint

    def managed(self, options: type[RoleOptions]) -> dict[str, str | None]:
        """Each key that rackwright sets, as it is compared, to the option that it comes from, where that is known."""
        found: dict[str, str | None] = {}
        for template in self.templates:
            for line in template_source(template).splitlines():
                for key in self._keys_of_template(line):
                    plain = self.syntax.plain(key)
                    found[plain] = found.get(plain) or _option_in(line, options)
        for text in self.texts:
            for line in text.splitlines():
                for key in self.syntax.keys(line.strip())[:1]:  # further pairs of a line belong to its first
                    found.setdefault(self.syntax.plain(key), None)
        return found

    def _keys_of_template(self, line: str) -> tuple[str, ...]:
        if line.startswith("{{"):
            return tuple(_LITERAL.findall(line))
        match = _WORD.match(line.strip())
        return () if match is None else (match[0],)


def _option_in(line: str, options: type[RoleOptions]) -> str | None:
    """The option that a line of a template has its value from; None where it is none."""
    for expression in _EXPRESSION.findall(line):
        for name in _NAME.findall(expression):
            path = _known(name.split("."), options)
            if path:
                return path
    return None


def _known(parts: Sequence[str], model: type[BaseModel]) -> str:
    """The part of a path that names fields of a model."""
    found: list[str] = []
    kind: object = model
    for part in parts:
        if not (isinstance(kind, type) and issubclass(kind, BaseModel) and part in kind.model_fields):
            break
        found.append(part)
        kind = kind.model_fields[part].annotation
    return ".".join(found)


def block(lines: Sequence[str]) -> str:
    """The marked block of a file; empty without lines."""
    return "\n".join(("", BEGIN, *lines, END, "")) if lines else ""


def with_extra(text: str, lines: Sequence[str]) -> str:
    """A file's text with the marked block at its end."""
    return text + block(lines)


def lines_in(text: str | None) -> tuple[str, ...]:
    """The extra lines of a file's text."""
    _, begin, rest = (text or "").partition(f"\n{BEGIN}\n")
    return tuple(rest.partition(f"\n{END}")[0].splitlines()) if begin else ()


def named(operation: str, text: str) -> str:
    """An operation's name with the number of extra lines that the file has: plans show it."""
    count = len(lines_in(text))
    return f"{operation} (with {count} extra line{'' if count == 1 else 's'})" if count else operation


def change_of(before: str | None, after: str) -> str | None:
    """How a change of a file is marked in the plan where it changes extra lines; None where it does not."""
    gone, come = set(lines_in(before)), set(lines_in(after))
    if gone == come:
        return None
    return f"extra lines of the cluster file change: {len(come - gone)} added, {len(gone - come)} removed"


def split(line: str) -> tuple[str, str]:
    """Key and value of an extra line of any syntax."""
    match = re.match(r"([A-Za-z][\w.-]*)\s*[=\s]\s*(.*)", line)
    return (match[1], match[2].strip("\"' ")) if match is not None else ("", line)
