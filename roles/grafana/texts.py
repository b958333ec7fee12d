"""The files of Grafana.

Keys of grafana.ini: conf/defaults.ini; of provisioning: "Provision Grafana"; of ldap.toml: conf/ldap.toml; `$__file{}` in
all of them: pkg/setting/expanders.go and pkg/services/provisioning/values of grafana/grafana (read 2026-11-27).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import yaml

from rackwright.dashboards.catalogue import DASHBOARDS
from rackwright.dashboards.sources import for_cluster
from rackwright.model.cluster import Cluster, Node
from rackwright.model.logs import KeepsLogs
from rackwright.model.monitoring import PASSWORD_SECRET, SERVER_SECRET, USER, CollectsMetrics, RoutesAlerts
from rackwright.model.services import IssuesCertificates
from rackwright.render import render
from rackwright.roles.grafana.options import ADMIN_SECRET, FOLDER, KEY_SECRET, GrafanaOptions

OfferT = TypeVar("OfferT")
HEADER = "# written by rackwright\n"
PROVISIONING = f"{FOLDER}/provisioning"
DASHBOARDS_FOLDER = f"{FOLDER}/dashboards"
ORGANIZATION = 1
"""The one that Grafana makes itself."""
PROMETHEUS, ALERTMANAGER, LOKI = "rackwright-prometheus", "rackwright-alertmanager", "rackwright-loki"
"""uids of data sources."""
_PROMETHEUS = {"httpMethod": "POST", "manageAlerts": False}
STAFF, USERS = "Cluster", "Jobs"
"""Folders of dashboards: for the cluster's staff, and about jobs."""


def secret_file(name: str) -> str:
    """The file with a secret, for Grafana alone."""
    return f"{FOLDER}/{name}"


def secret_files(options: GrafanaOptions) -> dict[str, str]:
    """Names of secrets by the path of their file."""
    return {secret_file(name): name for name in (*options.secrets, *options.supplied_secrets)}


def settings_ini(cluster: Cluster, node: Node, options: GrafanaOptions) -> str:
    """grafana.ini."""
    return render(
        "grafana/grafana.ini.j2",
        options=options,
        host=options.host(node),
        address="" if options.external else str(cluster.management_address(node)),
        certificate=next(iter(options.certificates(cluster, node)), None),
        paths=options.names(node).paths,
        provisioning=PROVISIONING,
        home=f"{DASHBOARDS_FOLDER}/{STAFF}/overview.json",
        admin=secret_file(ADMIN_SECRET),
        key=secret_file(KEY_SECRET),
        user=USER,
        password=secret_file(PASSWORD_SECRET),
        oidc_secret=secret_file(options.oidc.stored_as) if options.oidc is not None else None,
    )


def ldap_toml(options: GrafanaOptions) -> str | None:
    """Who may log in by LDAP; None where there is none."""
    if options.ldap is None:
        return None
    return render(
        "grafana/ldap.toml.j2",
        ldap=options.ldap,
        password=secret_file(options.ldap.stored_as),
        organization=ORGANIZATION,
    )


def drop_in(node: Node, options: GrafanaOptions) -> str:
    """The administrator's password in the settings counts at the first start alone: it is set at each."""
    software = options.names(node)
    return render(
        "grafana/unit.conf.j2",
        program=software.paths["program"],
        home=software.paths["home"],
        conf=software.paths["conf"],
        password=secret_file(ADMIN_SECRET),
    )


def plain_files(cluster: Cluster, node: Node, options: GrafanaOptions) -> dict[str, str]:
    """Text by path of all files without secrets, apart from dashboards."""
    conf = options.names(node).paths
    ldap = ldap_toml(options)
    return {
        conf["conf"]: settings_ini(cluster, node, options),
        **({conf["ldap"]: ldap} if ldap is not None else {}),
        f"{PROVISIONING}/datasources/rackwright.yaml": datasources_yaml(cluster, node, options),
        f"{PROVISIONING}/dashboards/rackwright.yaml": providers_yaml(),
    }


def folders() -> tuple[str, ...]:
    """Folders for them, each after the one it is in; Grafana complains of kinds of provisioning without one."""
    kinds = ("access-control", "alerting", "dashboards", "datasources", "plugins")
    return (FOLDER, PROVISIONING, *(f"{PROVISIONING}/{kind}" for kind in kinds))


def dashboards(cluster: Cluster) -> dict[str, str]:
    """Text by name below DASHBOARDS_FOLDER, of dashboards that have something to show on this cluster."""
    from rackwright.dashboards.grafana import text  # an extra; `problems` asks for it

    fitting = [for_cluster(one, cluster) for one in DASHBOARDS]
    return {f"{USERS if one.for_users else STAFF}/{one.name}.json": text(one) for one in fitting if one.rows}


