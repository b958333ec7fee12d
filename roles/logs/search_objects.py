"""What the search cluster holds besides lines: templates, the pipeline that makes their fields, policies, saved objects.

Bodies: types of the products' own clients, npm packages @elastic/elasticsearch 9 (`IlmPutLifecycleRequest`,
`IndicesPutIndexTemplateRequest`, `IngestPutPipelineRequest`) and @opensearch-project/opensearch 3 (read 2026-11-27).
"""

from __future__ import annotations

import json
from typing import Any

from rackwright.logs.entries import KERNEL_FACILITY
from rackwright.roles.logs.complaints import COMPLAINTS
from rackwright.roles.logs.options import LogsOptions
from rackwright.roles.logs.stores import ElasticStore, SearchStore

_KEYWORDS = ("node", "unit", "name", "cgroup", "job", "kind", "device", "source", "severity")
_NUMBERS = {"pid": "long", "uid": "long", "code": "integer", "priority": "byte", "facility": "short"}
FROM_FILEBEAT = {
    "systemd.unit": "unit",
    "systemd.cgroup": "cgroup",
    "syslog.identifier": "name",
    "syslog.priority": "priority",
    "syslog.facility": "facility",
    "journald.pid": "pid",
    "journald.uid": "uid",
    "systemd.transport": "transport",
}
"""elastic/beats, filebeat/input/journald/pkg/journalfield/default.go (read 2026-11-27)."""
_OF_SHIPPERS = (
    "agent",
    "ecs",
    "event",
    "host",
    "input",
    "journald",
    "log",
    "message_id",
    "syslog",
    "systemd",
)


def declared_objects(options: LogsOptions, store: SearchStore) -> list[dict[str, Any]]:
    """In the order in which they need each other. `found`: where an answer has what `body` declares."""
    days = {"lines": options.retention_days, "audit": options.audit_retention_days}
    policies = [_policy(store, name, kept) for name, kept in days.items()]
    return [*policies, _pipeline(store), *(_template(store, name) for name in days)]


def _policy(store: SearchStore, name: str, days: int) -> dict[str, Any]:
    """Starts a new index each day or when it is full, and removes it `days` later."""
    size, index = f"{store.rollover_gb}gb", f"{store.prefix}-{name}"
    if isinstance(store, ElasticStore):
        phases = {
            "hot": {"actions": {"rollover": {"max_age": "1d", "max_primary_shard_size": size}}},
            "delete": {"min_age": f"{days}d", "actions": {"delete": {}}},
        }
        body: dict[str, Any] = {"policy": {"phases": phases}}
        return {"path": f"/_ilm/policy/{index}", "found": [index], "body": body, "versioned": False}
    transition = {"state_name": "delete", "conditions": {"min_rollover_age": f"{days}d"}}
    rollover = {"rollover": {"min_index_age": "1d", "min_primary_shard_size": size}}
    body = {
        "policy": {
            "description": f"Lines of {days} days (rackwright)",
            "default_state": "hot",
            "states": [
                {"name": "hot", "actions": [rollover], "transitions": [transition]},
                {"name": "delete", "actions": [{"delete": {}}], "transitions": []},
            ],
            "ism_template": [{"index_patterns": [index], "priority": 500}],
        }
    }
    return {"path": f"/_plugins/_ism/policies/{index}", "found": [], "body": body, "versioned": True}


