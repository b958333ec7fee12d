"""Results of rackwright's checks, and whether the monitoring itself works."""

from __future__ import annotations

from rackwright.dashboards.model import Colour, Dashboard, Row, Thresholds, Unit
from rackwright.dashboards.parts import (
    ANSWERS,
    ANY_IS_BAD,
    NONE_IS_GOOD,
    RACK,
    counted,
    stat,
    states,
    table,
    time,
)

_IN = 'rack=~"$rack"'
_HERE = f"and on (node) rackwright_declared_node{{{_IN}}}"
"""A head's drift metrics about other nodes carry the head's rack."""
_AGE = Thresholds(((900, Colour.NOTICE), (3600, Colour.BAD)))
_STATUS = {
    "PASS": Colour.GOOD,
    "WARN": Colour.NOTICE,
    "FAIL": Colour.BAD,
    "UNKNOWN": Colour.PLANNED,
    "DISABLED": Colour.OFF,
    "OUT OF SCOPE": Colour.OFF,
}
_NOW = Row(
    "Now",
    (
        stat(
            "Nodes with a failed check",
            Unit.NUMBER,
            "Nodes whose last health check found something wrong.",
            (
                counted(
                    f"max by (node) (rackwright_health_failed{{{_IN}}}) > 0",
                    f"rackwright_health_last_pass_timestamp_seconds{{{_IN}}}",
                ),
                "nodes",
            ),
            thresholds=ANY_IS_BAD,
        ),
        stat(
            "Drained by the health check",
            Unit.NUMBER,
            "Nodes that the check itself drained; they come back once they are well.",
            (f"sum(rackwright_health_drained{{{_IN}}})", "nodes"),
            thresholds=NONE_IS_GOOD,
        ),
        stat(
            "Oldest health check",
            Unit.SECONDS,
            "The node with the oldest last pass. A node without passes is not monitored.",
            (f"time() - min(rackwright_health_last_pass_timestamp_seconds{{{_IN}}})", "ago"),
            thresholds=_AGE,
        ),
        stat(
            "Nodes that drifted",
            Unit.NUMBER,
            "Nodes that are no longer as declared.",
            (f"sum(rackwright_drift_drifted {_HERE})", "nodes"),
            thresholds=NONE_IS_GOOD,
        ),
        stat(
            "Last backup",
            Unit.SECONDS,
            "Time since the newest backup of the head.",
            ("time() - max(rackwright_backup_last_success_timestamp_seconds)", "ago"),
            thresholds=Thresholds(((90000, Colour.NOTICE), (180000, Colour.BAD))),
        ),
        stat(
            "Exporters that do not answer",
            Unit.NUMBER,
            "Prometheus targets that are down; their metrics are missing from every panel.",
            (counted("up == 0", "up"), "targets"),
            thresholds=ANY_IS_BAD,
        ),
    ),
)
_HEALTH = Row(
    "Health",
    (
        table(
            "Failed checks",
            "What failed in each node's last pass, and what the policy does about it.",
            ("node", "check", "action"),
            (
                f"max by (node, check, action) (rackwright_health_failed{{{_IN}}}) > 0",
                "failed",
                Unit.NUMBER,
            ),
            empty="No health check fails.",
        ),
        table(
            "Would be drained",
            "Nodes that only observe, and checks for which they would be drained if they acted. Before `act: true`, this table "
            "should be empty or right.",
            ("node", "check"),
            (f"max by (node, check) (rackwright_health_would_drain{{{_IN}}}) > 0", "checks", Unit.NUMBER),
            empty="No node would be drained.",
        ),
        time(
            "Results of health checks",
            Unit.NUMBER,
            "Of all nodes. `UNKNOWN` is a check that had no data: a tool is missing or hangs.",
            (f"sum by (status) (rackwright_health_checks{{{_IN}}})", "{{status}}"),
            stacked=True,
            colours=_STATUS,
        ),
        time(
            "Duration of a pass",
            Unit.SECONDS,
            "The slowest node. A pass that takes long waits for a GPU or a disk that does not answer.",
            (f"max(rackwright_health_pass_duration_seconds{{{_IN}}})", "slowest"),
            (f"avg(rackwright_health_pass_duration_seconds{{{_IN}}})", "mean"),
            low=0,
        ),
    ),
)
_DRIFT = Row(
    "Drift and runs",
    (
        table(
            "Drifted nodes",
            "Nodes that `rackwright apply` would change; `rackwright drift` lists the changes.",
            ("node",),
            (f"max by (node) (rackwright_drift_drifted {_HERE}) > 0", "drifted", Unit.NUMBER),
            (
                (
                    f"time() - max by (node) (rackwright_drift_last_in_sync_timestamp_seconds {_HERE})"
                    " and on (node) (rackwright_drift_drifted > 0)"
                ),
                "in sync, ago",
                Unit.SECONDS,
            ),
            empty="Every node that was checked is as declared.",
        ),
        time(
            "Operations by role",
            Unit.NUMBER,
            "What would change, by role. One role on all nodes: the cluster file was edited and not applied; one node: it was "
            "changed by hand.",
            (
                f'sum by (exported_role) (rackwright_drift_operations{{exported_role!=""}} {_HERE})',
                "{{exported_role}}",
            ),
            stacked=True,
            empty="Nothing would change.",
        ),
        time(
            "Age of the drift check",
            Unit.SECONDS,
            "Time since the last check. It should fall to zero at each check.",
            ("time() - max(rackwright_drift_last_check_timestamp_seconds)", "age"),
            low=0,
        ),
        table(
            "Last runs",
            "When each command of rackwright last ended on this cluster, and its exit status: 0 clean, 2 changes pending, 3 a "
            "check failed, 4 unknown.",
            ("command",),
            (
                "time() - max by (command) (rackwright_run_last_timestamp_seconds)",
                "ago",
                Unit.SECONDS,
            ),
            ("max by (command) (rackwright_run_last_exit_status)", "exit status", Unit.NUMBER),
        ),
    ),
)
_WATCHING = Row(
    "The monitoring itself",
    (
        states(
            "Exporters",
            "A row for each job with targets that did not answer. Everything of a job: its settings; of one node: the node.",
            ("min by (job) (up)", "{{job}}"),
            states={0.0: ("some down", Colour.BAD), 1.0: ("all up", Colour.GOOD)},
        ),
        states(
            "Nodes",
            "Whether each node's metrics are read. Gaps at the same time on a whole rack: its switch.",
            (f'up{{job="node",{_IN}}}', "{{node}}"),
            states=ANSWERS,
            leads_to=("node",),
        ),
        time(
            "Alerts that fire",
            Unit.NUMBER,
            "By severity. Steps up without steps down are alerts without follow-up.",
            (
                'count by (severity) (ALERTS{alertstate="firing",severity=~"critical|warning"})',
                "{{severity}}",
            ),
            colours={"critical": Colour.BAD, "warning": Colour.NOTICE},
            empty="No alert fired.",
        ),
        time(
            "Series in memory",
            Unit.NUMBER,
            "What Prometheus holds. A step that stays is a new exporter; a slope that does not end is a label that never repeats.",
            ("prometheus_tsdb_head_series", "series"),
            low=0,
        ),
        time(
            "Slowest scrapes",
            Unit.SECONDS,
            "The slowest target of each job. Near the scrape interval its figures have gaps.",
            ("max by (job) (scrape_duration_seconds)", "{{job}}"),
            low=0,
        ),
        time(
            "Evaluation of rules",
            Unit.SECONDS,
            "The slowest group. Longer than the interval: alerts come late.",
            ("max(prometheus_rule_group_last_duration_seconds)", "slowest"),
            low=0,
        ),
    ),
)
HEALTH = Dashboard(
    "health",
    "Health and drift",
    "What the health checks and the drift checks found, when rackwright last ran, and whether the monitoring itself works.",
    (_NOW, _HEALTH, _DRIFT, _WATCHING),
    (RACK,),
    since="24h",
)
