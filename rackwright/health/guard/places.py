"""Where everything of a node's health check lies."""

from __future__ import annotations

from rackwright import textfiles

METRICS_FOLDER = textfiles.METRICS_FOLDER
TEXTFILES = textfiles.TEXTFILES

PROGRAM = "/usr/libexec/rackwright/health-check"
"""Slurm's HealthCheckProgram; with an argument it is the prolog, the epilog, or prints a verdict."""
MODULES = "/usr/libexec/rackwright/health"
"""Holds the folder of its modules, which is named by their digest."""
FOLDER = "/etc/rackwright/health"
EXPECTED = f"{FOLDER}/expected.json"
POLICY = f"{FOLDER}/policy.json"
DISABLED = f"{FOLDER}/disabled.d"
"""Kill switches of this node: a file named like a check, or `all`; its text is the reason."""
STATE = "/var/lib/rackwright/health"
"""For root alone: the last verdict holds lines of the kernel's log."""
MEMORY = f"{STATE}/memory.json"
COUNTERS = f"{STATE}/counters.json"
"""Error counters of the last day, from which an increase is told (`rackwright.health.history`)."""
GPUS = f"{STATE}/gpus.json"
"""The last query of the GPUs, which a prolog and a pass beside a job use again."""
WOULD = f"{STATE}/would.json"
"""What the node would have drained itself for while it only observes."""
DIAG = f"{STATE}/dcgm-diag.json"
"""The result of `dcgmi diag -r LEVEL -j`, where the site keeps one."""
LAST = f"{STATE}/last.json"
"""The last verdict, what was done about it and why: what `rackwright why` reads."""
OLD_CODE = f"{STATE}/health-check.code"
"""Compiled code that earlier versions kept; an apply removes it."""
METRICS = f"{METRICS_FOLDER}/rackwright_health.prom"
OLD_METRICS = "/var/lib/rackwright/prometheus"
"""Where earlier versions kept them; an apply removes it."""
