"""What is mounted, from the kernel's own table: reading it touches no filesystem, so it never hangs."""

from __future__ import annotations

from shlex import quote

from pyinfra.api.facts import FactBase

from rackwright.mounts import MountEntry, parse_mountinfo

_PROGRAM = """\
BEGIN { count = split(paths, each, " "); for (i = 1; i <= count; i++) wanted[each[i]] = 1 }
$5 == "/" || ($5 in wanted) {
  for (i = 7; i < NF && $i != "-"; i++);
  print 0, 0, "0:0", $4, $5, $6, $i, $(i + 1), $(i + 2), $(i + 3)
}"""
"""Without the numbers, which differ after every mount, so that an unchanged node prints the same."""


class MountTable(FactBase[dict[str, tuple[MountEntry, ...]]]):
    """Entries of /proc/self/mountinfo for these folders and /, by target, oldest first."""

    def command(self, paths: tuple[str, ...]) -> str:
        given = quote(" ".join(paths))
        return f"LC_ALL=C awk -v paths={given} {quote(_PROGRAM)} /proc/self/mountinfo"

    @staticmethod
    def default() -> dict[str, tuple[MountEntry, ...]]:
        return {}

    def process(self, output: list[str]) -> dict[str, tuple[MountEntry, ...]]:
        return parse_mountinfo("\n".join(output))
