"""What the logs role claims where Loki or a search cluster keeps the lines."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from rackwright.boundary import Refused, last_line, read_json_as, validated
from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered, has_access, holds_secret_text
from rackwright.claims.packages import held_at
from rackwright.claims.units import runs
from rackwright.logs import objects
from rackwright.logs.read_loki import RECENT_MINUTES
from rackwright.model.cluster import Node
from rackwright.osfamily.names import names
from rackwright.roles.logs import loki_texts, paths, search_texts
from rackwright.roles.logs.arrival import arrive, refuses_strangers
from rackwright.roles.logs.options import LogsOptions
from rackwright.roles.logs.stores import ElasticStore, LokiStore, OpensearchStore, SearchStore
from rackwright.secrets.store import store_of

StoreT = TypeVar("StoreT", LokiStore, ElasticStore, OpensearchStore, SearchStore)
_ASK_LOKI = "curl --silent --show-error --max-time 20 --cacert %s --cert %s --key %s --data-urlencode %s %s/loki/api/v1/query"


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True)


class _Newest(_Strict):
    version: int
    now: float
    newest: dict[str, float | None]


class _Sample(_Strict):
    metric: dict[str, str]
    value: Annotated[tuple[float, str], Field(strict=False)]
    """Time and number."""


class _Data(_Strict):
    result: list[_Sample]


class _LokiAnswer(_Strict):
    status: str
    data: _Data


_NEWEST, _LOKI = TypeAdapter(_Newest), TypeAdapter(_LokiAnswer)


def _is_loki(node: Node, options: LogsOptions) -> bool:
    return isinstance(options.store, LokiStore)


def _is_loki_server(node: Node, options: LogsOptions) -> bool:
    return isinstance(options.store, LokiStore) and options.is_server(node)


def _is_elastic(node: Node, options: LogsOptions) -> bool:
    return isinstance(options.store, ElasticStore)


def _is_opensearch(node: Node, options: LogsOptions) -> bool:
    return isinstance(options.store, OpensearchStore)


def _is_search(node: Node, options: LogsOptions) -> bool:
    return isinstance(options.store, SearchStore)


def _sets_up_search(node: Node, options: LogsOptions) -> bool:
    return isinstance(options.store, SearchStore) and options.is_server(node)


def _store(context: CheckContext[LogsOptions], kind: type[StoreT]) -> StoreT:
    store = context.options.store
    if not isinstance(store, kind):
        raise Undetermined("another store is declared")
    return store


def _packages(context: CheckContext[LogsOptions]) -> str:
    """At the declared version: the distribution's own `loki` is another program."""
    return held_at(context, context.options.pinned(context.node))


def _alloy(context: CheckContext[LogsOptions]) -> str:
    conf = names(context.node.family, "alloy").paths["conf"]
    files = {
        conf: loki_texts.alloy_config(context.cluster, context.node, context.options),
        paths.drop_in(paths.ALLOY_UNIT): loki_texts.alloy_unit(),
    }
    return f"{runs(context, paths.ALLOY_UNIT)}; {as_rendered(context, files)}"


def _loki(context: CheckContext[LogsOptions]) -> str:
    conf = names(context.node.family, "loki").paths["conf"]
    text = loki_texts.loki_config(context.cluster, context.node, context.options, _store(context, LokiStore))
    files = {conf: text, paths.drop_in(paths.LOKI_UNIT): loki_texts.loki_unit()}
    return f"{runs(context, paths.LOKI_UNIT)}; {as_rendered(context, files)}"


def _loki_refuses(context: CheckContext[LogsOptions]) -> str:
    return refuses_strangers(context, f"{context.options.url(context.cluster)}/loki/api/v1/push")


def _loki_arrives(context: CheckContext[LogsOptions]) -> str:
    options, server = context.options, context.options.server_of(context.cluster)
    query = f'query=sum by (node) (count_over_time({{node=~".+"}}[{RECENT_MINUTES}m]))'
    certificate = (paths.CA, paths.SENDER_CHAIN, paths.SENDER_KEY)
    place = f"Loki (the last {RECENT_MINUTES} min)"
    found = context.json(
        _ASK_LOKI, *certificate, query, options.url(context.cluster), host=context.on(server.name)
    )
    try:
        answer = validated(_LOKI, found)
    except Refused as error:
        raise Undetermined(f"unusable answer of Loki: {error}") from None
    newest = {one.metric.get("node", ""): one.value[0] for one in answer.data.result}
    return arrive(context.cluster, newest, max(newest.values(), default=0.0), place)


