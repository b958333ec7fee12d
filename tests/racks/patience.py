"""Waiting for what a rack does in its own time; virtual machines are emulated and slow."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.racks.site import Site

APPLY_SECONDS = 3000
"""The first apply of three machines takes a third of it when nothing else runs."""


def until(true: Callable[[], object], what: str, seconds: float = 900, *, every: float = 5) -> None:
    """Polls until `true()` holds; AssertionError after `seconds`."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"no {what} within {seconds:.0f} s"
        time.sleep(every)


def settled(site: Site, *nodes: str) -> None:
    """Until systemd of these nodes has finished booting."""
    for node in nodes:
        site.on(node, "systemctl is-system-running --wait || :", 900)
