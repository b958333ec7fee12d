"""Valid mount points, and folders of the operating system, which a mount would hide."""

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
"""Filesystems may be mounted below these, e.g. on /usr/local or /var/lib/mysql."""


def is_absolute(path: str) -> bool:
    """Whether it is an absolute path below /, without `..`, a trailing slash, or characters that need quoting."""
    return _ABSOLUTE.fullmatch(path) is not None


def belongs_to_system(path: str) -> bool:
    """Whether a filesystem mounted here would break the operating system or hide its state."""
    above = {str(folder) for folder in PurePosixPath(path).parents}
    return path in _ALONE or not _WITH_ALL_BELOW.isdisjoint({path, *above})
