"""Checks of the beegfs role: packages, module, each mount, targets and their servers."""

from __future__ import annotations

from rackwright.claims import modules, mounts
from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered, at_path, has_access, holds_secret_text
from rackwright.claims.packages import held_at
from rackwright.claims.units import runs
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability
from rackwright.roles.beegfs import readings, texts
from rackwright.roles.beegfs.options import AUTH, AUTH_SECRET, BeegfsOptions
from rackwright.secrets.store import store_of

Context = CheckContext[BeegfsOptions]
_GOOD = "Online / Good"


def _mounts(node: Node, options: BeegfsOptions) -> bool:
    return bool(options.mounted(node))


def _serves(node: Node, options: BeegfsOptions) -> bool:
    return bool(options.services(node))


def _uses_rdma(node: Node, options: BeegfsOptions) -> bool:
    mounted = options.mounted(node)
    return bool(mounted) and all(one.rdma for one in mounted)


def _installed(context: Context) -> str:
    return held_at(context, context.options.packages(context.node))


def _settings(context: Context) -> str:
    given = (context.cluster, context.node, context.options)
    return as_rendered(context, {**texts.client_files(*given), **texts.server_files(*given)})


def _secret(context: Context) -> str:
    has_access(context, AUTH, "400", "root", "root")
    return holds_secret_text(context, AUTH, store_of(context.cluster).get(AUTH_SECRET).reveal())


def _built(context: Context) -> str:
    return modules.is_built(context, "beegfs", context.options.module_version)


def _loaded(context: Context) -> str:
    return modules.is_loaded(context, "beegfs", context.options.module_version)


def _targets(context: Context) -> str:
    found = readings.parse_states(context.output("sh -c %s", readings.STATES))
    if wrong := [f"{target} is {state}" for target, state in found if state != _GOOD]:
        fail("; ".join(wrong))
    return f"{len(found)} targets"


def _rdma(context: Context) -> str:
    found = readings.parse_nodes(context.output("sh -c %s", readings.NODES))
    if tcp := [name for name, one in found if one.tcp and not one.rdma]:
        fail(f"TCP to {', '.join(tcp)}, where RDMA is declared")
    used = list(dict.fromkeys(name for name, one in found if one.rdma))
    if not used:
        raise Undetermined("the client is not connected to any server yet")
    return ", ".join(used)


def _servers_run(context: Context) -> str:
    return ", ".join(runs(context, f"beegfs-{one}.service") for one in context.options.services(context.node))


def _prepared(context: Context) -> str:
    found = []
    for targets in texts.targets(context.node, context.options).values():
        for target in targets:
            path = f"{target.folder}/format.conf"
            if at_path(context, path, digest_only=True).kind != "file":
                fail(f"{path} is missing: {target.folder} is not prepared, or its disk is not mounted")
            found.append(target.folder)
    return ", ".join(found) or "no folders"


_NEEDS = frozenset({Capability.NETWORK_FILESYSTEMS})
CHECKS: tuple[Check, ...] = (
    Check("BeeGFS is installed as declared and held", _installed, needs=_NEEDS),
    Check("BeeGFS' settings are as declared", _settings, needs=_NEEDS),
    Check("the BeeGFS secret is as stored and only root can read it", _secret, needs=_NEEDS),
    Check("BeeGFS servers are running and enabled at boot", _servers_run, needs=_NEEDS, applies=_serves),
    Check("the BeeGFS servers' folders are prepared", _prepared, needs=_NEEDS, applies=_serves),
    Check("the BeeGFS module is built for the declared kernel", _built, needs=_NEEDS, applies=_mounts),
    *mounts.checks("BeeGFS"),
    # after the mounts, whose first use loads the module and connects
    Check(
        "the loaded BeeGFS module has the declared version", _loaded, needs=_NEEDS, applies=_mounts, live=True
    ),
    Check(
        "every BeeGFS target is online", _targets, needs=_NEEDS, applies=_mounts, live=True, settle_seconds=30
    ),
    Check("BeeGFS uses RDMA where it is declared", _rdma, needs=_NEEDS, applies=_uses_rdma, live=True),
)
