"""Drills of alerts about drift checks, backups and the central journal."""

from __future__ import annotations

from rackwright.backup.places import SERVICE, SETTINGS, TIMER
from rackwright.drift.paths import EXPECTED, NODE_UNIT, UNITS
from rackwright.drill.choose import head, other_worker
from rackwright.drill.model import Drill, Need, Shell
from rackwright.logs.keeper import LAST

_SLURM_LANE = "slurm"
"""Its drills stop MariaDB, without which a backup fails."""
_KEPT = f"{EXPECTED}.rackwright-drill"
_DECLARED = "/etc/cloud/cloud.cfg.d/99-rackwright.cfg"
"""Nothing reads it before the next boot."""
_CHECKED = Need(
    f"{UNITS}/{NODE_UNIT}.timer",
    "the drift check is not installed",
    "rackwright drift install FILE --mode pull --every 1m",
)
_BACKED_UP = Need(
    f"{UNITS}/{TIMER}",
    "no backups are made",
    "declare the role backup, and apply",
)
_KEPT_LOGS = Need(
    f"{UNITS}/rackwright-logs-keeper.timer",
    "no central journal is kept",
    "declare the role logs, and apply",
)
_KEEP_LOGS = "systemctl start rackwright-logs-keeper"
_IN_ITS_WAY = f"{LAST}.new"
"""A folder where the keeper would write how its pass ended."""
_CHECK = f"systemctl start {NODE_UNIT}"
_PLACE = f'$(python3 -c \'import json; print(json.load(open("{SETTINGS}"))["place"])\')'
_BACK_UP = f"systemctl start {SERVICE}"
_KEEP_TRYING = f"for try in 1 2 3 4 5 6 7 8; do {_BACK_UP} && break; sleep 5; done"

UPKEEP_DRILLS: tuple[Drill, ...] = (
    Drill(
        "NodeDrifted",
        "a file written by rackwright has another mode",
        other_worker,
        Shell(f"chmod 600 {_DECLARED}; {_CHECK}", f"chmod 644 {_DECLARED}; {_CHECK}"),
        needs=_CHECKED,
    ),
    Drill(
        "DriftUnknown",
        "the expected answers are missing",
        other_worker,
        Shell(f"mv {EXPECTED} {_KEPT}; {_CHECK}", f"[ ! -e {_KEPT} ] || mv {_KEPT} {EXPECTED}; {_CHECK}"),
        needs=_CHECKED,
    ),
    Drill(
        "DriftCheckNotRunning",
        "the timer of the check is stopped",
        head,
        Shell(f"systemctl stop {NODE_UNIT}.timer", f"systemctl start {NODE_UNIT}.timer; {_CHECK}"),
        lane="drift",
        needs=_CHECKED,
    ),
    Drill(
        "BackupFailed",
        "other users can write to the backup folder",
        head,
        Shell(
            f"chmod 777 {_PLACE}; {_BACK_UP} || :",
            f"chmod 700 {_PLACE}; {_KEEP_TRYING}",
        ),
        lane=_SLURM_LANE,
        needs=_BACKED_UP,
    ),
    Drill(
        "BackupTooOld",
        "the backup timer is stopped",
        head,
        Shell(f"systemctl stop {TIMER}", f"systemctl start {TIMER}; {_KEEP_TRYING}"),
        lane="backup",
        needs=_BACKED_UP,
    ),
    Drill(
        "LogsKeeperFailing",
        "the keeper cannot write its status",
        head,
        Shell(
            f"mkdir {_IN_ITS_WAY}; {_KEEP_LOGS} || :",
            f"[ ! -d {_IN_ITS_WAY} ] || rmdir {_IN_ITS_WAY}; {_KEEP_LOGS}",
        ),
        lane="logs",
        needs=_KEPT_LOGS,
    ),
)
