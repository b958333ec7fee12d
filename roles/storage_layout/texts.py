"""Names and texts of the storage_layout role."""

from __future__ import annotations

from collections.abc import Sequence


def unit_name(path: str) -> str:
    """The mount unit of a folder, as `systemd-escape --path` has it."""
    words = [
        "".join(
            one if one.isalnum() or one in "_:" or (one == "." and place) else f"\\x{ord(one):02x}"
            for place, one in enumerate(part)
        )
        for part in path.strip("/").split("/")
    ]
    return f"{'-'.join(words)}.mount"


def array_lines(node: str, arrays: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Device and superblock name of each array, for mdadm's configuration."""
    return tuple((f"/dev/md/{name}", f"{node}:{name}") for name in arrays)
