"""Silences keep alerts from the webhook: an apply or a reboot that has just ended leaves one for a few minutes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from rackwright.errors import RackwrightError
from rackwright.lab.rack import Rack

AMTOOL = "HOME=/nonexistent amtool --no-version-check --timeout=10s"
"""With /etc/prometheus/amtool.yml alone, which names the URL and a file with the password."""
_POLL_SECONDS = 5.0


def wait_for_silences(rack: Rack, node: str, limit_seconds: float, told: Callable[[str], None]) -> None:
    """Until Alertmanager on the node has none; `told` hears at once what is waited for."""
    began, waiting = time.monotonic(), False
    while found := _silences(rack, node):
        about = "; ".join(f"{one.get('comment', '?')}, until {one.get('endsAt', '?')}" for one in found)
        if time.monotonic() - began > limit_seconds:
            raise RackwrightError(
                f"Alertmanager on {node} has silences: {about}.",
                hint=f"rackwright lab exec {node} amtool silence expire {found[0].get('id', 'ID')}",
            )
        if not waiting:
            told(f"waiting for silences to end: {about}")
            waiting = True
        time.sleep(_POLL_SECONDS)


def _silences(rack: Rack, node: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        rack.run(node, ["sh", "-c", f"{AMTOOL} --output=json silence query"]) or "[]"
    )
    return found
