"""Paths, names and secrets of an installed drift check, on each node and on the checker.

The checker is the machine that checks all nodes in push mode: the head, or the one that runs rackwright.
"""

from __future__ import annotations

from rackwright.secrets.names import DRIFT_NOTIFY_URLS, DRIFT_SSH_KEY

USER = "rackwright-drift"
"""The unprivileged user, on the checker and on nodes; may only run the check."""
HOME = "/var/lib/rackwright-drift"
"""Owned by root, so that the user cannot give itself another key."""
AUTHORIZED_KEYS = f"{HOME}/.ssh/authorized_keys"
FOLDER = "/etc/rackwright-drift"
QUESTIONS = f"{FOLDER}/questions.json"
EXPECTED = f"{FOLDER}/expected.json"
PROGRAM = "/usr/local/sbin/rackwright-drift"
"""Answers only the questions in FOLDER. Its folder exists everywhere and is in sudo's path."""
SUDOERS = "/etc/sudoers.d/95-rackwright-drift"
UNITS = "/etc/systemd/system"
NODE_UNIT = "rackwright-drift"
"""Pull mode: each node checks itself."""
NODE_METRICS = "rackwright_drift.prom"
WORD = "check"
"""The only command that the user's key may run on a node."""
INSTALLED_FROM_HERE = "placed-from-here"
"""Marker in the checker's folder after `--on here`, so that the engine does not take it for the head's."""
MADE_TEXTFILES = f"{HOME}/made-textfile-folder"
"""Contains the name of the textfile folder if we created it, for uninstall."""
KEY_SECRET = DRIFT_SSH_KEY
NOTIFY_SECRET = DRIFT_NOTIFY_URLS


def check_unit(cluster: str) -> str:
    """Name of the units of push mode, one pair per cluster."""
    return f"rackwright-drift-{cluster}"


def check_folder(cluster: str) -> str:
    """The checker's input: nodes, expected digests, its key. Written by root."""
    return f"{FOLDER}/{cluster}"


def state_of(cluster: str) -> str:
    """The checker's output: the state of each node and since when, and the metrics."""
    return f"{HOME}/{cluster}"


def metrics_name(cluster: str) -> str:
    """Name of the checker's metrics in node_exporter's textfile folder."""
    return f"rackwright_drift_{cluster}.prom"
