"""The files of Loki and Alloy, whole.

Keys: grafana/loki docs/sources/configure and operations/storage/retention.md of 3.5; grafana/alloy
docs/sources/reference/components/loki/{loki.source.journal,loki.relabel,loki.process,loki.write}.md (read 2026-11-27).
Neither program was run here.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from rackwright.logs.entries import AUDIT_FACILITIES, KERNEL_FACILITY
from rackwright.logs.loki_labels import LABELS, METADATA
from rackwright.model.cluster import Cluster, Node
from rackwright.render import render
from rackwright.roles.logs import paths
from rackwright.roles.logs.complaints import COMPLAINTS, FIELDS
from rackwright.roles.logs.options import LogsOptions
from rackwright.roles.logs.stores import LokiStore


class Rule(NamedTuple):
    """One relabelling rule, with Prometheus' defaults."""

    sources: tuple[str, ...]
    target: str
    regex: str = ""
    replacement: str = ""
    separator: str = ""


_OF_JOURNAL = {
    "systemd_unit": "_systemd_unit",
    "name": "syslog_identifier",
    "pid": "_pid",
    "uid": "_uid",
    "priority": "priority",
    "facility": "syslog_facility",
    "cgroup": "_systemd_cgroup",
}
"""Label -> field of the journal, as loki.source.journal names it behind `__journal_`."""
RULES = (
    Rule(("__journal__systemd_unit",), "unit"),
    # there is no limit to the number of sessions and instances: their label is what they have in common
    Rule(("unit",), "unit", r"session-.+\.scope", "session.scope"),
    Rule(("unit",), "unit", r"(.+@).+(\.[a-z]+)", "${1}${2}"),
    *(Rule((f"__journal_{field}",), label) for label, field in _OF_JOURNAL.items()),
    Rule(
        ("__journal__transport", "__journal_syslog_facility"),
        "kernel",
        f"kernel;({KERNEL_FACILITY})?",
        "yes",
        separator=";",
    ),
    Rule(("__journal_syslog_facility",), "audit", "|".join(map(str, AUDIT_FACILITIES)), "yes"),
    Rule(("__journal__systemd_cgroup",), "job_id", r".*/job_([0-9]+)(/.*)?", "${1}"),
)
_FROM_LABEL = {"job": "job_id"}
"""Alloy's own label `job` is the name of its component, and is dropped."""


def loki_config(cluster: Cluster, node: Node, options: LogsOptions, store: LokiStore) -> str:
    """Settings of the server."""
    return render(
        "logs/loki.yml.j2",
        store=store,
        address=cluster.management_address(node),
        grpc_port=paths.LOKI_GRPC,
        chain=paths.SERVER_CHAIN,
        key=paths.SERVER_KEY,
        ca=paths.CA,
        days=options.retention_days,
        audit_days=options.audit_retention_days,
    )


def alloy_config(cluster: Cluster, node: Node, options: LogsOptions) -> str:
    """How a node reads its journal and sends it."""
    complaints = [
        {
            "kind": one.kind,
            "selector": json.dumps('{kernel="yes"} |~ `' + one.pattern + "`"),
            "expression": json.dumps(one.pattern),
        }
        for one in COMPLAINTS
    ]
    metadata = {name: _FROM_LABEL.get(name, FIELDS.get(name, "")) for name in METADATA}
    return render(
        "logs/config.alloy.j2",
        rules=RULES,
        node=node.name,
        max_age_hours=options.retention_days * 24,
        complaints=complaints,
        metadata=metadata,
        dropped=sorted({"job", *(rule.target for rule in RULES)} - {*LABELS}),
        url=options.url(cluster),
        ca=paths.CA,
        chain=paths.SENDER_CHAIN,
        key=paths.SENDER_KEY,
    )


def alloy_unit() -> str:
    """Its rights: to read the journal, and no more."""
    return render("logs/shipper-unit.conf.j2", lines=("SupplementaryGroups=systemd-journal",))


def loki_unit() -> str:
    """Loki runs as its package has it."""
    return render("logs/shipper-unit.conf.j2", lines=())
