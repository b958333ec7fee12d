"""Paths on the node, and names below the filesystem."""

from __future__ import annotations

COMMAND = "/usr/local/bin/rackwright-dataset"
PROGRAM = "/usr/local/libexec/rackwright-dataset.py"
SETTINGS = "/etc/rackwright/dataset-cache.json"
STATE = "/run/rackwright-dataset"
"""Locks."""
RUN = f"python3 -IS {PROGRAM}"
"""Without site-packages and the environment; no value is part of it."""
FILL = "rackwright-dataset-fill.service"
TIMER = "rackwright-dataset-fill.timer"
UNITS = "/etc/systemd/system"
CACHE = "datasets"
INCOMING = ".incoming"
MANIFESTS = ".manifests"
BIN = ".rackwright-removing-datasets"
"""Folders of the filesystem: the cache; in it root's own, of what is being fetched, and of checksums; what is being removed."""
