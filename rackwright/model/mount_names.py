"""Names of mount units."""

from __future__ import annotations


def unit_name(path: str) -> str:
    """The mount unit of a folder, as `systemd-escape --path` prints it; no part of the path starts with a dot."""
    return "-".join(map(_escaped, path.strip("/").split("/"))) + ".mount"


def _escaped(part: str) -> str:
    return "".join(one if one.isalnum() or one in "_:." else f"\\x{ord(one):02x}" for one in part)
