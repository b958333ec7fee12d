"""Claims about programs that serve metrics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rackwright.claims.check import Check, CheckContext, Undetermined
from rackwright.claims.files import as_rendered, has_access, holds_secret_text
from rackwright.claims.units import runs
from rackwright.claims.web import requires_password
from rackwright.exporters import ExporterOptions, drop_in, web_config
from rackwright.model.cluster import Cluster, Node
from rackwright.model.platforms import Capability
from rackwright.secrets.store import store_of

Arguments = Callable[[Cluster, Node, Any], tuple[str, ...]]
"""The arguments that a role's deploy gives the program."""
Applies = Callable[[Node, Any], bool]


def exporter_checks(
    label: str,
    arguments: Arguments,
    applies: Applies | None = None,
    needs: frozenset[Capability] = frozenset(),
) -> tuple[Check, ...]:
    """The checks of every exporter; `label`: its name in their sentences."""
    started = partial(_as_declared, arguments=arguments)
    return (
        Check(f"{label} runs", _runs, settle_seconds=20, applies=applies, needs=needs),
        Check(f"{label} is started as declared", started, applies=applies, needs=needs),
        Check(f"{label} accepts only the declared password", _users, applies=applies, needs=needs),
        Check(
            f"{label} answers on its address, and requires its password",
            _refuses,
            live=True,
            settle_seconds=20,
            applies=applies,
            needs=needs,
        ),
    )


def _runs(context: CheckContext[ExporterOptions]) -> str:
    return runs(context, context.options.unit(context.node))


def _as_declared(context: CheckContext[ExporterOptions], arguments: Arguments) -> str:
    cluster, node, options = context.cluster, context.node, context.options
    text = drop_in(cluster, node, options, arguments(cluster, node, options))
    return as_rendered(context, {options.drop_in(node): text})


def _users(context: CheckContext[ExporterOptions]) -> str:
    options, store = context.options, store_of(context.cluster)
    if store.missing((options.password_secret,)):
        raise Undetermined(f"the secrets store has no {options.password_secret}")
    wanted = web_config(context.cluster, context.node, options, lambda name: store.get(name).reveal())
    holds_secret_text(context, options.web_config, wanted)
    return has_access(
        context, options.web_config, "640", "root", options.names(context.node).settings["user"]
    )


def _refuses(context: CheckContext[ExporterOptions]) -> str:
    """Every path that Prometheus reads: `/probe` can reach other hosts from this node."""
    cluster, node, options = context.cluster, context.node, context.options
    paths = {"/metrics", *(scrape.path for scrape in options.scrapes(cluster, node))}
    urls = [f"{options.url(cluster, node)}{path}" for path in sorted(paths)]
    for url in urls:
        requires_password(context, url)
    return f"{', '.join(urls)} {'requires' if len(urls) == 1 else 'require'} the password"
