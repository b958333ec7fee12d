"""The files of Prometheus.

Keys: Prometheus 2.53's documentation, "Configuration" (read 2026-11-26); all of them are in 2.42 of Debian 12 too.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import yaml

from rackwright.alerts.catalogue import GROUPS
from rackwright.alerts.declared import declared_groups
from rackwright.alerts.text import rule_file
from rackwright.model.cluster import Cluster, Node
from rackwright.model.monitoring import SERVER_SECRET, USER, RoutesAlerts
from rackwright.model.services import IssuesCertificates
from rackwright.roles.prometheus.options import Login, PrometheusOptions
from rackwright.roles.prometheus.targets import jobs_of, targets_json

HEADER = "# written by rackwright\n"


def folder(node: Node, options: PrometheusOptions) -> str:
    """Of targets and rules, beside Prometheus' own settings."""
    return f"{PurePosixPath(conf(node, options)).parent}/rackwright"


def conf(node: Node, options: PrometheusOptions) -> str:
    """Prometheus' settings."""
    return options.names(node).paths["conf"]


def arguments(cluster: Cluster, node: Node, options: PrometheusOptions) -> tuple[str, ...]:
    """Its flags besides address and users."""
    return (
        f"--config.file={conf(node, options)}",
        f"--storage.tsdb.path={options.samples}",
        f"--storage.tsdb.retention.time={options.retention_days}d",
        f"--storage.tsdb.retention.size={options.retention_gb}GB",
        f"--web.external-url={options.url(cluster, node)}/",
    )


def login_file(login: Login) -> str:
    """The password of a login at another server."""
    return f"{PurePosixPath(PrometheusOptions.password_file).parent}/{login.stored_as}"


def target_files(cluster: Cluster, node: Node, options: PrometheusOptions) -> dict[str, str]:
    """Targets by path."""
    return {
        _targets(node, options, job): targets_json(cluster, served)
        for job, served in jobs_of(cluster).items()
    }


def rule_files(cluster: Cluster, node: Node, options: PrometheusOptions) -> dict[str, str]:
    """Rules by path: what is declared, and what is a fault."""
    jobs = frozenset(jobs_of(cluster))
    declared = declared_groups(cluster, carbon_grams_per_kwh=options.carbon_grams_per_kwh)
    least = 4 * options.interval_seconds
    return {
        f"{folder(node, options)}/declared.yml": HEADER + rule_file(declared, jobs),
        f"{folder(node, options)}/alerts.yml": HEADER
        + rule_file(GROUPS, jobs, options.alerts, hold_factor=options.hold_factor, least_range_seconds=least),
    }


def config_yml(cluster: Cluster, node: Node, options: PrometheusOptions) -> str:
    """prometheus.yml."""
    config: dict[str, Any] = {
        "global": {
            "scrape_interval": f"{options.interval_seconds}s",
            "scrape_timeout": f"{min(10, options.interval_seconds)}s",
            "evaluation_interval": f"{options.interval_seconds}s",
            "external_labels": {"cluster": cluster.name, **options.labels, **_replica(node, options)},
        },
        "rule_files": sorted(rule_files(cluster, node, options)),
        "alerting": _alerting(cluster, node),
        "scrape_configs": [
            *(_job(cluster, node, options, job) for job in jobs_of(cluster)),
            *(_federation(node, options, index) for index in range(len(options.federate))),
            *(_extra(options, name) for name in sorted(options.extra_jobs)),
        ],
        "remote_write": [_remote(options, index) for index in range(len(options.remote_write))],
    }
    return HEADER + yaml.safe_dump(
        {key: value for key, value in config.items() if value}, sort_keys=False, width=120
    )


def _replica(node: Node, options: PrometheusOptions) -> dict[str, str]:
    """Distinguishes the two of a pair where both send; Alertmanager never sees it."""
    return {"replica": node.name} if len(options.nodes) > 1 else {}


def _targets(node: Node, options: PrometheusOptions, job: str) -> str:
    return f"{folder(node, options)}/{job}.json"


