"""Cases of rackwright.alerts.monitoring."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import GPU1, NODE, blackbox, ipmi, node

CASES = (
    Case(
        alert="Watchdog",
        series={},
        fires=0,
        labels={},
        severity="info",
        summary="Alerting works",
        description="This alert always fires. If it stops arriving, alerting is broken.",
        heals=None,
        under=(),
    ),
    Case(
        alert="ExporterDown",
        series={node("up", job="dcgm", instance="gpu1:9400"): "1*2 0*8 1*3", node("up"): "1*13"},
        fires=420,
        labels={**GPU1, "instance": "gpu1:9400", "job": "dcgm", "role": "worker"},
        severity="warning",
        summary="gpu1:9400: no metrics of dcgm",
        description="Prometheus has read nothing of dcgm from gpu1:9400 for 5 minutes, while the node itself answers. Alerts that need these metrics are blind. See whether the exporter runs there, and its journal.",
        heals=600,
        under=(
            {node("up"): "0*13"},
            {node("up", job="dcgm", instance="gpu1:9400"): "1*2 0*5 1*6"},
        ),
    ),
    Case(
        alert="ExporterDown",
        series={
            node("up"): "1*2 0*8 1*3",
            blackbox("probe_success", probe="ssh", instance="10.0.0.11:22"): "1*13",
        },
        fires=420,
        labels=NODE,
        severity="warning",
        summary="gpu1:9100: no metrics of node",
        description="Prometheus has read nothing of node from gpu1:9100 for 5 minutes, while the node itself answers. Alerts that need these metrics are blind. See whether the exporter runs there, and its journal.",
        heals=600,
        under=({blackbox("probe_success", probe="ssh", instance="10.0.0.11:22"): "0*13"},),
    ),
    Case(
        alert="ProbeExporterDown",
        series={
            ipmi("up", instance="10.1.0.1", node="gpu1"): "1*2 0*8 1*3",
            ipmi("up", instance="10.1.0.2", node="gpu2"): "1*2 0*8 1*3",
            ipmi("up", instance="10.1.0.3", node="gpu3"): "1*13",
        },
        fires=420,
        labels={"job": "ipmi"},
        severity="warning",
        summary="ipmi: 67 % of its targets give no metrics",
        description="67 % of the targets of the ipmi exporter give no metrics: the exporter itself has failed, or the network behind it. See whether it runs on the head, and its journal.",
        heals=600,
        under=({ipmi("up", instance="10.1.0.4", node="gpu4"): "1*13"},),
    ),
    Case(
        alert="TextfileBroken",
        series={node("node_textfile_scrape_error"): "0*2 1*8 0*3"},
        fires=420,
        labels=NODE,
        severity="warning",
        summary="gpu1: a file with metrics cannot be read",
        description="node_exporter on gpu1 cannot read one of its text files, so that metrics of health, drift or backups are missing or old. See which: journalctl -u prometheus-node-exporter -g textfile.",
        heals=600,
        under=({node("node_textfile_scrape_error"): "0*2 1*5 0*6"},),
    ),
    Case(
        alert="CollectorFailed",
        series={node("node_scrape_collector_success", collector="systemd"): "1*2 0*18 1*3"},
        fires=1020,
        labels={**NODE, "collector": "systemd"},
        severity="warning",
        summary="gpu1: node_exporter's collector systemd fails",
        description="The collector systemd of node_exporter on gpu1 has failed for 15 minutes. Alerts that need its figures never fire for this node. Read why: journalctl -u prometheus-node-exporter -n 50.",
        heals=1200,
        under=(
            {
                node("node_scrape_collector_success", collector="systemd"): "1*23",
                node("node_scrape_collector_success", collector="infiniband"): "0*23",
            },
        ),
    ),
)
