"""Paths of a node's health check."""

from __future__ import annotations

from rackwright import textfiles

METRICS_FOLDER = textfiles.METRICS_FOLDER
TEXTFILES = textfiles.TEXTFILES

PROGRAM = "/usr/libexec/rackwright/health-check"
"""One pass, regularly: Slurm's HealthCheckProgram, or what the node's timer runs; with an argument it is the prolog, the epilog, or prints a verdict."""
MODULES = "/usr/libexec/rackwright/health"
"""Holds the folder with its modules, which is named after their digest."""
FOLDER = "/etc/rackwright/health"
EXPECTED = f"{FOLDER}/expected.json"
POLICY = f"{FOLDER}/policy.json"
DISABLED = f"{FOLDER}/disabled.d"
"""Kill switches of this node: a file named after a check, or `all`; its text is the reason."""
STATE = "/var/lib/rackwright/health"
"""Readable by root only: the last verdict contains lines of the kernel log."""
MEMORY = f"{STATE}/memory.json"
COUNTERS = f"{STATE}/counters.json"
"""Error counters of the last day, from which increases are computed (`rackwright.health.history`)."""
GPUS = f"{STATE}/gpus.json"
"""The last GPU query, which a prolog and a pass beside a job reuse."""
WOULD = f"{STATE}/would.json"
"""What would have drained the node while it only observes."""
DIAG = f"{STATE}/dcgm-diag.json"
"""The result of `dcgmi diag -r LEVEL -j`, where the site keeps one."""
LAST = f"{STATE}/last.json"
"""The last verdict, the action and its reason; `rackwright why` reads this."""
OLD_CODE = f"{STATE}/health-check.code"
"""Compiled code that earlier versions kept; an apply removes it."""
METRICS = f"{METRICS_FOLDER}/rackwright_health.prom"
OLD_METRICS = "/var/lib/rackwright/prometheus"
"""Where earlier versions kept them; an apply removes it."""
