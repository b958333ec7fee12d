"""Where everything of a node's health check lies."""

from __future__ import annotations

PROGRAM = "/usr/libexec/rackwright/health-check"
"""Slurm's HealthCheckProgram; with an argument it is the prolog, the epilog, or prints a verdict."""
FOLDER = "/etc/rackwright/health"
EXPECTED = f"{FOLDER}/expected.json"
POLICY = f"{FOLDER}/policy.json"
DISABLED = f"{FOLDER}/disabled.d"
"""Kill switches of this node: a file named like a check, or `all`; its text is the reason."""
STATE = "/var/lib/rackwright/health"
MEMORY = f"{STATE}/memory.json"
LAST = f"{STATE}/last.json"
"""The last verdict, what was done about it and why: what `rackwright why` reads."""
METRICS = "rackwright_health.prom"
TEXTFILES = "/var/lib/prometheus/node-exporter"
"""Where Debian's node_exporter looks for textfiles."""
