"""Checks of the grafana role."""

from __future__ import annotations

import json
from typing import Any

from rackwright.boundary import printable
from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered, has_access, holds_only, holds_secret_text, text_of
from rackwright.claims.packages import held_at
from rackwright.claims.units import runs
from rackwright.claims.web import json_answer, requires_password
from rackwright.model.cluster import Node
from rackwright.roles.grafana import texts
from rackwright.roles.grafana.options import ADMIN_SECRET, FOLDER, GrafanaOptions
from rackwright.secrets.store import store_of

_CLOSED = ("/api/org", "/api/search", "/api/datasources", "/metrics")
"""What requires a login: the organization, dashboards, data sources, Grafana's own metrics."""
_WITH_HEALTH = (texts.PROMETHEUS, texts.LOKI)
"""Data sources whose health Grafana can query; Alertmanager's lacks the call."""


def _runs(context: CheckContext[GrafanaOptions]) -> str:
    return runs(context, context.options.names(context.node).unit or "")


def _held(context: CheckContext[GrafanaOptions]) -> str:
    return held_at(context, context.options.packages(context.node))


def _files(context: CheckContext[GrafanaOptions]) -> str:
    cluster, node, options = context.cluster, context.node, context.options
    user = options.names(node).settings["user"]
    wanted = texts.plain_files(cluster, node, options)
    for path, text in wanted.items():
        if text_of(context, path) != text:
            fail(f"{path} is not as declared")
        has_access(context, path, "640", "root", user)
    as_rendered(context, {options.drop_in(node): texts.drop_in(node, options)})
    if options.ldap is None:
        as_rendered(context, {options.names(node).paths["ldap"]: None})
    return f"{len(wanted) + 1} files"


def _secrets(context: CheckContext[GrafanaOptions]) -> str:
    store, options = store_of(context.cluster), context.options
    user = options.names(context.node).settings["user"]
    wanted = texts.secret_files(options)
    if missing := store.missing(wanted.values()):
        raise Undetermined(f"the secrets store lacks {', '.join(missing)}")
    for path, name in wanted.items():
        holds_secret_text(context, path, store.get(name).reveal())
        has_access(context, path, "640", "root", user)
    return f"{len(wanted)} files in {FOLDER}"


def _dashboard_files(context: CheckContext[GrafanaOptions]) -> str:
    return holds_only(context, texts.DASHBOARDS_FOLDER, texts.dashboards(context.cluster))


def _refuses(context: CheckContext[GrafanaOptions]) -> str:
    base = context.options.url(context.cluster, context.node)
    for path in _CLOSED:
        requires_password(context, f"{base}{path}")
    return f"{base} requires a login"


def answer(context: CheckContext[GrafanaOptions], path: str) -> Any:  # noqa: ANN401 - JSON
    """What Grafana's API answers its administrator; Undetermined where that is not JSON."""
    url = f"{context.options.url(context.cluster, context.node)}/api/{path}"
    password = texts.secret_file(ADMIN_SECRET)
    return json_answer(context, context.options.admin, password, url, "Grafana")


def _administrator(context: CheckContext[GrafanaOptions]) -> str:
    found = answer(context, "user")
    if not isinstance(found, dict):
        raise Undetermined("Grafana's response is not in the documented format")
    if found.get("login") != context.options.admin:
        fail(f"Grafana refuses the administrator's password: {printable(json.dumps(found), 200)}")
    if found.get("isGrafanaAdmin") is not True:
        fail(f"{context.options.admin} is not an administrator of Grafana")
    return f"{context.options.admin} logs in"


def _healthy(context: CheckContext[GrafanaOptions]) -> str:
    """Grafana itself asks them, with the password and the CA that it was given."""
    declared = texts.source_uids(context.cluster, context.node, context.options)
    for uid in (one for one in declared if one in _WITH_HEALTH):
        found = answer(context, f"datasources/uid/{uid}/health")
        if not isinstance(found, dict) or "status" not in found:
            raise Undetermined(
                f"Grafana does not report the health of {uid}: {printable(json.dumps(found), 200)}"
            )
        if found["status"] != "OK":
            fail(f"{uid}: {printable(str(found.get('message', found['status'])), 200)}")
    found = answer(context, "datasources")
    if not isinstance(found, list):
        raise Undetermined("Grafana does not list its data sources")
    known = {str(one.get("uid")) for one in found if isinstance(one, dict)}
    if known != set(declared):
        fail(f"Grafana has the data sources {', '.join(sorted(known)) or 'none'}, not {', '.join(declared)}")
    return f"{', '.join(declared)}"


def _shown(context: CheckContext[GrafanaOptions]) -> str:
    found = answer(context, "search?type=dash-db&limit=5000")
    if not isinstance(found, list):
        raise Undetermined("Grafana does not list its dashboards")
    known = {str(one.get("uid")): one.get("folderTitle") for one in found if isinstance(one, dict)}
    declared = texts.dashboard_uids(context.cluster)
    missing = [uid for uid in declared if uid not in known]
    if missing:
        fail(f"Grafana does not have {', '.join(missing)}")
    moved = [uid for uid, folder in declared.items() if known[uid] != folder]
    if moved:
        fail(f"{moved[0]} is not in the folder {declared[moved[0]]}")
    return f"{len(declared)} dashboards"


def _has_version(node: Node, options: GrafanaOptions) -> bool:
    return options.version is not None


CHECKS = (
    Check("Grafana is held at its declared version", _held, applies=_has_version),
    Check("Grafana is running", _runs, settle_seconds=60),
    Check("Grafana has its declared settings and data sources", _files),
    Check("only Grafana can read its secrets", _secrets),
    Check("Grafana's dashboards are as rendered", _dashboard_files),
    Check("Grafana requires a login", _refuses, live=True, settle_seconds=60),
    Check("Grafana's administrator has the declared password", _administrator, live=True, settle_seconds=60),
    Check("Grafana reaches its data sources and has no others", _healthy, live=True, settle_seconds=60),
    Check("Grafana shows every dashboard", _shown, live=True, settle_seconds=60),
)
