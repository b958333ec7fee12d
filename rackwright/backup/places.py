"""Paths of a node's backups. Standard library only: it also runs on the node."""

from __future__ import annotations

from rackwright import textfiles

METRICS_FOLDER = textfiles.METRICS_FOLDER
TEXTFILES = textfiles.TEXTFILES

PROGRAM = "/usr/libexec/rackwright/backup"
FOLDER = "/etc/rackwright/backup"
SETTINGS = f"{FOLDER}/settings.json"
RECIPIENTS = f"{FOLDER}/recipients"
"""age public keys that backups are encrypted to, one per line."""
SERVICE = "rackwright-backup.service"
TIMER = "rackwright-backup.timer"
STATE = "/var/lib/rackwright/backup"
"""Readable only by root."""
SITE = f"{STATE}/site"
"""The cluster file and the files next to it, as of the last apply; secrets in it are encrypted."""
LAST = f"{STATE}/last.json"
"""The last attempt, and the last one that succeeded."""
INSTALLATION = f"{STATE}/installation"
"""Id of this installation of the node: created by its first backup, and taken over from a restored one."""
LOCK = f"{STATE}/lock"
RESTORE = "/var/lib/rackwright/restore"
"""What an active or interrupted restore keeps on the node; only for root."""
UNFINISHED = f"{RESTORE}/unfinished.json"
RESTORE_LOCK = f"{RESTORE}/lock"
GUARD = "/etc/systemd/system/{unit}.d/rackwright-restore.conf"
"""Keeps a unit from starting, even after a reboot, while a restore is unfinished."""
METRICS = f"{METRICS_FOLDER}/rackwright_backup.prom"
