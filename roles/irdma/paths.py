"""Paths on the node."""

from __future__ import annotations

PROGRAM = "/usr/local/sbin/rackwright-irdma"
UNIT = "rackwright-irdma.service"
UNIT_PATH = f"/etc/systemd/system/{UNIT}"
