"""Checks of the registry_cache role, and of every node that pulls."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext, TestinfraHost, Undetermined, fail
from rackwright.claims.files import as_rendered, has_access, holds_secret_text
from rackwright.claims.units import is_masked, runs
from rackwright.containers import PullingOptions
from rackwright.model.cluster import Cluster, Node
from rackwright.roles.registry_cache import texts
from rackwright.roles.registry_cache.options import RegistryCacheOptions
from rackwright.secrets.store import store_of

_ASK = "curl -s -o /dev/null -w '%%{http_code}' --noproxy '*' --max-time 10 %s"
_ASK_TRUSTING = _ASK.replace("10 %s", "10 --cacert %s %s")
_REFUSED = (6, 7, 28, 35, 52, 56, 60)
"""Exit statuses of curl that describe the server: no name, no connection, no answer, no trust."""


def _running(context: CheckContext[RegistryCacheOptions]) -> str:
    names = context.options.registries
    for name in names:
        runs(context, texts.unit(name))
    return f"{', '.join(names)}: active and enabled"


def _packaged_is_off(context: CheckContext[RegistryCacheOptions]) -> str:
    return is_masked(context, texts.PACKAGED_UNIT, "it listens on every address")


def _confs(context: CheckContext[RegistryCacheOptions]) -> str:
    options, store = context.options, store_of(context.cluster)
    for name in options.registries:
        path = texts.conf_path(name)
        wanted = texts.config_yml(name, context.cluster, options, lambda secret: store.get(secret).reveal())
        holds_secret_text(context, path, wanted)
        has_access(context, path, "640", "root", texts.USER)
        users = texts.htpasswd(name, options, lambda secret: store.get(secret).reveal())
        if users is not None:
            holds_secret_text(context, texts.htpasswd_path(name), users)
            has_access(context, texts.htpasswd_path(name), "640", "root", texts.USER)
        else:
            as_rendered(context, {texts.htpasswd_path(name): None})
    return f"{len(options.registries)} registries"


def _wrong(name: str, options: RegistryCacheOptions, url: str, status: str) -> str | None:
    """What is wrong with the answer to a request without a login; None where nothing is."""
    wanted = "401" if texts.asks_for_login(name, options) else "200"
    if status == wanted:
        return None
    if wanted == "401" and status == "200":
        return f"{url}/v2/ answers without a login"
    return f"{url}/v2/ answers with status {status}, not {wanted}"


def _status(host: TestinfraHost, url: str, ca: str | None) -> str:
    """HTTP status of the API's root; fails if the server does not answer."""
    result = host.run(_ASK, f"{url}/v2/") if ca is None else host.run(_ASK_TRUSTING, ca, f"{url}/v2/")
    if result.rc in _REFUSED:
        fail(f"{url}/v2/ does not answer (curl exited {result.rc})")
    if result.rc != 0:
        raise Undetermined(f"cannot query {url}/v2/: {result.stderr.strip() or f'curl exited {result.rc}'}")
    return str(result.stdout).strip()


def _ca(cluster: Cluster, node: Node, url: str) -> str | None:
    """The certificate with which the node's runtime trusts a registry; None: what the OS trusts."""
    pulling = node.offers(PullingOptions)
    return None if pulling is None else pulling.trusted_by(cluster, node, url.partition("://")[2])


def _answers(context: CheckContext[RegistryCacheOptions]) -> str:
    options = context.options
    urls = {name: texts.url(name, context.cluster, options) for name in options.registries}
    for name, url in urls.items():
        if wrong := _wrong(
            name, options, url, _status(context.host, url, _ca(context.cluster, context.node, url))
        ):
            fail(wrong)
    return ", ".join(urls.values())


def _reached(context: CheckContext[RegistryCacheOptions]) -> str:
    """From every node that pulls images, with any runtime."""
    options = context.options
    pulling = [node for node in context.cluster.nodes if node.offers(PullingOptions) is not None]
    urls = {name: texts.url(name, context.cluster, options) for name in options.registries}
    for node in pulling:
        for name, url in urls.items():
            try:
                status = _status(context.on(node.name), url, _ca(context.cluster, node, url))
            except AssertionError as error:
                fail(f"{node.name}: {error}")
            if wrong := _wrong(name, options, url, status):
                fail(f"{node.name}: {wrong}")
    return f"{len(urls)} registries from {len(pulling)} nodes"


CHECKS = (
    Check("every registry is running", _running, settle_seconds=10),
    Check("the package's own registry is off", _packaged_is_off),
    Check("the registries' settings are as declared", _confs),
    Check("every registry answers", _answers, settle_seconds=15),
    Check(
        "every node that pulls images reaches the registries",
        _reached,
        scope="cluster",
        settle_seconds=15,
        timeout_seconds=300,
    ),
)
