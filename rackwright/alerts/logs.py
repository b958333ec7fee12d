"""The central journal: lines that do not arrive, and its keeper."""

from __future__ import annotations

from rackwright.alerts.promql import NODE_DOWN, placed
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_NODE = frozenset({"node"})

_LATE = Alert(
    name="LogsNotArriving",
    expr=placed(f"""
        max by (node) (time() - rackwright_logs_newest_timestamp_seconds{{job="node"}}) > <seconds> unless on (node) {NODE_DOWN}
    """),
    hold_seconds=300,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: no log line has arrived for {{ $value | humanizeDuration }}",
    description=prose("""
        The newest line of {{ $labels.node }} in the central journal is {{ $value | humanizeDuration }} old, and each node writes one every five minutes.
        What happens there now is on its disk alone. See why: journalctl -u systemd-journal-upload -n 20 on the node.
    """),
    means="The node's uploader has stopped, its certificate is refused, or its clock is behind. Nothing is lost: it sends the rest later.",
    steps=listed("""
        - `systemctl status systemd-journal-upload` on the node, and its journal: refused, x509, no route?
        - Several nodes: the receiver. `systemctl status 'rackwright-logs*'` on the head; is its disk full?
        - Its clock: see ClockDiffersFromHead. Lines have the time of the node.
        - `rackwright verify FILE --role logs --limit NODE`, then apply.
    """),
    jobs=_NODE,
    thresholds={
        "seconds": Threshold(
            3600,
            "seconds",
            "Age of a node's newest line.",
            "rackwright: twelve of the marks that each node writes every 5 minutes (2026-11-27)",
        )
    },
)

_KEEPER = Alert(
    name="LogsKeeperFailing",
    expr="""
rackwright_logs_keeper_failed{job="node"} == 1
or time() - rackwright_logs_keeper_last_run_timestamp_seconds{job="node"} > <seconds>
""",
    hold_seconds=900,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: the keeper of the central journal fails, or does not run",
    description=prose("""
        The keeper on {{ $labels.node }} copies logins, sudo and runs into the audit trail and removes old journal files. It has failed for 15
        minutes, or has not run. Nothing more reaches the trail, and the disk fills. Read why: journalctl -u rackwright-logs-keeper -n 20.
    """),
    means="Lines still arrive and can be read. A line stays where it is until the trail has it, so that nothing is lost until the disk is full.",
    steps=listed("""
        - `journalctl -u rackwright-logs-keeper -n 20` on the node that the alert names has the error, by node.
        - Less than half of `keep_free` left: make room; see FilesystemFull.
        - A damaged journal file: `journalctl --verify --file=FILE`; move it away once its node's newer files are there.
        - It does not run: `systemctl list-timers rackwright-logs-keeper.timer`. `rackwright apply FILE --role logs` repairs the units.
    """),
    jobs=_NODE,
    thresholds={
        "seconds": Threshold(
            3600,
            "seconds",
            "Time since the keeper last ran.",
            "rackwright: twelve of its intervals of 5 minutes (2026-11-27)",
        )
    },
)

GROUP = RuleGroup("logs", (_LATE, _KEEPER))
