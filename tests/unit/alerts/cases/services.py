"""Cases of rackwright.alerts.services."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import GPU1, HEAD1, MARIADB, PROBED, blackbox, head, mariadb, node

CASES = (
    Case(
        alert="MariadbDown",
        series={
            head(
                "node_systemd_unit_state", name="mariadb.service", state="active", type="notify"
            ): "1*2 0*4 1*3"
        },
        fires=180,
        labels=HEAD1,
        severity="critical",
        summary="MariaDB on head1 does not answer",
        description="MariaDB on head1 is not running or does not let its exporter in. slurmdbd cannot store accounting; records wait in slurmctld. Read journalctl -u mariadb there.",
        heals=360,
        under=(
            {
                head(
                    "node_systemd_unit_state", name="mariadb.service", state="active", type="notify"
                ): "1*2 0*1 1*6"
            },
        ),
    ),
    Case(
        alert="MariadbDown",
        series={
            head("node_systemd_unit_state", name="mariadb.service", state="active", type="notify"): "1*9",
            mariadb("mysql_up"): "1*2 0*4 1*3",
        },
        fires=180,
        labels=HEAD1,
        severity="critical",
        summary="MariaDB on head1 does not answer",
        description="MariaDB on head1 is not running or does not let its exporter in. slurmdbd cannot store accounting; records wait in slurmctld. Read journalctl -u mariadb there.",
        heals=360,
        under=({mariadb("mysql_up"): "1*9"},),
    ),
    Case(
        alert="MariadbConnectionsNearlyFull",
        series={
            mariadb("mysql_global_status_threads_connected"): "5*2 81*12 5*3",
            mariadb("mysql_global_variables_max_connections"): "100*17",
        },
        fires=720,
        labels=MARIADB,
        severity="warning",
        summary="MariaDB on head1: 81 % of its connections are taken",
        description="81 % of the connections that MariaDB on head1 allows are taken. When none is left, slurmdbd cannot connect. See who holds them: mariadb -e 'SHOW PROCESSLIST'.",
        heals=840,
        under=({mariadb("mysql_global_status_threads_connected"): "5*2 80*15"},),
    ),
    Case(
        alert="ProbeFailed",
        series={
            blackbox("probe_success", probe="ssh", instance="10.0.0.11:22"): "1*2 0*6 1*3",
            node("up"): "1*11",
        },
        fires=300,
        labels={**GPU1, "instance": "10.0.0.11:22", "job": "blackbox", "probe": "ssh", "role": "worker"},
        severity="warning",
        summary="ssh at 10.0.0.11:22 does not answer",
        description="The ssh probe of 10.0.0.11:22 on gpu1 fails, while the node itself answers. The service is down, its certificate is not valid, or a firewall blocks it.",
        heals=480,
        under=(
            {node("up"): "0*11"},
            {blackbox("probe_success", probe="ssh", instance="10.0.0.11:22"): "1*2 0*3 1*6"},
        ),
    ),
    Case(
        alert="NetworkPathLossy",
        series={
            blackbox("probe_success", probe="icmp", network="storage"): "1*12 0*1 1*25",
            node("up"): "1*38",
        },
        fires=1020,
        labels={**PROBED, "network": "storage", "probe": "icmp"},
        severity="warning",
        summary="gpu1 loses 9 % of pings on the storage network",
        description="9 % of the head's pings to 10.0.0.11 (gpu1, storage network) got no answer within 10 minutes, while its exporter answers. Check that interface and its switch port.",
        heals=1380,
        under=(
            {node("up"): "0*38"},
            {blackbox("probe_success", probe="icmp", network="storage"): "0.954*38"},
            {
                blackbox("probe_success", probe="icmp", network="storage"): "1*12 0*7 1*19",
                node("up"): "1*12 0*7 1*19",
            },
        ),
    ),
    Case(
        alert="CertificateExpiresSoon",
        series={
            blackbox(
                "probe_ssl_earliest_cert_expiry",
                probe="tls",
                service="prometheus",
                instance="10.0.0.10:9090",
                node="head1",
                rack="r1",
                sku="head",
                leaf="",
                role="head",
            ): "1300000*3 1100000*14 5000000*3"
        },
        fires=780,
        labels={
            **HEAD1,
            "instance": "10.0.0.10:9090",
            "job": "blackbox",
            "probe": "tls",
            "role": "head",
            "service": "prometheus",
        },
        severity="warning",
        summary="10.0.0.10:9090: the certificate ends in 12.7 days",
        description="The certificate of prometheus at 10.0.0.10:9090 on head1 ends in 12.7 days. Then every client refuses it. Renew it: rackwright apply FILE --role site_ca.",
        heals=1020,
        under=(
            {
                blackbox(
                    "probe_ssl_earliest_cert_expiry",
                    probe="tls",
                    service="prometheus",
                    instance="10.0.0.10:9090",
                    node="head1",
                    rack="r1",
                    sku="head",
                    leaf="",
                    role="head",
                ): "1220000*20"
            },
        ),
    ),
)
