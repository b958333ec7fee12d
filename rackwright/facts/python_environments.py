"""Python environments of locked wheels, one folder for each, of which a link names the one in use."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote

from pyinfra.api.facts import FactBase

MANIFEST = ".rackwright-manifest"
"""Digest of names, sizes, modes, owners and change times of all files, written last: its absence shows an unfinished folder."""
DIGEST_COMMAND = (
    f"find . \\( -name __pycache__ -o -path ./{MANIFEST} \\) -prune -o \\( -type f -o -type l \\) "
    "-printf '%p %y %s %m %U:%G %C@ %l\\n' | LC_ALL=C sort | sha256sum | cut -d' ' -f1"
)
"""Run in the environment's folder. A change time cannot be set, so an edit that restores the size and date shows too."""

_FIND_OUT = """\
cd {root} 2>/dev/null || {{ echo none; exit 0; }}
t=$(readlink current || :)
echo "current $t"
for e in */; do [ -L "${{e%/}}" ] || echo "environment ${{e%/}}"; done
if [ -n "$t" ] && [ -f "$t/{manifest}" ]; then
  cd "$t"
  [ "$({digest})" = "$(cat {manifest})" ] && echo whole || echo changed
fi"""


@dataclass(frozen=True)
class EnvironmentsState:
    """What is in the folder of environments."""

    current: str | None = None
    """Name of the one in use."""
    whole: bool = False
    """Its files are those that were installed."""
    changed: bool = False
    """They were, and are others now."""
    names: tuple[str, ...] = ()
    """All of them, oldest first: their names end in the time at which they were made."""


def age(name: str) -> tuple[int, str]:
    """Sorts names of environments, `<digest>.<seconds>`, by age."""
    seconds = name.rpartition(".")[2]
    return (int(seconds) if seconds.isascii() and seconds.isdigit() else 0, name)


class PythonEnvironments(FactBase[EnvironmentsState]):
    """The environments below a folder."""

    def command(self, root: str) -> str:
        return _FIND_OUT.format(root=quote(root), manifest=MANIFEST, digest=DIGEST_COMMAND)

    @staticmethod
    def default() -> EnvironmentsState:
        return EnvironmentsState()

    def process(self, output: list[str]) -> EnvironmentsState:
        current, names, words = None, [], set()
        for line in output:
            word, _, rest = line.partition(" ")
            words.add(word)
            if word == "current":
                current = rest or None
            elif word == "environment" and rest != "*":
                names.append(rest)
        if not words & {"current", "none"}:
            raise ValueError("the list of environments has no beginning")
        return EnvironmentsState(current, "whole" in words, "changed" in words, tuple(sorted(names, key=age)))
