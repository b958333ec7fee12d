"""Paths on the node, and names below the filesystem."""

from __future__ import annotations

PROGRAM = "/usr/local/libexec/rackwright-scratch.py"
SETTINGS = "/etc/rackwright/scratch.json"
STATE = "/run/rackwright-scratch"
"""A file for each job whose folder was made since the node booted."""
RUN = f"python3 -IS {PROGRAM}"
"""Without site-packages and the environment; no value is part of it."""
SWEEP = "rackwright-scratch-sweep.service"
TIMER = "rackwright-scratch-sweep.timer"
UNITS = "/etc/systemd/system"
JOBS = "jobs"
USERS = "users"
BIN = ".rackwright-removing"
"""Folders of the filesystem: of jobs, of users, and root's alone, of what is being removed."""
