"""What keeps a cluster as declared and recoverable: drift checks, backups, runs, burn-in."""

from __future__ import annotations

from rackwright.alerts import steps
from rackwright.alerts.promql import NODE_DOWN, PLACE, placed
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_NODE = frozenset({"node"})

_DRIFTED = Alert(
    name="NodeDrifted",
    expr=placed('max by (node) (rackwright_drift_drifted{job="node"}) == 1'),
    hold_seconds=900,
    severity=Severity.WARNING,
    summary="{{ $labels.node }} is no longer as declared",
    description=prose("""
        Something on {{ $labels.node }} differs from the cluster file. See what, rackwright drift FILE, and either apply the file or
        declare the change.
    """),
    means="A person, a package or an intruder changed the node. Its next apply undoes that, perhaps at a bad moment.",
    steps=listed("""
        - `rackwright plan FILE --limit NODE` prints every difference and what apply would do.
        - Who: `rackwright runs FILE`; `journalctl _COMM=sudo -n 50` and `last` on the node; `/var/log/apt/history.log`, `dnf history`.
        - Wanted: put it into the cluster file, then apply.
        - Not wanted: `rackwright apply FILE --limit NODE`. A plan that restarts something: drain the node first.
        - Unexplained: treat the node as compromised. `rackwright verify FILE --role integrity --limit NODE`.
    """),
    jobs=_NODE,
)

_UNKNOWN = Alert(
    name="DriftUnknown",
    expr=placed(f"""
        (max by (node) (rackwright_drift_unknown{{job="node"}}) == 1 or max by (node) (rackwright_drift_unreachable{{job="node"}}) == 1)
        unless on (node) {NODE_DOWN}
    """),
    hold_seconds=3600,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: the drift state is unknown",
    description=prose("""
        The drift check has not been able to read {{ $labels.node }} for an hour, or does not trust its answer. Run rackwright drift FILE
        for the reason.
    """),
    means="Its expected answers are missing, damaged or from another apply, or ssh with the check's key fails.",
    steps=listed("""
        - `rackwright drift FILE` prints the state and the reason.
        - Never applied since the check was installed: `rackwright apply FILE --limit NODE`.
        - `rackwright drift install FILE` repairs its files and its key on the node.
        - ssh fails: see ProbeFailed; host keys that changed: `rackwright verify FILE --limit NODE` reports them.
    """),
    jobs=_NODE,
)

_DRIFT_STALE = Alert(
    name="DriftCheckNotRunning",
    expr='time() - rackwright_drift_last_check_timestamp_seconds{job="node"} > <seconds>',
    hold_seconds=300,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: no drift check for {{ $value | humanizeDuration }}",
    description=prose("""
        The last drift check that {{ $labels.node }} reports ended {{ $value | humanizeDuration }} ago. Changes go unnoticed. See its timer:
        systemctl list-timers 'rackwright-drift*'.
    """),
    means="The timer of the checker (push mode) or of the node (pull mode) does not run, or each run fails.",
    steps=listed(f"""
        - `systemctl list-timers 'rackwright-drift*'` on the node that the alert names.
        - {steps.journal("'rackwright-drift*'")}
        - `rackwright drift install FILE` repairs units, keys and files.
    """),
    jobs=_NODE,
    thresholds={
        "seconds": Threshold(
            14400,
            "seconds",
            "Time since the last check ended.",
            "rackwright: eight intervals of 30 min, as docs/drift.md installs it (2026-11-27)",
        )
    },
)

_BACKUP_FAILED = Alert(
    name="BackupFailed",
    expr=f'max by ({PLACE}, cluster) (rackwright_backup_failed{{job="node"}}) == 1',
    hold_seconds=0,
    severity=Severity.WARNING,
    summary="The last backup of {{ $labels.node }} failed",
    description=prose("""
        The last backup of {{ $labels.node }} failed. The one before it is still there and grows old. Read why, journalctl -u
        rackwright-backup there, then start another.
    """),
    means="Job history, accounts, the queue and the site's secrets on this head could be restored as of the last success only.",
    steps=listed(f"""
        - {steps.journal("rackwright-backup")}
        - The place is full or away: `df -h` for its folder; ssh or mount to where copies go.
        - mariadb-dump failed: see MariadbDown.
        - `systemctl start rackwright-backup`, wait, then `rackwright restore FILE --list` shows the new one.
    """),
    jobs=_NODE,
)

