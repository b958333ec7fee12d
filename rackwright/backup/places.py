"""Where everything of a node's backups lies. Standard library only: it runs on the node too."""

from __future__ import annotations

from rackwright import textfiles

METRICS_FOLDER = textfiles.METRICS_FOLDER
TEXTFILES = textfiles.TEXTFILES

PROGRAM = "/usr/libexec/rackwright/backup"
FOLDER = "/etc/rackwright/backup"
SETTINGS = f"{FOLDER}/settings.json"
RECIPIENTS = f"{FOLDER}/recipients"
"""age public keys that backups are encrypted to, one a line."""
SERVICE = "rackwright-backup.service"
TIMER = "rackwright-backup.timer"
STATE = "/var/lib/rackwright/backup"
"""For root alone."""
SITE = f"{STATE}/site"
"""The cluster file and what lies beside it, as the last apply had them; secrets in it are encrypted."""
LAST = f"{STATE}/last.json"
"""The last attempt, and the last one that succeeded."""
INSTALLATION = f"{STATE}/installation"
"""Id of this installation of the node: made by its first backup, and taken over from a backup that is put back."""
LOCK = f"{STATE}/lock"
RESTORE = "/var/lib/rackwright/restore"
"""What a restore that goes on, or was interrupted, keeps on the node; for root alone."""
UNFINISHED = f"{RESTORE}/unfinished.json"
RESTORE_LOCK = f"{RESTORE}/lock"
GUARD = "/etc/systemd/system/{unit}.d/rackwright-restore.conf"
"""Keeps a unit from starting, after a reboot too, while a restore is unfinished."""
METRICS = f"{METRICS_FOLDER}/rackwright_backup.prom"