def _tls(node: Node) -> dict[str, Any]:
    ca = node.offers(IssuesCertificates)
    return {} if ca is None else {"tls_config": {"ca_file": ca.trust_file}}


def password_file(secret: str) -> str:
    """Where Prometheus has the password with which it reads."""
    if secret == PrometheusOptions.password_secret:
        return PrometheusOptions.password_file
    return f"{PurePosixPath(PrometheusOptions.password_file).parent}/{secret}"


def _password(secret: str) -> dict[str, Any]:
    return {"basic_auth": {"username": USER, "password_file": password_file(secret)}}


def _login(login: Login | None) -> dict[str, Any]:
    if login is None:
        return {}
    return {"basic_auth": {"username": login.user, "password_file": login_file(login)}}


def _job(cluster: Cluster, node: Node, options: PrometheusOptions, job: str) -> dict[str, Any]:
    served = [scrape for _, scrape in jobs_of(cluster)[job]]
    config: dict[str, Any] = {
        "job_name": job,
        **(_password(served[0].password_secret) if all(scrape.certified for scrape in served) else {}),
        **_tls(node),
        "file_sd_configs": [{"files": [_targets(node, options, job)]}],
    }
    if any(scrape.names_nodes for scrape in served):
        config["honor_labels"] = True
    if job == "node":
        config["metric_relabel_configs"] = [_ABOUT_OTHERS]
    return config


# What a head reports of other nodes, e.g. of their drift, has their name in `exported_node`. Not from workers.
_ABOUT_OTHERS = {
    "source_labels": ["role", "__name__", "exported_node"],
    "regex": "head;rackwright_.+;(.+)",
    "target_label": "node",
    "replacement": "$1",
}


def _alerting(cluster: Cluster, node: Node) -> dict[str, Any]:
    routers = [(one, router) for one in cluster.nodes if (router := one.offers(RoutesAlerts)) is not None]
    if not routers:
        return {}
    secured = routers[0][0].offers(IssuesCertificates) is not None
    config: dict[str, Any] = {
        "scheme": "https" if secured else "http",
        **_password(SERVER_SECRET),
        **(_tls(node) if secured else {}),
        "static_configs": [{"targets": [router.alerts_address(cluster, one) for one, router in routers]}],
    }
    return {"alert_relabel_configs": [{"regex": "replica", "action": "labeldrop"}], "alertmanagers": [config]}


def _federation(node: Node, options: PrometheusOptions, index: int) -> dict[str, Any]:
    one = options.federate[index]
    return {
        "job_name": f"federate-{one.site}",
        "scheme": "http" if one.plain_http else "https",
        "metrics_path": "/federate",
        "honor_labels": True,
        "params": {"match[]": list(one.match)},
        **_login(one.login),
        **({} if one.plain_http else _tls(node)),
        "static_configs": [{"targets": [one.target], "labels": {"site": one.site}}],
        "metric_relabel_configs": [_OF_A_SITE],
    }


# Another site's `up` and recorded series have the same names as here: these rules would fire for its nodes, which its own
# Prometheus does already, and two nodes with one name would be one.
_OF_A_SITE = {
    "source_labels": ["__name__"],
    "regex": "(?:site:)?(.+)",
    "target_label": "__name__",
    "replacement": "site:$1",
}


def _extra(options: PrometheusOptions, name: str) -> dict[str, Any]:
    one = options.extra_jobs[name]
    return {
        "job_name": name,
        "scheme": one.scheme,
        "metrics_path": one.path,
        **_login(one.login),
        "static_configs": [{"targets": list(one.targets), "labels": dict(sorted(one.labels.items()))}],
    }


def _remote(options: PrometheusOptions, index: int) -> dict[str, Any]:
    one = options.remote_write[index]
    keep = {"source_labels": ["__name__"], "regex": one.keep, "action": "keep"}
    return {
        "url": one.url,
        **_login(one.login),
        **({} if one.keep is None else {"write_relabel_configs": [keep]}),
    }