def _pipeline(store: SearchStore) -> dict[str, Any]:
    name = f"{store.prefix}-lines"
    processors: list[dict[str, Any]] = [
        {"rename": {"field": old, "target_field": new, "ignore_missing": True}}
        for old, new in FROM_FILEBEAT.items()
    ]
    kernel = f"ctx.transport == 'kernel' && (ctx.facility == null || ctx.facility == {KERNEL_FACILITY})"
    processors += [
        {"convert": {"field": field, "type": "long", "ignore_missing": True, "ignore_failure": True}}
        for field in _NUMBERS
        if field != "code"
    ]
    processors.append({"set": {"field": "kernel", "value": True, "if": kernel}})
    pattern = "/job_(?<job>[0-9]+)(/|$)"
    processors.append(
        {"grok": {"field": "cgroup", "patterns": [pattern], "ignore_missing": True, "ignore_failure": True}}
    )
    for one in COMPLAINTS:
        still = "ctx.kernel == true && ctx.kind == null"
        grok = {"field": "message", "patterns": [oniguruma(one.pattern)], "if": still, "ignore_failure": True}
        processors += [
            {"grok": grok},
            {"set": {"field": "kind", "value": one.kind, "if": f"{still} && ctx.pci != null"}},
        ]
    processors += [
        {"rename": {"field": "pci", "target_field": "device", "ignore_missing": True}},
        {"convert": {"field": "code", "type": "integer", "ignore_missing": True, "ignore_failure": True}},
        {"remove": {"field": ["rest", "transport", *_OF_SHIPPERS], "ignore_missing": True}},
    ]
    body = {"description": "Fields of a node's lines (rackwright)", "processors": processors}
    return {"path": f"/_ingest/pipeline/{name}", "found": [name], "body": body, "versioned": False}


def oniguruma(pattern: str) -> str:
    """Python's named groups as grok has them."""
    return pattern.replace("(?P<", "(?<")


def _template(store: SearchStore, name: str) -> dict[str, Any]:
    """Of a data stream, whose name is its only pattern."""
    stream = f"{store.prefix}-{name}"
    index: dict[str, Any] = {"number_of_shards": str(store.shards), "number_of_replicas": str(store.replicas)}
    if isinstance(store, ElasticStore):
        index["lifecycle"] = {"name": stream}
    properties: dict[str, Any] = {
        "@timestamp": {"type": "date_nanos"},
        "message": {"type": "text"},
        "kernel": {"type": "boolean"},
        **{field: {"type": "keyword", "ignore_above": 1024} for field in _KEYWORDS},
        **{field: {"type": kind} for field, kind in _NUMBERS.items()},
    }
    body = {
        "index_patterns": [stream],
        "data_stream": {},
        "priority": 500,
        "template": {
            "settings": {"index": index},
            "mappings": {"dynamic": False, "properties": properties},
        },
    }
    found = ["index_templates", 0, "index_template"]
    return {"path": f"/_index_template/{stream}", "found": found, "body": body, "versioned": False}


def saved_objects(store: SearchStore) -> list[dict[str, Any]]:
    """For Kibana and OpenSearch Dashboards: the two streams, and searches that everyone needs first."""
    columns = ["node", "unit", "name", "message"]
    found = [_pattern(store, name) for name in ("lines", "audit")]
    searches = {
        "complaints": (
            "lines",
            "XID, SXid and AER",
            "kind:*",
            ["node", "kind", "code", "device", "severity", "message"],
        ),
        "errors": ("lines", "Errors", "priority <= 3", columns),
        "audit": ("audit", "Logins, sudo and runs of rackwright", "", columns),
    }
    return [*found, *(_search(store, name, *of) for name, of in searches.items())]


def _pattern(store: SearchStore, name: str) -> dict[str, Any]:
    stream = f"{store.prefix}-{name}"
    attributes = {"title": stream, "timeFieldName": "@timestamp"}
    return {"type": "index-pattern", "id": stream, "attributes": attributes, "references": []}


def _search(
    store: SearchStore, name: str, stream: str, title: str, query: str, columns: list[str]
) -> dict[str, Any]:
    reference = "kibanaSavedObjectMeta.searchSourceJSON.index"
    source = {"query": {"query": query, "language": "kuery"}, "filter": [], "indexRefName": reference}
    return {
        "type": "search",
        "id": f"{store.prefix}-search-{name}",
        "attributes": {
            "title": f"rackwright: {title}",
            "columns": columns,
            "sort": [["@timestamp", "desc"]],
            "kibanaSavedObjectMeta": {"searchSourceJSON": json.dumps(source, sort_keys=True)},
        },
        "references": [{"name": reference, "type": "index-pattern", "id": f"{store.prefix}-{stream}"}],
    }
