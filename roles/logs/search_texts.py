"""The files of nodes that send to a search cluster, and of the server that sets it up, whole. They hold passwords.

Keys: elastic/beats docs/reference/filebeat/filebeat-input-journald.md and journalfield/default.go; rsyslog 8.2504's
imjournal and omelasticsearch (read 2026-11-27, and run against a test server). Filebeat was not run here.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from rackwright.logs import objects
from rackwright.logs.entries import AUDIT_FACILITIES
from rackwright.model.cluster import Cluster, Node
from rackwright.node_programs import one_text
from rackwright.render import render
from rackwright.roles.logs import paths
from rackwright.roles.logs.options import LogsOptions
from rackwright.roles.logs.search_objects import declared_objects, saved_objects
from rackwright.roles.logs.stores import ElasticStore, OpensearchStore, SearchStore
from rackwright.roles.logs.texts import PYTHON

Secret = Callable[[str], str]
RSYSLOG_STATE = "rackwright-logs-rsyslog"
RSYSLOG_FOLDER = f"/var/lib/{RSYSLOG_STATE}"
_FIELDS = {
    "unit": "_SYSTEMD_UNIT",
    "cgroup": "_SYSTEMD_CGROUP",
    "name": "SYSLOG_IDENTIFIER",
    "priority": "PRIORITY",
    "facility": "SYSLOG_FACILITY",
    "pid": "_PID",
    "uid": "_UID",
    "transport": "_TRANSPORT",
}
_FILEBEAT_QUEUE = "1GB"


def filebeat_yml(node: Node, store: ElasticStore, secret: Secret) -> str:
    """What a node sends, where and as whom."""
    return render(
        "logs/filebeat.yml.j2",
        node=node.name,
        store=store,
        facilities=AUDIT_FACILITIES,
        password=secret(store.sends.stored_as),
        queue=_FILEBEAT_QUEUE,
    )


def filebeat_unit() -> str:
    """Filebeat runs as root, as its package has it."""
    return render("logs/shipper-unit.conf.j2", lines=())


def rsyslog_conf(node: Node, store: OpensearchStore, secret: Secret) -> str:
    """The same with rsyslog."""
    audit = " or ".join(f'$!SYSLOG_FACILITY == "{facility}"' for facility in AUDIT_FACILITIES)
    return render(
        "logs/rsyslog.conf.j2",
        node=node.name,
        store=store,
        state=RSYSLOG_FOLDER,
        fields=_FIELDS,
        streams={"audit": f"({audit})", "lines": f"not ({audit})"},
        password=rainerscript(secret(store.sends.stored_as)),
        queue=store.queue,
    )


def rainerscript(text: str) -> str:
    """A text constant of rsyslog's configuration: `\\`, `"` and `$` mean something in it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'


def rsyslog_unit(node: Node) -> str:
    """Our own instance."""
    return render(
        "logs/rsyslog.service.j2", node=node.name, conf=paths.RSYSLOG_CONF, state_name=RSYSLOG_STATE
    )


def login(store: SearchStore, secret: Secret) -> str:
    """As whom the server sets up and reads."""
    found = {"user": store.manages.user, "password": secret(store.manages.stored_as)}
    return json.dumps(found) + "\n"


def objects_settings(cluster: Cluster, options: LogsOptions, store: SearchStore) -> str:
    """What the server puts into the cluster, and whose lines are to arrive there."""
    found = {
        "nodes": sorted(node.name for node in cluster.nodes if "logs" in node.options),
        "prefix": store.prefix,
        "urls": list(store.urls),
        "ca": store.ca,
        "login": paths.SEARCH_LOGIN,
        "objects": declared_objects(options, store),
        "saved": {"url": store.dashboards_url, "objects": saved_objects(store)},
    }
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


def saved_ndjson(store: SearchStore) -> str:
    """The saved objects as Kibana's and Dashboards' own import takes them by hand."""
    return "".join(json.dumps(one, sort_keys=True) + "\n" for one in saved_objects(store))


def objects_program() -> str:
    """What compares and puts them."""
    return f"#!{PYTHON} -IS\n{one_text('rackwright.logs.objects')}"


OBJECTS = objects.SETTINGS
