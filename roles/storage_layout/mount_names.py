"""Names of mount units."""

from __future__ import annotations


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
