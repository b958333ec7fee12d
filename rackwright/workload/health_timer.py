"""The node's own timer for the health check, where the workload manager has no program for it."""

from __future__ import annotations

import re
from collections.abc import Callable

from rackwright.workload.protocol import HealthSchedule
from rackwright.workload.states import NoAnswer

SERVICE = "rackwright-health.service"
TIMER = "rackwright-health.timer"


def schedule(ask: Callable[[str], str]) -> HealthSchedule:
    """As its units on the node have it; `ask` runs a command there. NoAnswer without them."""
    text = ask(f"systemctl cat {SERVICE} {TIMER}")
    program = re.findall(r"^ExecStart=(\S+)", text, re.MULTILINE)
    interval = re.findall(r"^OnUnitActiveSec=([0-9]{1,9})s?$", text, re.MULTILINE)
    if not program or not interval:
        raise NoAnswer(f"{TIMER} or its service has no program or no interval")
    return HealthSchedule(program[-1], int(interval[-1]))