def dashboard_uids(cluster: Cluster) -> dict[str, str]:
    """uid of each dashboard, and its folder."""
    return {
        str(json.loads(text)["uid"]): name.partition("/")[0] for name, text in dashboards(cluster).items()
    }


def providers_yaml() -> str:
    """Where dashboards are; folders in Grafana are those on disk."""
    provider = {
        "name": "rackwright",
        "orgId": ORGANIZATION,
        "type": "file",
        "disableDeletion": False,
        "allowUiUpdates": False,
        "updateIntervalSeconds": 30,
        "options": {"path": DASHBOARDS_FOLDER, "foldersFromFilesStructure": True},
    }
    return HEADER + yaml.safe_dump({"apiVersion": 1, "providers": [provider]}, sort_keys=False)


def datasources_yaml(cluster: Cluster, node: Node, options: GrafanaOptions) -> str:
    """Prometheus, Alertmanager and Loki, as far as they are declared; others are removed."""
    document = {"apiVersion": 1, "prune": True, "datasources": list(_sources(cluster, node, options))}
    return HEADER + yaml.safe_dump(document, sort_keys=False, width=120)


def source_uids(cluster: Cluster, node: Node, options: GrafanaOptions) -> tuple[str, ...]:
    """uids of declared data sources."""
    return tuple(str(one["uid"]) for one in _sources(cluster, node, options))


def _first(cluster: Cluster, kind: type[OfferT]) -> tuple[Node, OfferT] | None:
    found = ((node, node.offers(kind)) for node in cluster.nodes)
    return next(((node, options) for node, options in found if options is not None), None)


def _sources(cluster: Cluster, node: Node, options: GrafanaOptions) -> Iterator[dict[str, Any]]:
    routing, collecting = _first(cluster, RoutesAlerts), _first(cluster, CollectsMetrics)
    if collecting is not None:
        url = collecting[1].metrics_url(cluster, collecting[0])
        alerts = {"alertmanagerUid": ALERTMANAGER} if routing is not None else {}
        interval = {"timeInterval": f"{collecting[1].interval_seconds}s"}
        yield _source("Prometheus", PROMETHEUS, url, node, {**_PROMETHEUS, **interval, **alerts})
    if routing is not None:
        scheme = "https" if routing[0].offers(IssuesCertificates) is not None else "http"
        url = f"{scheme}://{routing[1].alerts_address(cluster, routing[0])}"
        yield _source("Alertmanager", ALERTMANAGER, url, node, {"implementation": "prometheus"})
    keeping = _first(cluster, KeepsLogs)
    store = keeping[1].log_store(cluster) if keeping is not None else None
    if store is not None and store.kind == "loki":
        yield _loki(store.settings["url"], cluster, node, options)


def _source(name: str, uid: str, url: str, node: Node, more: Mapping[str, object]) -> dict[str, Any]:
    ca, kind = _ca(node), name.lower()
    return {
        "name": name,
        "uid": uid,
        "type": kind,
        "access": "proxy",
        "orgId": ORGANIZATION,
        "url": url,
        "isDefault": kind == "prometheus",
        "editable": False,
        "basicAuth": True,
        "basicAuthUser": USER,
        "jsonData": {**({"tlsAuthWithCACert": True} if ca is not None else {}), **more},
        "secureJsonData": {
            "basicAuthPassword": _file(secret_file(SERVER_SECRET)),
            **({"tlsCACert": _file(ca)} if ca is not None else {}),
        },
    }


def _loki(url: str, cluster: Cluster, node: Node, options: GrafanaOptions) -> dict[str, Any]:
    """Loki requires a certificate of the site's CA, and Grafana has one."""
    certificate, ca = next(iter(options.certificates(cluster, node)), None), _ca(node)
    secured = certificate is not None and ca is not None
    return {
        "name": "Loki",
        "uid": LOKI,
        "type": "loki",
        "access": "proxy",
        "orgId": ORGANIZATION,
        "url": url,
        "editable": False,
        "jsonData": {"tlsAuth": True, "tlsAuthWithCACert": True} if secured else {},
        "secureJsonData": {
            "tlsCACert": _file(ca),
            "tlsClientCert": _file(certificate.chain),
            "tlsClientKey": _file(certificate.key),
        }
        if certificate is not None and ca is not None
        else {},
    }


def _file(path: str) -> str:
    return f"$__file{{{path}}}"


def _ca(node: Node) -> str | None:
    ca = node.offers(IssuesCertificates)
    return None if ca is None else ca.trust_file
