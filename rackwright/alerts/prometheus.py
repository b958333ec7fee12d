"""Prometheus and Alertmanager themselves."""

from __future__ import annotations

from rackwright.alerts.promql import PLACE
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_PROMETHEUS = frozenset({"prometheus"})

_RELOAD = Alert(
    name="PrometheusConfigNotLoaded",
    expr='prometheus_config_last_reload_successful{job="prometheus"} == 0',
    hold_seconds=300,
    severity=Severity.WARNING,
    summary="Prometheus on {{ $labels.node }} did not load its configuration",
    description=prose("""
        Prometheus on {{ $labels.node }} rejected its last configuration and goes on with the one before. New nodes and rules are missing.
        Read why: journalctl -u prometheus -g 'err=' -n 20.
    """),
    means="A file of settings, targets or rules is not valid. After its next restart Prometheus will not start at all.",
    steps=listed("""
        - `promtool check config /etc/prometheus/prometheus.yml` on the head names file and line.
        - `rackwright plan FILE --role prometheus` shows changes made by hand; `rackwright apply FILE --role prometheus` undoes them.
        - A file of the site's own rules: correct it, then `systemctl reload prometheus`.
    """),
    jobs=_PROMETHEUS,
)

_RULES = Alert(
    name="PrometheusRuleFailures",
    expr='increase(prometheus_rule_evaluation_failures_total{job="prometheus"}[5m]) > 0',
    hold_seconds=300,
    severity=Severity.CRITICAL,
    summary="Prometheus on {{ $labels.node }} cannot evaluate rules",
    description=prose("""
        Prometheus on {{ $labels.node }} failed to evaluate rules of {{ $labels.rule_group }}. Their alerts cannot fire. See which, and why, on
        its page Status, Rules.
    """),
    means="Usually two series match where one is expected, e.g. after a node got a second exporter. An alert may be missing now.",
    steps=listed("""
        - Page Status, Rules, or `journalctl -u prometheus -g 'Evaluating rule failed' -n 20`: which rule, which series?
        - `many-to-many matching`: a series exists twice. Find the second source, e.g. a target that is declared twice.
        - A rule of rackwright's: report it with the message. Until then switch it off (`prometheus.alerts.NAME.enabled: false`).
    """),
    jobs=_PROMETHEUS,
)

_LATE = Alert(
    name="PrometheusRulesLate",
    expr='increase(prometheus_rule_group_iterations_missed_total{job="prometheus"}[15m]) > 0',
    hold_seconds=900,
    severity=Severity.WARNING,
    summary="Prometheus on {{ $labels.node }} is too slow for its rules",
    description=prose("""
        Prometheus on {{ $labels.node }} left out evaluations of {{ $labels.rule_group }} ({{ $value | printf "%.0f" }} within 15 minutes), because one takes longer than its interval. Alerts come late. Give it CPU, or drop series it does not need.
    """),
    means="The head is overloaded, or there are more series than it can judge.",
    steps=listed("""
        - `top` on the head: is something else taking its CPU or disk?
        - `topk(10, prometheus_rule_group_last_duration_seconds)` names the slow groups.
        - `topk(10, count by (job) ({__name__=~".+"}))` names the jobs with the most series; drop unused ones.
        - Raise `prometheus.interval_seconds`, or run Prometheus on a separate head.
    """),
    jobs=_PROMETHEUS,
)

_TSDB = Alert(
    name="PrometheusStorageFailing",
    expr="""
increase(prometheus_tsdb_compactions_failed_total{job="prometheus"}[3h]) > 0
or increase(prometheus_tsdb_reloads_failures_total{job="prometheus"}[3h]) > 0
or increase(prometheus_tsdb_wal_writes_failed_total{job="prometheus"}[3h]) > 0
""",
    hold_seconds=600,
    severity=Severity.CRITICAL,
    summary="Prometheus on {{ $labels.node }} cannot store its samples",
    description=prose("""
        Prometheus on {{ $labels.node }} cannot write or compact its storage (failures within 3 hours: {{ $value | printf "%.0f" }}). Its disk is full or
        damaged, and history is at risk. See journalctl -u prometheus and df.
    """),
    means="Samples are kept in memory and in the write-ahead log until it works again; then memory runs out.",
    steps=listed("""
        - `df -h /var/lib/prometheus`, `dmesg -T | grep -i 'I/O error' | tail`: see FilesystemFull, FilesystemReadOnly.
        - `journalctl -u prometheus -g 'level=(error|warn)' -n 30`: which block?
        - A damaged block: stop Prometheus, move the folder of that block away, start it. That block's hours are lost.
        - Full: lower `prometheus.retention_gb`, and apply.
    """),
    jobs=_PROMETHEUS,
)

_IDLE = Alert(
    name="PrometheusNotIngesting",
    expr='rate(prometheus_tsdb_head_samples_appended_total{job="prometheus",type="float"}[5m]) <= 0',
    hold_seconds=600,
    severity=Severity.CRITICAL,
    summary="Prometheus on {{ $labels.node }} takes in no samples",
    description=prose("""
        Prometheus on {{ $labels.node }} has stored no sample for 10 minutes. No alert can fire any more. Its clock may have jumped, or its
        storage is read-only: journalctl -u prometheus -n 50.
    """),
    means="Monitoring is blind. This alert itself lives on what was stored before; the Watchdog's receiver is the one to trust.",
    steps=listed("""
        - `journalctl -u prometheus -n 50` on the head: `out of bounds`? The clock was set back: see ClockDiffersFromHead.
        - `no space left`, `read-only file system`: see FilesystemFull, FilesystemReadOnly.
        - All targets down: the head's own network or firewall. `rackwright verify FILE --limit HEAD`.
    """),
    jobs=_PROMETHEUS,
)

