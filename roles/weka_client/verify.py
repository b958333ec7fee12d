"""Checks of the weka_client role: the agent, its version and container, the module, and each mount."""

from __future__ import annotations

from rackwright.claims import modules, mounts
from rackwright.claims.check import Check, CheckContext, Warned, fail
from rackwright.claims.files import has_access, holds_secret_text
from rackwright.claims.units import runs
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability
from rackwright.roles.weka_client import texts
from rackwright.roles.weka_client.options import AGENT, TOKEN, WekaClientOptions
from rackwright.secrets.store import store_of

Context = CheckContext[WekaClientOptions]


def _has_token(node: Node, options: WekaClientOptions) -> bool:
    return options.stored_as is not None


def _status(context: Context) -> texts.WekaStatus:
    return texts.parse_status(context.output(texts.STATUS))


def _agent(context: Context) -> str:
    return runs(context, AGENT)


def _version(context: Context) -> str:
    found = _status(context)
    if found.installed != context.options.version:
        fail(f"WEKA {found.installed} is installed, not {context.options.version}")
    if found.running not in ("", context.options.version):
        raise Warned(f"the backends' version {found.running} runs, but {context.options.version} is declared")
    return f"WEKA {found.installed}"


def _cgroups(context: Context) -> str:
    found = _status(context)
    if found.cgroups != "none":
        fail(f"the cgroups mode is {found.cgroups}, not none, which hides cores from hwloc and Slurm")
    return "none"


def _container(context: Context) -> str:
    running, of = _status(context).containers
    if of == 0:
        fail("no client container exists: nothing is mounted, or the node has not joined the cluster")
    if running != of:
        fail(f"only {running} of {of} containers are running: see `weka local ps`")
    return f"{running} of {of} containers are running"


def _token(context: Context) -> str:
    has_access(context, TOKEN, "600", "root", "root")
    return holds_secret_text(
        context, TOKEN, store_of(context.cluster).get(context.options.stored_as or "").reveal()
    )


def _loaded(context: Context) -> str:
    return modules.is_loaded(context, "wekafsio")


_NEEDS = frozenset({Capability.NETWORK_FILESYSTEMS})
CHECKS: tuple[Check, ...] = (
    Check("the WEKA agent is running and enabled at boot", _agent, needs=_NEEDS),
    Check("the WEKA client is installed at the declared version", _version, needs=_NEEDS),
    Check("WEKA's cgroups hide no cores", _cgroups, needs=_NEEDS),
    Check(
        "the WEKA mount token is as supplied and only root can read it",
        _token,
        needs=_NEEDS,
        applies=_has_token,
    ),
    *mounts.checks("WEKA"),
    # after the mounts, the first of which joins the cluster and brings the module
    Check("WEKA's client container is running", _container, needs=_NEEDS, live=True, settle_seconds=30),
    Check("the WEKA module is loaded", _loaded, needs=_NEEDS, live=True),
)
