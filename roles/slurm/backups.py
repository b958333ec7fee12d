"""What of Slurm is backed up, what stops for a restore, and what a restore would destroy."""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote

from rackwright.model.backups import BackupPart, StoppedUnit
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import AccountingDatabase
from rackwright.roles.slurm import placement, state
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.records import declared_records

# `set -e` ends at a question that is not answered, so that no answer is never taken for nothing.
_QUEUE = """\
set -eu
jobs=$(timeout 20 squeue --noheader --all --format=%A)
[ -z "$jobs" ] || echo "$(printf '%s\\n' "$jobs" | wc -l) jobs in the queue"
"""
_RECORDS = """\
set -eu
ask() {{ timeout 60 mariadb --no-defaults --user=root --batch --skip-column-names --execute="$1" {database}; }}
tables=$(ask 'SHOW TABLES')
has() {{ printf '%s\\n' "$tables" | grep -qxF "$1"; }}
if has {jobs}; then
  count=$(ask {count})
  [ "$count" = 0 ] || echo "$count jobs in the accounting records"
fi
named() {{
  has "$1" || return 0
  names=$(ask "$2")
  [ -z "$names" ] || echo "undeclared $3: $(printf '%s\\n' "$names" | head -n 5 | paste -sd ' ')"
}}
named acct_table {accounts} accounts
named user_table {users} users
"""
# tables as slurmdbd makes them: src/plugins/accounting_storage/mysql/accounting_storage_mysql.c, read 2026-11-26
_UNDECLARED = "SELECT name FROM {table} WHERE deleted=0 AND name NOT IN ({declared}) ORDER BY name"


def parts(options: SlurmOptions, node: Node) -> tuple[BackupPart, ...]:
    """slurmctld's state, of the primary head; records that were purged into files, of slurmdbd's node."""
    found = []
    if node.primary:
        found.append(
            BackupPart(
                name="slurmctld",
                about="state of slurmctld",
                folder=options.state_dir,
                ready=_state_is_there(options, node),
            )
        )
    archive = options.accounting.archived.get("ArchiveDir")
    if archive is not None and placement.runs_slurmdbd(node, options):
        found.append(
            BackupPart(
                name="purged-records",
                about="archived accounting records",
                folder=archive,
                ready=_archive_is_there(options, node, archive),
            )
        )
    return tuple(found)


def _state_is_there(options: SlurmOptions, node: Node) -> str:
    """Succeeds on the declared filesystem alone: what lies below its mount point is not the state."""
    mount, declared = options.state_mount, state.state_on(node, options)
    conditions = [f"mountpoint -q {quote(mount.path)}"] if mount is not None else []
    if declared is not None and declared.units:
        conditions.append(state.PROGRAM)
    return " && ".join([*conditions, f"test -d {quote(options.state_dir)}"])


def _archive_is_there(options: SlurmOptions, node: Node, archive: str) -> str:
    """Succeeds on the declared filesystem alone, as for the state; state.PROGRAM is on controllers, not on every slurmdbd's node."""
    mount, declared = options.state_mount, state.held_on(node, archive)
    paths = [mount.path] if mount is not None and state.is_below(archive, mount.path) else []
    conditions = [
        f"mountpoint -q {quote(path)}"
        for path in dict.fromkeys([*paths, *(declared.mount_points if declared else ())])
    ]
    return " && ".join([*conditions, f"test -d {quote(archive)}"])


def units(options: SlurmOptions, node: Node) -> tuple[StoppedUnit, ...]:
    """slurmdbd first, since slurmctld asks it for accounts; the primary's slurmctld before those that take over."""
    found = []
    if placement.runs_slurmdbd(node, options):
        found.append(
            StoppedUnit("slurmdbd.service", 1, "timeout 10 sacctmgr --noheader --parsable2 list cluster")
        )
    if placement.runs_slurmctld(node, options):
        found.append(
            StoppedUnit(
                "slurmctld.service", 2 if node.primary else 3, "timeout 10 scontrol ping | grep -q UP"
            )
        )
    return tuple(found)


def probes(options: SlurmOptions, cluster: Cluster, node: Node) -> dict[str, str]:
    """Asked where the answer is: slurmctld, and the database itself, which answers without slurmdbd too."""
    found = {"the queue": _QUEUE} if node.primary else {}
    database = node.offers(AccountingDatabase)
    if database is not None:
        found["accounting records"] = _records(options, cluster, database.database)
    return found


def _records(options: SlurmOptions, cluster: Cluster, database: str) -> str:
    declared = declared_records(cluster, options)
    jobs = f"{cluster.name.lower()}_job_table"  # slurmdbd has names of clusters in lower case
    return _RECORDS.format(
        database=quote(database),
        jobs=quote(jobs),
        count=quote(f"SELECT COUNT(*) FROM `{jobs}` WHERE deleted=0"),
        accounts=quote(_UNDECLARED.format(table="acct_table", declared=_sql(["root", *declared.accounts]))),
        users=quote(
            _UNDECLARED.format(
                table="user_table", declared=_sql(["root", "slurm", *(one.user for one in declared.members)])
            )
        ),
    )


def _sql(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(set(names)))
