"""Paths on the node."""

from __future__ import annotations

PROGRAM = "/usr/local/sbin/rackwright-spectrum-x"
UNIT = "rackwright-spectrum-x.service"
UNIT_PATH = f"/etc/systemd/system/{UNIT}"
