"""Services that are asked from outside: the database, sshd, DNS, certificates, paths."""

from __future__ import annotations

from rackwright.alerts import steps
from rackwright.alerts.promql import NODE_DOWN, NODE_UP, PLACE
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_BLACKBOX = frozenset({"blackbox"})

_MARIADB = Alert(
    name="MariadbDown",
    expr=f"""
max by ({PLACE}) (
  node_systemd_unit_state{{job="node",name="mariadb.service",state="active"}} == 0 or mysql_up{{job="mariadb"}} == 0
)
""",
    hold_seconds=60,
    severity=Severity.CRITICAL,
    summary="MariaDB on {{ $labels.node }} does not answer",
    description=prose("""
        MariaDB on {{ $labels.node }} is not running or does not let its exporter in. slurmdbd cannot store accounting; records wait
        in slurmctld. Read journalctl -u mariadb there.
    """),
    means="Job history and limits live in this database. Jobs go on while slurmctld can keep what it cannot store.",
    steps=listed(f"""
        - {steps.journal("mariadb")}
        - The disk is full: see FilesystemFull for /var. InnoDB does not start without room.
        - {steps.restart("mariadb")}
        - `InnoDB: corrupt`: do not force recovery. Copy /var/lib/mysql aside, then `rackwright restore FILE`.
        - It runs and mysql_up is 0: the exporter's login. `rackwright verify FILE --role mysqld_exporter`.
        - slurmdbd reconnects by itself: `sdiag | grep 'DBD Agent queue'` goes down to 0.
    """),
    jobs=frozenset({"node"}),
    also_reads=frozenset({"mariadb"}),
)

_CONNECTIONS = Alert(
    name="MariadbConnectionsNearlyFull",
    expr="""
mysql_global_status_threads_connected{job="mariadb"} / mysql_global_variables_max_connections{job="mariadb"} * 100 > <percent>
""",
    hold_seconds=600,
    severity=Severity.WARNING,
    summary='MariaDB on {{ $labels.node }}: {{ $value | printf "%.0f" }} % of its connections are taken',
    description=prose("""
        {{ $value | printf "%.0f" }} % of the connections that MariaDB on {{ $labels.node }} allows are taken. When none is left,
        slurmdbd cannot connect. See who holds them: mariadb -e 'SHOW PROCESSLIST'.
    """),
    means="A client opens connections and does not close them: a report, a dashboard, many sacct calls at once.",
    steps=listed("""
        - `mariadb -e 'SHOW PROCESSLIST'` on the head: which user, from which host, doing what?
        - Sleeping connections of a report: end the report; `KILL ID` in mariadb.
        - Users who run sacct in a loop: ask them to use squeue, or a larger interval.
    """),
    jobs=frozenset({"mariadb"}),
    thresholds={
        "percent": Threshold(
            80,
            "percent",
            "Connections taken, of those allowed.",
            "rackwright: ahead of the failure (2026-11-27)",
        )
    },
)

_PROBE = Alert(
    name="ProbeFailed",
    expr=f'probe_success{{job="blackbox",probe!="icmp"}} == 0 unless on (node) ({NODE_DOWN})',
    hold_seconds=180,
    severity=Severity.WARNING,
    summary="{{ $labels.probe }}{{ with $labels.service }} {{ . }}{{ end }} at {{ $labels.instance }} does not answer",
    description=prose("""
        The {{ $labels.probe }} probe of {{ $labels.instance }}{{ with $labels.node }} on {{ . }}{{ end }} fails, while the node itself answers. The service is down, its certificate is not valid, or a firewall blocks it.
    """),
    means="The head asks each service as a client would: ssh for its banner, dns for a name, tls for a valid certificate.",
    steps=listed("""
        - Ask yourself, from the head: `nc -v HOST 22`, `dig @HOST NAME`, `openssl s_client -connect HOST:PORT </dev/null`.
        - Refused: the service is not running. `systemctl status` on the node.
        - It times out: the firewall of the node, or the network path. `rackwright verify FILE --role firewall --limit NODE`.
        - tls: an expired or foreign certificate. `rackwright apply FILE --role site_ca` issues a new one.
    """),
    jobs=_BLACKBOX,
    also_reads=frozenset({"node"}),
)

_PATH = Alert(
    name="NetworkPathLossy",
    expr=f"""
(1 - avg_over_time(probe_success{{job="blackbox",probe="icmp"}}[10m])) * 100 > <percent>
and on (node) {NODE_UP}
unless on (node) min_over_time(max_over_time(up{{job="node"}}[2m])[10m:1m]) == 0
""",
    hold_seconds=300,
    severity=Severity.WARNING,
    summary='{{ $labels.node }} loses {{ $value | printf "%.0f" }} % of pings on the {{ $labels.network }} network',
    description=prose("""
        {{ $value | printf "%.0f" }} % of the head's pings to {{ $labels.instance }} ({{ $labels.node }}, {{ $labels.network }} network) got
        no answer within 10 minutes, while its exporter answers. Check that interface and its switch port.
    """),
    means=prose("""
        The node is up and one of its networks is not, or loses packets. Storage mounts over it stall. A node that was away for two
        minutes is left out until its pings of that time no longer count.
    """),
    steps=listed("""
        - On the node: `ip -br addr`, `ip -s link show DEVICE`: is the address there, the link up, are errors counted?
        - `mtr -rwc 50 ADDRESS` from the head: loss only at the end is the node's link; everywhere: a switch.
        - Two nodes with one address? `arping -D -I DEVICE ADDRESS`.
        - `rackwright verify FILE --role network --limit NODE`.
    """),
    jobs=frozenset({"blackbox", "node"}),
    thresholds={
        "percent": Threshold(
            5, "percent", "Pings without an answer.", "rackwright: one in twenty (2026-11-27)"
        )
    },
)

_CERTIFICATE = Alert(
    name="CertificateExpiresSoon",
    expr='(probe_ssl_earliest_cert_expiry{job="blackbox"} - time()) / 86400 < <days>',
    hold_seconds=600,
    severity=Severity.WARNING,
    summary='{{ $labels.instance }}: the certificate ends in {{ $value | printf "%.1f" }} days',
    description=prose("""
        The certificate{{ with $labels.service }} of {{ . }}{{ end }} at {{ $labels.instance }}{{ with $labels.node }} on {{ . }}{{ end }} ends in
        {{ $value | printf "%.1f" }} days. Then every client refuses it. Renew it: rackwright apply FILE --role site_ca.
    """),
    means="Apply renews a certificate of the site's CA 30 days before its end. There has been no apply since then.",
    steps=listed("""
        - `rackwright apply FILE --role site_ca --limit NODE` renews certificates of the site's own CA.
        - The program still shows the old one: `rackwright verify FILE --limit NODE` names the unit; restart it.
        - A certificate of another CA: renew it there, put the new one at the path in the cluster file, then apply.
        - `openssl s_client -connect HOST:PORT </dev/null 2>/dev/null | openssl x509 -noout -enddate -issuer` shows the new end.
    """),
    jobs=_BLACKBOX,
    thresholds={
        "days": Threshold(
            14,
            "days",
            "Time until the certificate ends.",
            "rackwright: half of site_ca.renew_before_days, 30 (2026-11-27)",
        )
    },
)

GROUP = RuleGroup("services", (_MARIADB, _CONNECTIONS, _PROBE, _PATH, _CERTIFICATE))