def _filebeat(context: CheckContext[LogsOptions]) -> str:
    store, conf = _store(context, ElasticStore), names(context.node.family, "filebeat").paths["conf"]
    wanted = search_texts.filebeat_yml(context.node, store, _secret(context))
    holds_secret_text(context, conf, wanted)
    has_access(context, conf, "600", "root", "root")
    return runs(context, paths.FILEBEAT_UNIT)


def _rsyslog(context: CheckContext[LogsOptions]) -> str:
    store = _store(context, OpensearchStore)
    wanted = search_texts.rsyslog_conf(context.node, store, _secret(context))
    holds_secret_text(context, paths.RSYSLOG_CONF, wanted)
    has_access(context, paths.RSYSLOG_CONF, "600", "root", "root")
    as_rendered(context, {f"{paths.UNITS}/{paths.RSYSLOG_UNIT}": search_texts.rsyslog_unit(context.node)})
    return runs(context, paths.RSYSLOG_UNIT)


def _secret(context: CheckContext[LogsOptions]) -> search_texts.Secret:
    store = store_of(context.cluster)
    if missing := store.missing(context.options.supplied_secrets):
        raise Undetermined(f"the secrets store lacks {', '.join(missing)}")
    return lambda name: store.get(name).reveal()


def _set_up(context: CheckContext[LogsOptions]) -> str:
    store = _store(context, SearchStore)
    holds_secret_text(context, paths.SEARCH_LOGIN, search_texts.login(store, _secret(context)))
    has_access(context, paths.SEARCH_LOGIN, "600", "root", "root")
    files = {
        paths.SEARCH_PROGRAM: search_texts.objects_program(),
        objects.SETTINGS: search_texts.objects_settings(context.cluster, context.options, store),
        paths.SAVED_OBJECTS: search_texts.saved_ndjson(store),
    }
    as_rendered(context, files, {paths.SEARCH_PROGRAM: "755"})
    printed = last_line(context.output(f"{paths.SEARCH_PROGRAM} --check"))
    if printed != objects.AS_DECLARED:
        fail(f"the search cluster is not as declared: {printed}; fix it with `rackwright apply`")
    return "templates, pipeline, policies and saved objects are as declared"


def _search_arrives(context: CheckContext[LogsOptions]) -> str:
    server = context.options.server_of(context.cluster)
    text = context.output(f"{paths.SEARCH_PROGRAM} --newest", host=context.on(server.name))
    try:
        found = read_json_as(_NEWEST, text)
    except Refused as error:
        raise Undetermined(f"unusable answer of {server.name} about the search cluster: {error}") from None
    return arrive(context.cluster, found.newest, found.now, "the search cluster")


LOKI_CHECKS = (
    Check("packages from Grafana's archive have their declared versions", _packages, applies=_is_loki),
    Check("Alloy sends the journal as declared", _alloy, applies=_is_loki, settle_seconds=20),
    Check("Loki is running as declared", _loki, applies=_is_loki_server, settle_seconds=30),
    Check("Loki requires a certificate", _loki_refuses, applies=_is_loki_server, live=True),
    Check(
        "logs of every node arrive in Loki",
        _loki_arrives,
        scope="cluster",
        applies=_is_loki,
        settle_seconds=90,
        timeout_seconds=150,
    ),
)
SEARCH_CHECKS = (
    Check("Filebeat has its declared version", _packages, applies=_is_elastic),
    Check("Filebeat sends the journal as declared", _filebeat, applies=_is_elastic, settle_seconds=20),
    Check("rsyslog sends the journal as declared", _rsyslog, applies=_is_opensearch, settle_seconds=20),
    Check("the search cluster is set up as declared", _set_up, applies=_sets_up_search),
    Check(
        "logs of every node arrive in the search cluster",
        _search_arrives,
        scope="cluster",
        applies=_is_search,
        settle_seconds=90,
        timeout_seconds=150,
    ),
)
