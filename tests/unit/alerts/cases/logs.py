"""Cases of rackwright.alerts.logs."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import GPU1, HEAD, declared, head, node

_NEWEST = head("rackwright_logs_newest_timestamp_seconds", node="gpu1")
_LATE = "is 1h 6m 0s old, and each node writes one every five minutes. What happens there now is on its disk alone. See why: journalctl -u systemd-journal-upload -n 20 on the node."
_FAILS = "The keeper on head1 copies logins, sudo and runs into the audit trail and removes old journal files. It has failed for 15 minutes, or has not run. Nothing more reaches the trail, and the disk fills. Read why: journalctl -u rackwright-logs-keeper -n 20."

CASES = (
    Case(
        alert="LogsNotArriving",
        series={_NEWEST: "0*70 4200*5", declared("node"): "1*75", node("up"): "1*75"},
        fires=3960,
        labels=GPU1,
        severity="warning",
        summary="gpu1: no log line has arrived for 1h 6m 0s",
        description=f"The newest line of gpu1 in the central journal {_LATE}",
        heals=4200,
        under=({_NEWEST: "-3600+60*75"}, {node("up"): "0*75"}),
    ),
    Case(
        alert="LogsKeeperFailing",
        series={head("rackwright_logs_keeper_failed"): "0*2 1*18 0*3"},
        fires=1020,
        labels=HEAD,
        severity="warning",
        summary="head1: the keeper of the central journal fails, or does not run",
        description=_FAILS,
        heals=1200,
        under=({head("rackwright_logs_keeper_failed"): "0*2 1*14 0*7"},),
    ),
    Case(
        alert="LogsKeeperFailing",
        series={head("rackwright_logs_keeper_last_run_timestamp_seconds"): "0*80 4800*5"},
        fires=4560,
        labels=HEAD,
        severity="warning",
        summary="head1: the keeper of the central journal fails, or does not run",
        description=_FAILS,
        heals=4800,
        under=({head("rackwright_logs_keeper_last_run_timestamp_seconds"): "-3600+60*85"},),
    ),
)
