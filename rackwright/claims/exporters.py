"""What roles claim of programs that serve metrics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rackwright.boundary import printable
from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered, has_access, holds_secret_text
from rackwright.claims.units import runs
from rackwright.exporters import ExporterOptions, drop_in, web_config
from rackwright.model.cluster import Cluster, Node
from rackwright.model.platforms import Capability
from rackwright.secrets.store import store_of

Arguments = Callable[[Cluster, Node, Any], tuple[str, ...]]
"""The arguments that a role's deploy gives the program."""
Applies = Callable[[Node, Any], bool]
_CURL = "curl --silent --show-error --output /dev/null --max-time 10 --write-out '%%{http_code}' %s"
_REFUSED, _SECURED_WRONG = 7, frozenset({35, 51, 58, 60, 77, 83})
"""curl's exit codes: could not connect; problems with TLS, of which 60 is a certificate that is not trusted (curl(1))."""
_ANSWERS = frozenset({"200", "400"})
"""400: it looked at the request, which has no target."""


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
        Check(f"{label} knows its password and no other", _users, applies=applies, needs=needs),
        Check(
            f"{label} answers on its address, to nobody without the password",
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
    """Wherever Prometheus asks: `/probe` lets whoever may use it look around from this node."""
    cluster, node, options = context.cluster, context.node, context.options
    paths = {"/metrics", *(scrape.path for scrape in options.scrapes(cluster, node))}
    urls = [f"{options.url(cluster, node)}{path}" for path in sorted(paths)]
    for url in urls:
        _asks_for_password(context, url)
    return f"{', '.join(urls)} {'asks' if len(urls) == 1 else 'ask'} for the password"


def _asks_for_password(context: CheckContext[ExporterOptions], url: str) -> None:
    """Its TLS is checked with what the node trusts, as Prometheus checks it."""
    result = context.host.run(_CURL, url)
    if result.rc == _REFUSED:
        fail(f"nothing answers at {url}")
    if result.rc in _SECURED_WRONG:
        fail(f"{url} has no TLS that this node trusts: {_first_line(result.stderr)}")
    if result.rc != 0:
        raise Undetermined(f"curl of {url} exited {result.rc}: {_first_line(result.stderr)}")
    if result.stdout in _ANSWERS:
        fail(f"{url} answers without a password")
    if result.stdout != "401":
        raise Undetermined(f"{url} answers {result.stdout!r}, neither metrics nor a refusal")


def _first_line(text: str) -> str:
    """What curl says; below it, it advises."""
    return printable(text.strip().partition("\n")[0], 200) or "no message"
