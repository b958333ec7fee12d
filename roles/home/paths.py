"""Paths on the node that makes homes."""

from __future__ import annotations

PROGRAM = "/usr/local/libexec/rackwright-homes.py"
SETTINGS = "/etc/rackwright/homes.json"
RUN = f"timeout -s KILL 300 python3 -IS {PROGRAM}"
"""Bounded, since a folder may be on a mount. Without site-packages and the environment; no value is part of it."""
AS_DECLARED = "as declared"
SERVICE, TIMER = "rackwright-homes.service", "rackwright-homes.timer"
SERVICE_PATH, TIMER_PATH = f"/etc/systemd/system/{SERVICE}", f"/etc/systemd/system/{TIMER}"
