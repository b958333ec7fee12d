"""Checks of the alertmanager role."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rackwright.boundary import printable
from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, fail
from rackwright.claims.exporters import exporter_checks
from rackwright.claims.files import as_rendered, has_access, holds_secret_text
from rackwright.claims.web import answer, json_answer
from rackwright.model.cluster import Node
from rackwright.model.monitoring import SERVER_SECRET, USER
from rackwright.roles.alertmanager import texts
from rackwright.roles.alertmanager.options import AlertmanagerOptions
from rackwright.roles.alertmanager.settings import alertmanager_yml
from rackwright.secrets.store import store_of
from rackwright.silences.amtool import AMTOOL

_SAMPLE = re.compile(r"^([a-z_]+)(?:\{(.*)\})? ([0-9.eE+-]+)$", re.MULTILINE)
_INTEGRATION = re.compile(r'\bintegration="([a-z0-9_]+)"')


def _answer(context: CheckContext[AlertmanagerOptions], path: str) -> str:
    options = context.options
    url = f"{options.url(context.cluster, context.node)}{path}"
    return answer(context, USER, texts.password_file(options), url)


def by_integration(metrics: str, name: str) -> dict[str, float]:
    """The sum of a counter's samples for each kind of receiver."""
    found: dict[str, float] = {}
    for labels, value in _samples(metrics, name):
        if (kind := _INTEGRATION.search(labels)) is not None:
            found[kind[1]] = found.get(kind[1], 0.0) + value
    return found


def _samples(metrics: str, name: str) -> Iterator[tuple[str, float]]:
    for match in _SAMPLE.finditer(metrics):
        if match[1] == name:
            try:
                yield match[2] or "", float(match[3])
            except ValueError as error:
                raise Undetermined(f"{name} of Alertmanager is {printable(match[3], 40)}") from error


def _settings(context: CheckContext[AlertmanagerOptions]) -> str:
    cluster, node, options = context.cluster, context.node, context.options
    readable = texts.readable_files(cluster, node, options)
    wanted: dict[str, str | None] = {
        texts.conf(node, options): alertmanager_yml(cluster, node, options),
        **readable,
    }
    as_rendered(context, wanted | {texts.gossip_file(options): readable.get(texts.gossip_file(options))})
    names = ", ".join(sorted(options.receivers)) or "none"
    return f"{len(wanted)} files; receivers: {names}"


def _secrets(context: CheckContext[AlertmanagerOptions]) -> str:
    options, store = context.options, store_of(context.cluster)
    group = options.names(context.node).settings["user"]
    wanted = [(SERVER_SECRET, texts.password_file(options), "600", "root")]
    wanted += [(name, texts.secret_file(options, name), "640", group) for name in options.supplied_secrets]
    if missing := store.missing([name for name, *_ in wanted]):
        raise Undetermined(f"the secrets store lacks {', '.join(missing)}")
    for name, path, mode, owner_group in wanted:
        holds_secret_text(context, path, store.get(name).reveal())
        has_access(context, path, mode, "root", owner_group)
    if strange := context.output("sh -c %s", texts.strange_secrets(options)).split():
        fail(
            f"{texts.secrets_folder(options)} has {printable(', '.join(strange), 200)}, which nothing declares"
        )
    return f"{len(wanted)} files"


def _loaded(context: CheckContext[AlertmanagerOptions]) -> str:
    found = [
        value
        for _, value in _samples(_answer(context, "/metrics"), "alertmanager_config_last_reload_successful")
    ]
    if not found:
        raise Undetermined("Alertmanager does not report whether it has loaded its settings")
    if found != [1]:
        fail("Alertmanager rejected its settings at the last reload and still runs with the previous ones")
    return "its last reload succeeded"


def _sent(context: CheckContext[AlertmanagerOptions]) -> str:
    """Since it started: its counters have no times."""
    metrics = _answer(context, "/metrics")
    tried = by_integration(metrics, "alertmanager_notifications_total")
    failed = by_integration(metrics, "alertmanager_notifications_failed_total")
    if not tried or tried.keys() != failed.keys():
        raise Undetermined("Alertmanager does not report its notifications")
    never = [
        f"{tried[kind]:.0f} by {kind}"
        for kind in sorted(tried)
        if tried[kind] and failed[kind] >= tried[kind]
    ]
    if never:
        fail(f"all notifications failed since Alertmanager started: {', '.join(never)}")
    some = [f"{failed[kind]:.0f} of {tried[kind]:.0f} by {kind}" for kind in sorted(tried) if failed[kind]]
    if some:
        raise Warned(f"notifications failed since Alertmanager started: {', '.join(some)}")
    sent = [f"{count:.0f} by {kind}" for kind, count in sorted(tried.items()) if count]
    return f"sent since it started: {', '.join(sent) or 'none'}"


def _status(context: CheckContext[AlertmanagerOptions]) -> dict[str, Any]:
    options = context.options
    url = f"{options.url(context.cluster, context.node)}/api/v2/status"
    found = json_answer(context, USER, texts.password_file(options), url, "Alertmanager")
    if not isinstance(found, dict) or not isinstance(found.get("cluster"), dict):
        raise Undetermined("Alertmanager's answer does not describe its cluster")
    cluster: dict[str, Any] = found["cluster"]
    return cluster


def _pair(context: CheckContext[AlertmanagerOptions]) -> str:
    """Each of them; without the other one, every alert is sent twice and silences differ."""
    cluster, options, found = context.cluster, context.options, _status(context)
    peers = found.get("peers")
    if not isinstance(peers, list):
        raise Undetermined("Alertmanager does not report its peers")
    there = {str(one.get("address")) for one in peers if isinstance(one, dict)}
    wanted = {
        f"{cluster.management_address(cluster.by_name[name])}:{options.gossip_port}": name
        for name in options.nodes
    }
    if missing := [name for address, name in wanted.items() if address not in there]:
        fail(f"{context.node.name} does not see {', '.join(missing)}")
    if strange := sorted(there - wanted.keys()):
        fail(f"{context.node.name} sees {printable(', '.join(strange), 200)}, which is not declared")
    if found.get("status") != "ready":
        raise Undetermined(f"gossip status is {printable(str(found.get('status')), 40)}")
    return f"{' and '.join(options.nodes)} see each other"


def _is_pair(node: Node, options: AlertmanagerOptions) -> bool:
    return len(options.nodes) > 1


def _silences(context: CheckContext[AlertmanagerOptions]) -> str:
    """Reaches it as apply does; changes nothing."""
    active = context.json(f"{AMTOOL} --output=json silence query")
    if not isinstance(active, list):
        raise Undetermined("amtool prints no list of silences")
    return f"amtool reaches it; active silences: {len(active)}"


CHECKS = (
    *exporter_checks("Alertmanager", texts.arguments),
    Check("Alertmanager has its declared settings", _settings),
    Check("only Alertmanager can read its receivers' secrets", _secrets),
    Check("Alertmanager has loaded its settings", _loaded, live=True, settle_seconds=20),
    Check("notifications reach their receivers", _sent, live=True),
    Check("both Alertmanagers see each other", _pair, live=True, settle_seconds=90, applies=_is_pair),
    Check("rackwright can silence alerts", _silences, live=True, settle_seconds=20),
)
