"""Silences keep alerts from the webhook: a recent apply or reboot leaves one for a few minutes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from rackwright.errors import RackwrightError
from rackwright.lab.rack import Rack
from rackwright.silences.amtool import AMTOOL

_POLL_SECONDS = 5.0


def wait_for_silences(rack: Rack, node: str, limit_seconds: float, report: Callable[[str], None]) -> None:
    """Returns once Alertmanager on the node has none; `report` is called with what it waits for."""
    began, waiting = time.monotonic(), False
    while found := _silences(rack, node):
        about = "; ".join(f"{one.get('comment', '?')}, until {one.get('endsAt', '?')}" for one in found)
        if time.monotonic() - began > limit_seconds:
            raise RackwrightError(
                f"Alertmanager on {node} has silences: {about}.",
                hint=f"rackwright lab exec {node} amtool silence expire {found[0].get('id', 'ID')}",
            )
        if not waiting:
            report(f"waiting for silences to end: {about}")
            waiting = True
        time.sleep(_POLL_SECONDS)


def _silences(rack: Rack, node: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        rack.run(node, ["sh", "-c", f"{AMTOOL} --output=json silence query"]) or "[]"
    )
    return found
