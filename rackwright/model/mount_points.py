"""Folders that a filesystem can be mounted on, and those of the operating system, which it would hide."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

_ABSOLUTE = re.compile(r"(/[A-Za-z0-9_][A-Za-z0-9._-]*)+")
_WITH_ALL_BELOW = frozenset(
    [
        *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys"),
        *("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/libexec", "/usr/sbin"),
    ]
)
_ALONE = frozenset(["/", "/tmp", "/usr", "/var", "/var/lib", "/var/log"])
"""Below these a filesystem has its place, e.g. /usr/local or /var/lib/mysql."""


def is_absolute(path: str) -> bool:
    """Whether it is an absolute path below /, without `..`, a slash at its end, or characters that need quoting."""
    return _ABSOLUTE.fullmatch(path) is not None


def belongs_to_system(path: str) -> bool:
    """Whether the operating system does not work, or loses its state, with a filesystem mounted here."""
    above = {str(folder) for folder in PurePosixPath(path).parents}
    return path in _ALONE or not _WITH_ALL_BELOW.isdisjoint({path, *above})
