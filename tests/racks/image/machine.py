"""This machine, as far as building an image could touch it."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

from rackwright.lab.disk import loop_files

_RACKS = ("/run/netns", "/run/rackwright/")


def state() -> dict[str, object]:
    """Links, routes, packet filter, mounts, loop and md devices; without those of racks, which come and go."""
    mounts = [line.split(" ", 4)[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return {
        "links": _said("ip", "-brief", "link"),
        "addresses": _said("ip", "-brief", "address"),
        "routes": _said("ip", "route", "show", "table", "all"),
        "namespaces": [line for line in _said("ip", "netns").splitlines() if not line.startswith("rw-")],
        "packet filter": _said("nft", "list", "ruleset"),
        "mounts": sorted(line for line in mounts if not line.startswith(_RACKS)),
        "loop devices": [file for file in loop_files() if "/racks/" not in file],
        "md": Path("/proc/mdstat").read_text() if Path("/proc/mdstat").exists() else None,
    }


def inside(folder: Path) -> list[str]:
    """Processes whose root is in a folder, as `PID NAME`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if Path(os.readlink(entry / "root")).is_relative_to(folder):
                found.append(f"{entry.name} {(entry / 'comm').read_text().strip()}")
    return found


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout
    except FileNotFoundError:
        return "not installed"
