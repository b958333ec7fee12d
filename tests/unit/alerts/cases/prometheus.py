"""Cases of rackwright.alerts.prometheus."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import ALERTMANAGER, HEAD1, PROMETHEUS, alertmanager, prometheus

CASES = (
    Case(
        alert="PrometheusConfigNotLoaded",
        series={prometheus("prometheus_config_last_reload_successful"): "1*2 0*8 1*3"},
        fires=420,
        labels=PROMETHEUS,
        severity="warning",
        summary="Prometheus on head1 did not load its configuration",
        description="Prometheus on head1 rejected its last configuration and goes on with the one before. New nodes and rules are missing. Read why: journalctl -u prometheus -g 'err=' -n 20.",
        heals=600,
        under=({prometheus("prometheus_config_last_reload_successful"): "1*2 0*5 1*6"},),
    ),
    Case(
        alert="PrometheusRuleFailures",
        series={
            prometheus(
                "prometheus_rule_evaluation_failures_total",
                rule_group="/etc/prometheus/rackwright/alerts.yml;nodes",
            ): "0*2 0+1*10 9*10"
        },
        fires=480,
        labels={**PROMETHEUS, "rule_group": "/etc/prometheus/rackwright/alerts.yml;nodes"},
        severity="critical",
        summary="Prometheus on head1 cannot evaluate rules",
        description="Prometheus on head1 failed to evaluate rules of /etc/prometheus/rackwright/alerts.yml;nodes. Their alerts cannot fire. See which, and why, on its page Status, Rules.",
        heals=960,
        under=(
            {
                prometheus(
                    "prometheus_rule_evaluation_failures_total",
                    rule_group="/etc/prometheus/rackwright/alerts.yml;nodes",
                ): "9*22"
            },
        ),
    ),
    Case(
        alert="PrometheusRulesLate",
        series={
            prometheus(
                "prometheus_rule_group_iterations_missed_total",
                rule_group="/etc/prometheus/rackwright/alerts.yml;nodes",
            ): "0*2 0+1*12 11*20"
        },
        fires=1080,
        labels={**PROMETHEUS, "rule_group": "/etc/prometheus/rackwright/alerts.yml;nodes"},
        severity="warning",
        summary="Prometheus on head1 is too slow for its rules",
        description="Prometheus on head1 left out evaluations of /etc/prometheus/rackwright/alerts.yml;nodes (10 within 15 minutes), because one takes longer than its interval. Alerts come late. Give it CPU, or drop series it does not need.",
        heals=1680,
        under=(
            {
                prometheus(
                    "prometheus_rule_group_iterations_missed_total",
                    rule_group="/etc/prometheus/rackwright/alerts.yml;nodes",
                ): "11*34"
            },
        ),
    ),
    Case(
        alert="PrometheusStorageFailing",
        series={prometheus("prometheus_tsdb_compactions_failed_total"): "0*3 1*200"},
        fires=780,
        labels=PROMETHEUS,
        severity="critical",
        summary="Prometheus on head1 cannot store its samples",
        description="Prometheus on head1 cannot write or compact its storage (failures within 3 hours: 1). Its disk is full or damaged, and history is at risk. See journalctl -u prometheus and df.",
        heals=10980,
        under=({prometheus("prometheus_tsdb_compactions_failed_total"): "1*203"},),
    ),
    Case(
        alert="PrometheusStorageFailing",
        series={prometheus("prometheus_tsdb_reloads_failures_total"): "0*3 1*200"},
        fires=780,
        labels=PROMETHEUS,
        severity="critical",
        summary="Prometheus on head1 cannot store its samples",
        description="Prometheus on head1 cannot write or compact its storage (failures within 3 hours: 1). Its disk is full or damaged, and history is at risk. See journalctl -u prometheus and df.",
        heals=10980,
        under=({prometheus("prometheus_tsdb_reloads_failures_total"): "1*203"},),
    ),
    Case(
        alert="PrometheusStorageFailing",
        series={prometheus("prometheus_tsdb_wal_writes_failed_total"): "0*3 1*200"},
        fires=780,
        labels=PROMETHEUS,
        severity="critical",
        summary="Prometheus on head1 cannot store its samples",
        description="Prometheus on head1 cannot write or compact its storage (failures within 3 hours: 1). Its disk is full or damaged, and history is at risk. See journalctl -u prometheus and df.",
        heals=10980,
        under=({prometheus("prometheus_tsdb_wal_writes_failed_total"): "1*203"},),
    ),
    Case(
        alert="PrometheusNotIngesting",
        series={
            prometheus(
                "prometheus_tsdb_head_samples_appended_total", type="float"
            ): "0+100*10 900*22 1000+100*10"
        },
        fires=1440,
        labels={**PROMETHEUS, "type": "float"},
        severity="critical",
        summary="Prometheus on head1 takes in no samples",
        description="Prometheus on head1 has stored no sample for 10 minutes. No alert can fire any more. Its clock may have jumped, or its storage is read-only: journalctl -u prometheus -n 50.",
        heals=1920,
        under=({prometheus("prometheus_tsdb_head_samples_appended_total", type="float"): "0+1*42"},),
    ),
    Case(
        alert="PrometheusRemoteWriteBehind",
        series={
            prometheus("prometheus_remote_storage_highest_timestamp_in_seconds"): "0+60*40",
            prometheus(
                "prometheus_remote_storage_queue_highest_sent_timestamp_seconds",
                remote_name="f93b79",
                url="https://mimir.example.com/push",
            ): "0+60*3 120*25 1680+60*12",
        },
        fires=1200,
        labels={**PROMETHEUS, "remote_name": "f93b79", "url": "https://mimir.example.com/push"},
        severity="warning",
        summary="Prometheus on head1: remote storage is 18m 0s behind",
        description="What Prometheus on head1 sends to https://mimir.example.com/push is 18m 0s behind. After two hours samples are lost to it. Is the receiver up, and the line fast enough?",
        heals=1680,
        under=(
            {
                prometheus(
                    "prometheus_remote_storage_queue_highest_sent_timestamp_seconds",
                    remote_name="f93b79",
                    url="https://mimir.example.com/push",
                ): "-120+60*40"
            },
        ),
    ),
    Case(
        alert="PrometheusCannotNotify",
        series={
            prometheus("prometheus_notifications_dropped_total"): "0*2 0+1*10 9*10",
            prometheus("prometheus_notifications_alertmanagers_discovered"): "1*22",
        },
        fires=480,
        labels=PROMETHEUS,
        severity="critical",
        summary="Prometheus on head1 cannot hand alerts to Alertmanager",
        description="Prometheus on head1 drops alerts, or knows no Alertmanager. Faults are not reported to anyone. See whether Alertmanager runs, and journalctl -u prometheus -g notif.",
        heals=960,
        under=({prometheus("prometheus_notifications_dropped_total"): "9*22"},),
    ),
    Case(
        alert="PrometheusCannotNotify",
        series={prometheus("prometheus_notifications_alertmanagers_discovered"): "1*2 0*8 1*3"},
        fires=420,
        labels=PROMETHEUS,
        severity="critical",
        summary="Prometheus on head1 cannot hand alerts to Alertmanager",
        description="Prometheus on head1 drops alerts, or knows no Alertmanager. Faults are not reported to anyone. See whether Alertmanager runs, and journalctl -u prometheus -g notif.",
        heals=600,
        under=({prometheus("prometheus_notifications_alertmanagers_discovered"): "1*13"},),
    ),
    Case(
        alert="AlertmanagerConfigNotLoaded",
        series={alertmanager("alertmanager_config_last_reload_successful"): "1*2 0*8 1*3"},
        fires=420,
        labels=ALERTMANAGER,
        severity="critical",
        summary="Alertmanager on head1 did not load its configuration",
        description="Alertmanager on head1 rejected its last configuration and goes on with the one before. After its next restart it will not start, and notifications stop. Check the file: amtool check-config.",
        heals=600,
        under=({alertmanager("alertmanager_config_last_reload_successful"): "1*2 0*5 1*6"},),
    ),
    Case(
        alert="AlertmanagerNotificationsFailing",
        series={
            alertmanager(
                "alertmanager_notifications_failed_total", reason="serverError", integration="webhook"
            ): "0*2 0+1*12 11*20",
            alertmanager("alertmanager_notifications_total", integration="webhook"): "0+10*34",
        },
        fires=480,
        labels={**HEAD1, "integration": "webhook"},
        severity="critical",
        summary="Alertmanager on head1: 8 % of its webhook notifications fail",
        description="8 % of the notifications that Alertmanager on head1 sends by webhook fail, so people miss faults. Read why: journalctl -u '*alertmanager*' -g 'Notify' -n 20.",
        heals=1680,
        under=(
            {
                alertmanager(
                    "alertmanager_notifications_failed_total", reason="serverError", integration="webhook"
                ): "0*2 0+0.09*32"
            },
        ),
    ),
    Case(
        # one group alone, sent again every five minutes, between two scrapes
        alert="AlertmanagerNotificationsFailing",
        series={
            alertmanager(
                "alertmanager_notifications_failed_total", reason="clientError", integration="email"
            ): "0*12 1*10 2*10 3*10 4*10 5*10 6*10 6*60",
            alertmanager(
                "alertmanager_notifications_total", integration="email"
            ): "0*12 1*10 2*10 3*10 4*10 5*10 6*10 6*60",
        },
        fires=660,
        labels={**HEAD1, "integration": "email"},
        severity="critical",
        summary="Alertmanager on head1: 100 % of its email notifications fail",
        description="100 % of the notifications that Alertmanager on head1 sends by email fail, so people miss faults. Read why: journalctl -u '*alertmanager*' -g 'Notify' -n 20.",
        heals=3600,
        under=(
            {
                alertmanager(
                    "alertmanager_notifications_failed_total", reason="clientError", integration="email"
                ): "0*132"
            },
        ),
        every=30,
    ),
)
