"""Paths on the node."""

from __future__ import annotations

PROGRAM = "/usr/local/libexec/rackwright-roce.py"
SETTINGS = "/etc/rackwright/roce.json"
UNIT = "rackwright-roce.service"
UNIT_PATH = f"/etc/systemd/system/{UNIT}"
SYSCTLS = "/etc/sysctl.d/91-rackwright-roce.conf"
RUN = f"python3 -IS {PROGRAM}"
"""Without site-packages and the environment; no value is part of it."""
