"""Gaps in monitoring, and whether alerting works."""

from __future__ import annotations

from rackwright.alerts import sources, steps
from rackwright.alerts.promql import NODE_DOWN
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_PROMETHEUS = frozenset({"prometheus"})
_REMOTE = "blackbox|ipmi|snmp"
"""Jobs of exporters that query other devices: `up` is about the exporter, with a target for each node that it queries."""

_WATCHDOG = Alert(
    name="Watchdog",
    expr="vector(1)",
    hold_seconds=0,
    severity=Severity.INFO,
    summary="Alerting works",
    description="This alert always fires. If it stops arriving, alerting is broken.",
    means=prose("""
        It fires as long as Prometheus evaluates rules and Alertmanager sends notifications. Give it a receiver outside the
        cluster (`alertmanager.watchdog`) that raises an alarm when it stops.
    """),
    steps=listed(f"""
        - While it fires, there is nothing to do.
        - It stopped: does the head answer? {steps.journal("prometheus")}
        - `systemctl status prometheus-alertmanager` or `alertmanager`, and its journal: can it reach the receiver?
        - `rackwright verify FILE --role prometheus`, `--role alertmanager`.
    """),
    jobs=_PROMETHEUS,
)

_EXPORTER = Alert(
    name="ExporterDown",
    expr=f"""
(up{{job!~"node|{_REMOTE}"}} == 0 unless on (node) ({NODE_DOWN}))
or ({NODE_DOWN} and on (node) (max by (node) (up{{job=~"alertmanager|dcgm|mariadb|prometheus"}}) == 1))
or ({NODE_DOWN} and on (node) (probe_success{{job="blackbox",probe="ssh"}} == 1))
""",
    hold_seconds=300,
    severity=Severity.WARNING,
    summary="{{ $labels.instance }}: no metrics of {{ $labels.job }}",
    description=prose("""
        Prometheus has read nothing of {{ $labels.job }} from {{ $labels.instance }} for 5 minutes, while the node itself answers. Alerts that
        need these metrics are blind. See whether the exporter runs there, and its journal.
    """),
    means="The exporter has died, hangs, answers too slowly, or its certificate or password is not accepted.",
    steps=listed("""
        - Prometheus' page Status, Targets (or `up == 0`) has the error: refused, timeout, 401, x509.
        - Refused: `systemctl status '*exporter*'` on the node, and its journal.
        - Timeout: the program it asks hangs (`nvidia-smi`, a mount). `curl` it on the node itself.
        - 401 or x509: `rackwright apply FILE --limit NODE` rewrites password and certificate.
        - `rackwright verify FILE --limit NODE`.
    """),
    jobs=frozenset(),
    also_reads=frozenset({"blackbox"}),
)

_PROBER = Alert(
    name="ProbeExporterDown",
    expr=f"""
count by (job) (up{{job=~"{_REMOTE}"}} == 0) / count by (job) (up{{job=~"{_REMOTE}"}}) * 100 > <percent>
""",
    hold_seconds=300,
    severity=Severity.WARNING,
    summary='{{ $labels.job }}: {{ $value | printf "%.0f" }} % of its targets give no metrics',
    description=prose("""
        {{ $value | printf "%.0f" }} % of the targets of the {{ $labels.job }} exporter give no metrics: the exporter itself has failed, or the
        network behind it. See whether it runs on the head, and its journal.
    """),
    means="One exporter asks all BMCs, devices or addresses. When most fail at once it is rarely each of them.",
    steps=listed("""
        - `systemctl status 'prometheus-*-exporter'` on the head, and the journal of the one that is named.
        - It runs: Prometheus' page Status, Targets has the error.
        - BMCs or devices: can the head reach their network? `ping` two of them.
        - `rackwright verify FILE --limit HEAD`.
    """),
    jobs=frozenset(),
    also_reads=frozenset({"blackbox", "ipmi", "snmp"}),
    thresholds={
        "percent": Threshold(
            50, "percent", "Targets without metrics.", "rackwright: half of them share a cause (2026-11-27)"
        )
    },
)

_TEXTFILE = Alert(
    name="TextfileBroken",
    expr='node_textfile_scrape_error{job="node"} == 1',
    hold_seconds=300,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: a file with metrics cannot be read",
    description=prose("""
        node_exporter on {{ $labels.node }} cannot read one of its text files, so that metrics of health, drift or backups are missing or
        old. See which: journalctl -u prometheus-node-exporter -g textfile.
    """),
    means="A file is damaged, has the same series twice, or may not be read. Alerts about what is in it are blind.",
    steps=listed("""
        - `journalctl -u '*node*exporter*' -g textfile -n 10` on the node names file and line.
        - A file of the site's own: correct the script that writes it. It has to write aside and rename.
        - `rackwright_*.prom` is a link: remove the file that it leads to, not the link. The next check or backup writes it again.
          Again: report it.
    """),
    jobs=frozenset({"node"}),
    source=sources.MIXIN,
)

_COLLECTOR = Alert(
    name="CollectorFailed",
    expr="""
node_scrape_collector_success{job="node",collector=~"cpu|diskstats|filesystem|loadavg|meminfo|netdev|stat|systemd|textfile"} == 0
""",
    hold_seconds=900,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: node_exporter's collector {{ $labels.collector }} fails",
    description=prose("""
        The collector {{ $labels.collector }} of node_exporter on {{ $labels.node }} has failed for 15 minutes. Alerts that need its figures
        never fire for this node. Read why: journalctl -u prometheus-node-exporter -n 50.
    """),
    means="The rest of the node's metrics are there, so that nothing else shows that these are missing.",
    steps=listed("""
        - `journalctl -u '*node*exporter*' -n 50` on the node has the error.
        - `systemd`: D-Bus does not answer. `systemctl status dbus`; restarting the exporter often helps.
        - `rackwright verify FILE --role node_exporter --limit NODE`.
    """),
    jobs=frozenset({"node"}),
)

GROUP = RuleGroup("monitoring", (_WATCHDOG, _EXPORTER, _PROBER, _TEXTFILE, _COLLECTOR))