_BACKUP_OLD = Alert(
    name="BackupTooOld",
    expr=f'max by ({PLACE}, cluster) (time() - rackwright_backup_last_success_timestamp_seconds{{job="node"}}) > <seconds>',
    hold_seconds=300,
    severity=Severity.CRITICAL,
    summary="The newest backup of {{ $labels.node }} is {{ $value | humanizeDuration }} old",
    description=prose("""
        The newest backup of {{ $labels.node }} was made {{ $value | humanizeDuration }} ago. A head that dies now loses what happened
        since. Find out why its timer makes none: journalctl -u rackwright-backup.
    """),
    means="Backups have failed several times, or the timer does not run.",
    steps=listed(f"""
        - `systemctl list-timers rackwright-backup.timer` on the head: enabled, next run?
        - {steps.journal("rackwright-backup")}
        - `systemctl start rackwright-backup` makes one now.
        - `rackwright restore FILE --list` shows which backups can be restored.
    """),
    jobs=_NODE,
    thresholds={
        "seconds": Threshold(
            172800,
            "seconds",
            "Age of the newest backup.",
            "rackwright: one nightly backup was missed (2026-11-27)",
        )
    },
)

_RUN = Alert(
    name="RunFailed",
    expr='rackwright_run_last_exit_status{job="node",command=~"apply|reboot|resume"} == 1',
    hold_seconds=0,
    severity=Severity.INFO,
    summary="The last rackwright {{ $labels.command }} failed",
    description=prose("""
        The last rackwright {{ $labels.command }} ended with exit status {{ $value }}. Nodes may be half-way between two declarations. See
        which: rackwright runs FILE; rackwright resume ID finishes it.
    """),
    means="A run stopped at a node that failed. Nodes after it in the plan have not been touched.",
    steps=listed("""
        - `rackwright runs FILE`, then `rackwright runs ID FILE`: which node, which step, which error?
        - Repair that node, or leave it out.
        - `rackwright resume ID` goes on where it stopped.
    """),
    jobs=_NODE,
)

_BURNIN = Alert(
    name="BurninSlower",
    expr="""
rackwright_burnin_busbw_gbs{job="node"} < max_over_time(rackwright_burnin_busbw_gbs{job="node"}[30d]) * <percent> / 100
""",
    hold_seconds=0,
    severity=Severity.WARNING,
    summary='The last burn-in of {{ $labels.nodes }} reached {{ $value | printf "%.0f" }} GB/s, less than before',
    description=prose("""
        The last burn-in ({{ $labels.stage }}, {{ $labels.nodes }}) reached {{ $value | printf "%.0f" }} GB/s, below <percent> % of the best
        within 30 days. Something got slower: rackwright burnin compare FILE names the nodes.
    """),
    means="A node, a link, a driver or a setting changed since the better run.",
    steps=listed("""
        - `rackwright burnin compare FILE`: which nodes or units are slower than they were?
        - `rackwright runs FILE`: what was applied in between?
        - `rackwright burnin FILE` again; its search names the culprit. FabricPortsSlow, GpuThrottledByHeat for a node?
        - Drain what is slow, repair it, and measure again.
    """),
    jobs=_NODE,
    thresholds={
        "percent": Threshold(
            90,
            "percent",
            "Bandwidth, of the best within 30 days.",
            "rackwright: runs of one cluster differ by less than 5 (2026-11-27)",
        )
    },
)

GROUP = RuleGroup("upkeep", (_DRIFTED, _UNKNOWN, _DRIFT_STALE, _BACKUP_FAILED, _BACKUP_OLD, _RUN, _BURNIN))