_REMOTE_WRITE = Alert(
    name="PrometheusRemoteWriteBehind",
    expr="""
max_over_time(prometheus_remote_storage_highest_timestamp_in_seconds{job="prometheus"}[5m])
- ignoring (remote_name, url) group_right ()
max_over_time(prometheus_remote_storage_queue_highest_sent_timestamp_seconds{job="prometheus"}[5m]) > <seconds>
""",
    hold_seconds=900,
    severity=Severity.WARNING,
    summary="Prometheus on {{ $labels.node }}: remote storage is {{ $value | humanizeDuration }} behind",
    description=prose("""
        What Prometheus on {{ $labels.node }} sends to {{ $labels.url }} is {{ $value | humanizeDuration }} behind. After two hours samples are lost to it. Is
        the receiver up, and the line fast enough?
    """),
    means="The receiver refuses or is slow. Local alerts are not affected; the central view of all sites is out of date.",
    steps=listed("""
        - `journalctl -u prometheus -g remote -n 20`: 401, 429, 5xx, timeout?
        - Ask the operator of the receiver. 429: its limit of series or samples.
        - `prometheus_remote_storage_shards` equals `shards_max`: the line or the receiver is too slow. Send less (`remote_write.keep`).
    """),
    jobs=_PROMETHEUS,
    thresholds={
        "seconds": Threshold(
            120,
            "seconds",
            "Age of what was sent last.",
            "Prometheus' own mixin, PrometheusRemoteWriteBehind (unconfirmed: from memory, 2026-11-27)",
        )
    },
)

_NOTIFY = Alert(
    name="PrometheusCannotNotify",
    expr="""
increase(prometheus_notifications_dropped_total{job="prometheus"}[5m]) > 0
or prometheus_notifications_alertmanagers_discovered{job="prometheus"} < 1
""",
    hold_seconds=300,
    severity=Severity.CRITICAL,
    summary="Prometheus on {{ $labels.node }} cannot hand alerts to Alertmanager",
    description=prose("""
        Prometheus on {{ $labels.node }} drops alerts, or knows no Alertmanager. Faults are not reported to anyone. See whether Alertmanager runs, and
        journalctl -u prometheus -g notif.
    """),
    means="Alerts are judged and go nowhere. You see this on the dashboard, through the other head of a pair, or not at all.",
    steps=listed("""
        - `systemctl status prometheus-alertmanager` or `alertmanager` on the head, and its journal.
        - `journalctl -u prometheus -g -i 'alertmanager' -n 20`: refused, 401, x509?
        - `rackwright verify FILE --role prometheus`, `--role alertmanager`; then apply.
    """),
    jobs=frozenset({"alertmanager", "prometheus"}),
)

_AM_RELOAD = Alert(
    name="AlertmanagerConfigNotLoaded",
    expr='alertmanager_config_last_reload_successful{job="alertmanager"} == 0',
    hold_seconds=300,
    severity=Severity.CRITICAL,
    summary="Alertmanager on {{ $labels.node }} did not load its configuration",
    description=prose("""
        Alertmanager on {{ $labels.node }} rejected its last configuration and goes on with the one before. After its next restart it will not
        start, and notifications stop. Check the file: amtool check-config.
    """),
    means="A receiver, a route or a password file is wrong.",
    steps=listed("""
        - `amtool check-config /etc/prometheus/alertmanager.yml` (or `/etc/alertmanager/alertmanager.yml`) on the head.
        - `rackwright plan FILE --role alertmanager` shows changes made by hand; apply undoes them.
    """),
    jobs=frozenset({"alertmanager"}),
)

_AM_FAILING = Alert(
    name="AlertmanagerNotificationsFailing",
    expr=f"""
sum by ({PLACE}, integration) (rate(alertmanager_notifications_failed_total{{job="alertmanager"}}[15m]))
/ sum by ({PLACE}, integration) (rate(alertmanager_notifications_total{{job="alertmanager"}}[15m])) * 100 > <percent>
""",
    hold_seconds=300,
    severity=Severity.CRITICAL,
    summary='Alertmanager on {{ $labels.node }}: {{ $value | printf "%.0f" }} % of its {{ $labels.integration }} notifications fail',
    description=prose("""
        {{ $value | printf "%.0f" }} % of the notifications that Alertmanager on {{ $labels.node }} sends by {{ $labels.integration }} fail, so people miss faults. Read why: journalctl -u '*alertmanager*' -g 'Notify' -n 20.
    """),
    means="The mail server, the chat service or the webhook refuses, or cannot be reached from the head.",
    steps=listed("""
        - `journalctl -u '*alertmanager*' -g Notify -n 20` on the head: which receiver, which error?
        - Unreachable: proxy or firewall. `curl -sS -o /dev/null -w '%{http_code}' URL` from the head.
        - 401, 403, 535: the password or token was changed. `rackwright secrets put`, then apply.
        - Until it works: watch Alertmanager's web page, and inform the people on call.
    """),
    jobs=frozenset({"alertmanager"}),
    thresholds={
        "percent": Threshold(
            1,
            "percent",
            "Notifications that fail within 15 minutes: a group is sent again every 5, so that less would see none.",
            "Alertmanager's mixin, AlertmanagerFailedToSendAlerts (unconfirmed: from memory, 2026-11-27)",
        )
    },
)

GROUP = RuleGroup(
    "prometheus",
    (*(_RELOAD, _RULES, _LATE, _TSDB, _IDLE, _REMOTE_WRITE, _NOTIFY), *(_AM_RELOAD, _AM_FAILING)),
)
