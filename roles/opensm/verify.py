"""Checks of the opensm role, answered by the subnet managers themselves."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext, Failed, fail
from rackwright.claims.files import as_rendered, has_access, holds_secret_text
from rackwright.claims.units import is_masked, runs
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability
from rackwright.osfamily.names import names
from rackwright.render import render
from rackwright.roles.opensm import layout, texts
from rackwright.roles.opensm.layout import Instance
from rackwright.roles.opensm.options import OpensmOptions
from rackwright.roles.opensm.readings import SmInfo, parse_gid, parse_lid, parse_sminfo
from rackwright.secrets.store import store_of

Context = CheckContext[OpensmOptions]
_MODULES = frozenset({Capability.KERNEL_MODULES})


def _instances(context: Context) -> tuple[Instance, ...]:
    return tuple(layout.instances(context.cluster, context.node, context.options))


def _runs(context: Context) -> str:
    return ", ".join(runs(context, texts.unit(instance)) for instance in _instances(context))


def _alone(context: Context) -> str:
    unit = names(context.node.family, "opensm").unit or ""
    return is_masked(context, unit, "it would start opensm on every port")


def _files(context: Context) -> str:
    wanted: dict[str, str | None] = {texts.START: render("opensm/start.sh.j2")}
    modes = {texts.START: "755"}
    for instance in _instances(context):
        subnet = context.options.networks[instance.network]
        wanted[texts.partitions_path(instance)] = texts.partitions(subnet)
        wanted[texts.roots_path(instance)] = texts.roots(context.cluster, context.options, instance)
        wanted[f"{texts.UNITS}/{texts.unit(instance)}"] = texts.service(instance)
    return as_rendered(context, wanted, modes)


def _settings(context: Context) -> str:
    """By digest and access: they may hold keys."""
    found = []
    for instance in _instances(context):
        path = texts.conf_path(instance)
        keys = context.options.supplied_secrets
        store = store_of(context.cluster) if keys else None
        text = texts.conf(
            context.cluster,
            context.options,
            instance,
            lambda name, store=store: store.get(name).reveal() if store else "",  # type: ignore[misc]
        )
        found.append(holds_secret_text(context, path, text))
        has_access(context, path, "600", "root", "root")
    return ", ".join(found)


def _ask(context: Context, instance: Instance, lid: int | None = None) -> SmInfo:
    """The subnet manager at a LID; None: the master."""
    where = () if lid is None else (str(lid),)
    command = "sminfo -C %s -P %s" + " %s" * len(where)
    return parse_sminfo(context.output(command, instance.device, str(instance.port), *where))


def _of_port(context: Context, instance: Instance, file: str) -> str:
    return context.output("cat %s", f"/sys/class/infiniband/{instance.device}/ports/{instance.port}/{file}")


def _master(context: Context) -> str:
    """The declared one rules each subnet, with its declared priority."""
    found = []
    for instance in _instances(context):
        subnet = context.options.networks[instance.network]
        own = parse_gid(_of_port(context, instance, "gids/0"))
        master = _ask(context, instance)
        found.append(_judged(context, instance, subnet.nodes[0], own, master))
    return "; ".join(found)


def _judged(context: Context, instance: Instance, first: str, own: int, master: SmInfo) -> str:
    name, wanted = instance.island.name, context.options.networks[instance.network].priority(first)
    if master.state != "MASTER":
        fail(f"{name}: the subnet manager at LID {master.lid} is {master.state}, not MASTER")
    if instance.first and master.guid != own:
        raise Failed(
            f"{name}: the master is {master.guid:#018x} (priority {master.priority}), not this node ({own:#018x}): "
            "another subnet manager controls it, e.g. a switch's"
        )
    if not instance.first and master.guid == own:
        fail(
            f"{name}: this standby is the master: {first} is not running opensm, or its port cannot be reached"
        )
    if master.priority != wanted:
        fail(f"{name}: the master has priority {master.priority}, not {wanted} as {first} is declared")
    return f"{name}: {first} is the master, priority {master.priority}"


def _standby(context: Context) -> str:
    found = []
    for instance in _instances(context):
        if instance.first:
            continue
        lid = parse_lid(_of_port(context, instance, "lid"))
        mine = _ask(context, instance, lid)
        if (mine.state, mine.priority) != ("STANDBY", instance.priority):
            fail(
                f"{instance.island.name}: this node is {mine.state} with priority {mine.priority}, "
                f"not STANDBY with {instance.priority}"
            )
        found.append(f"{instance.island.name}: STANDBY, priority {mine.priority}")
    return "; ".join(found)


def _is_standby(node: Node, options: OpensmOptions) -> bool:
    return any(node.name in subnet.nodes[1:] for subnet in options.networks.values())


CHECKS = (
    Check("the distribution's opensm stays off", _alone),
    Check("opensm's files are as declared", _files),
    Check("opensm's settings are as declared and only root can read them", _settings),
    Check("every declared subnet manager is running", _runs, needs=_MODULES, settle_seconds=15),
    Check("the declared node is the master of each subnet", _master, needs=_MODULES, settle_seconds=60),
    Check(
        "standby subnet managers are ready to take over",
        _standby,
        needs=_MODULES,
        settle_seconds=60,
        applies=_is_standby,
    ),
)
