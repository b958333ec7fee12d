"""How root on a node with Alertmanager runs amtool."""

from __future__ import annotations

AMTOOL = "HOME=/nonexistent amtool --no-version-check --timeout=10s"
"""Reads /etc/prometheus/amtool.yml alone, which names the URL and a file with the password."""
