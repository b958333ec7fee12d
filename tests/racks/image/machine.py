"""This machine, as far as building an image could touch it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tests.racks.host_state import State, host_state


def state() -> State:
    """As host_state; a build has no rack."""
    return host_state("no-rack-of-the-lab")


def inside(folder: Path) -> list[str]:
    """Processes whose root is in a folder, as `PID NAME`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if Path(os.readlink(entry / "root")).is_relative_to(folder):
                found.append(f"{entry.name} {(entry / 'comm').read_text().strip()}")
    return found
