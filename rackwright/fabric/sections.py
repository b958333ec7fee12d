"""One execution on a node that runs several tools, and its output taken apart again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote

TOOL_SECONDS = 60
MISSING = 127
TIMED_OUT = 124
_BEGIN, _END = "@@rackwright begin", "@@rackwright end"


@dataclass(frozen=True, slots=True)
class Section:
    """What one tool printed."""

    text: str
    status: int

    def problem(self, tool: str, package: str) -> str | None:
        """Why its output cannot be used, or None."""
        if self.status == MISSING:
            return f"{tool} is missing (package {package})"
        if self.status == TIMED_OUT:
            return f"{tool} did not end in time"
        if self.status != 0:
            printed = self.text.strip().splitlines()
            return f"{tool} exited {self.status}: {printed[-1].strip()[:200] if printed else 'it printed nothing'}"
        return None


def script(commands: Mapping[str, str], seconds: int = TOOL_SECONDS) -> str:
    """A shell script that runs each command for this many seconds at most, and marks what it prints.

    Standard error is part of a section only where the command fails: diagnostics of a healthy fabric go there too.
    """
    lines = ["errors=$(mktemp) || exit 1", "trap 'rm -f \"$errors\"' EXIT"]
    for name, command in commands.items():
        lines += [
            f"echo '{_BEGIN} {name}'",
            f'timeout -k 5 {seconds} sh -c {quote(command)} 2>"$errors"; status=$?',
            '[ "$status" -eq 0 ] || cat "$errors"',
            f'echo; echo "{_END} {name} $status"',
        ]
    return "\n".join(lines)


def sections(text: str) -> dict[str, Section]:
    """The sections that ended; what a node printed cannot forge another one's name, for the last one of a name counts."""
    found: dict[str, Section] = {}
    name, kept = None, list[str]()
    for line in text.splitlines(keepends=True):
        if line.startswith(f"{_BEGIN} ") and name is None:
            name, kept = line.removeprefix(f"{_BEGIN} ").strip(), []
        elif name is not None and line.startswith(f"{_END} {name} "):
            status = line.removeprefix(f"{_END} {name} ").strip()
            if status.isascii() and status.isdecimal() and len(status) < 4:
                found[name] = Section("".join(kept), int(status))
            name = None
        elif name is not None:
            kept.append(line)
    return found
