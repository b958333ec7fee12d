"""Where everything of an installed drift check lies: on each node, and on the machine that asks."""

from __future__ import annotations

USER = "rackwright-drift"
"""Asks, and is asked, on every machine; may do nothing else."""
HOME = "/var/lib/rackwright-drift"
"""Root's own, so that the user cannot give itself another key."""
AUTHORIZED_KEYS = f"{HOME}/.ssh/authorized_keys"
FOLDER = "/etc/rackwright-drift"
QUESTIONS = f"{FOLDER}/questions.json"
EXPECTED = f"{FOLDER}/expected.json"
PROGRAM = "/usr/local/sbin/rackwright-drift"
"""Answers only what lies in FOLDER. A folder that exists everywhere and is in sudo's path."""
SUDOERS = "/etc/sudoers.d/95-rackwright-drift"
UNITS = "/etc/systemd/system"
NODE_UNIT = "rackwright-drift"
"""Of pull mode: each node checks itself."""
NODE_METRICS = "rackwright_drift.prom"
WORD = "check"
"""The one command its key may ask a node for."""
HERE = "placed-from-here"
"""In the asking side's folder where `--on here` placed it, lest the engine takes it for the head's."""
TEXTFILES = "/var/lib/prometheus/node-exporter"
"""Where Debian's node_exporter looks for textfiles."""
MADE_TEXTFILES = f"{HOME}/made-textfile-folder"
"""Stands where we made the textfile folder, so that uninstall knows."""
KEY_SECRET = "drift_ssh_key"
NOTIFY_SECRET = "drift_notify_urls"


def check_unit(cluster: str) -> str:
    """Name of the units of push mode, one pair per cluster."""
    return f"rackwright-drift-{cluster}"


def check_folder(cluster: str) -> str:
    """What the asking side reads: which nodes, which digests, its key. Root writes it."""
    return f"{FOLDER}/{cluster}"


def state_of(cluster: str) -> str:
    """What the asking side writes: since when each node is in which state, and the metrics."""
    return f"{HOME}/{cluster}"


def metrics_name(cluster: str) -> str:
    """Name of the asking side's metrics below node_exporter's textfile folder."""
    return f"rackwright_drift_{cluster}.prom"
