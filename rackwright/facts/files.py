"""What exists at a path."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from shlex import quote
from typing import Literal

from pyinfra.api.facts import FactBase

from rackwright.facts.question import Question

TEXT_LIMIT_BYTES = 1 << 20
"""Larger files are compared by digest; a diff of a megabyte is useless."""
_SHA256_DIGITS = 64

_FIND_OUT = """\
p={path}
if [ -L "$p" ]; then
  LC_ALL=C stat -c 'link|%a|%U|%G|%s' "$p"; readlink "$p"
elif [ -d "$p" ]; then
  LC_ALL=C stat -c 'directory|%a|%U|%G|%s' "$p"
elif [ -f "$p" ]; then
  LC_ALL=C stat -c 'file|%a|%U|%G|%s' "$p"; sha256sum <"$p"
  [ {digest_only} = 1 ] || [ "$(stat -c %s "$p")" -gt {limit} ] || base64 "$p"
elif [ -e "$p" ]; then
  LC_ALL=C stat -c 'other|%a|%U|%G|%s' "$p"
else
  echo absent
fi"""


@dataclass(frozen=True)
class PathState:
    """What stands at a path; `mode` is octal text without leading zeros ("644")."""

    kind: Literal["absent", "file", "directory", "link", "other"]
    mode: str = ""
    owner: str = ""
    group: str = ""
    size: int = 0
    sha256: str | None = None
    content: bytes | None = None
    """None when only the digest was asked for, or the file is over 1 MiB."""
    target: str | None = None

    @property
    def text(self) -> str | None:
        """The content as text, or None if it is not known or no UTF-8 text."""
        if self.content is None or b"\0" in self.content:
            return None
        try:
            return self.content.decode()
        except UnicodeDecodeError:
            return None


ABSENT = PathState("absent")


def parse_path_state(lines: list[str]) -> PathState:
    """Read what the fact's command printed. Nothing at all means absent (an empty node)."""
    if not lines or lines[0] == "absent":
        return ABSENT
    kind, mode, owner, group, size = lines[0].split("|")
    sha256 = content = target = None
    if kind == "link":
        target = lines[1] if len(lines) > 1 else ""
    elif kind == "file":
        sha256 = lines[1].split()[0]
        if len(sha256) != _SHA256_DIGITS:  # without sha256sum this line is content
            raise ValueError(f"unreadable digest of a file: {sha256[:16]!r}")
        if len(lines) > 2 or int(size) == 0:
            try:
                content = base64.b64decode("".join(lines[2:]), validate=True)
            except binascii.Error as error:
                raise ValueError(f"unreadable content of a file: {error}") from error
    return PathState(kind, mode, owner, group, int(size), sha256, content, target)  # type: ignore[arg-type]


class AtPath(FactBase[PathState]):
    """What stands at a path: kind, mode, owner, group, digest, and the content unless `digest_only`."""

    def command(self, path: str, digest_only: bool = False) -> Question:
        command = _FIND_OUT.format(path=quote(path), digest_only=int(digest_only), limit=TEXT_LIMIT_BYTES)
        return Question(command, "path", path=path, digest_only=digest_only)

    @staticmethod
    def default() -> PathState:
        return ABSENT

    def process(self, output: list[str]) -> PathState:
        return parse_path_state(output)


_LIST = """\
p={path}
if [ -d "$p" ] && [ ! -L "$p" ]; then
  command -v find >/dev/null && command -v sha256sum >/dev/null && cd "$p" || exit 127
  {{ find . -name __pycache__ -prune -o -printf '%y %m %u:%g %p\\n'
     find . -name __pycache__ -prune -o -type f -exec sha256sum {{}} +; }} | LC_ALL=C sort
elif [ -e "$p" ] || [ -L "$p" ]; then
  echo other
fi"""
OTHER = ("other",)
"""Of `Tree`: something that is not a directory."""


class Tree(FactBase[tuple[str, ...]]):
    """A directory with all below it but `__pycache__`, sorted; nothing where there is none.

    `f 644 root:root ./a` and `sha256  ./a` of each file, `d 755 root:root ./b` of each directory.
    """

    def command(self, path: str) -> str:
        return _LIST.format(path=quote(path))

    @staticmethod
    def default() -> tuple[str, ...]:
        return ()

    def process(self, output: list[str]) -> tuple[str, ...]:
        return tuple(output)


def declared_tree(files: Mapping[str, str], access: str = "root:root") -> tuple[str, ...]:
    """What `Tree` finds of a directory with just these files (text by relative name), all of mode 644."""
    folders = {f"./{folder}" for name in files for folder in PurePosixPath(name).parents if folder.name}
    lines = [f"d 755 {access} {folder}" for folder in (".", *folders)]
    for name, text in files.items():
        lines += [f"f 644 {access} ./{name}", f"{hashlib.sha256(text.encode()).hexdigest()}  ./{name}"]
    return tuple(sorted(lines))


def tree_differences(there: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """`NAME differs`, `NAME is missing` or `NAME is not declared` of each, by name."""
    found, declared = ({_name(line) for line in lines} for lines in (there, wanted))
    return [
        f"{name} {'is not declared' if name not in declared else 'differs' if name in found else 'is missing'}"
        for name in sorted({_name(line) for line in {*there} ^ {*wanted}})
    ]


def _name(line: str) -> str:
    return line.partition(" .")[2].removeprefix("/") or "."
