"""Checks of the roce role: what its NICs report, the GIDs and MTU of each rail, and packets to a peer."""

from __future__ import annotations

from ipaddress import IPv4Address

from rackwright.claims.check import Check, CheckContext, NotInScope, Undetermined, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.units import runs
from rackwright.facts.kernel import Sysctls
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability
from rackwright.roles.roce import paths, texts
from rackwright.roles.roce.options import Rail, RoceOptions
from rackwright.roles.roce.readings import (
    GIDS,
    compare,
    parse_active_mtu,
    parse_gids,
    parse_mask,
    parse_read,
    rdma_mtu,
)

_READ = f"timeout 120 {paths.RUN} read"
_IP_AND_ICMP = 28
"""Bytes of a ping's headers."""


def _cards(context: CheckContext[RoceOptions]) -> tuple[Rail, ...]:
    """The rails on NICs; out of scope by name where all are made in software."""
    rails = context.options.rails(context.cluster, context.node)
    cards = tuple(rail for rail in rails if not rail.soft)
    if rails and not cards:
        names = ", ".join(rail.hca.name for rail in rails)
        raise NotInScope(f"{names}: a device made in software has no priorities and no congestion control")
    if not rails:
        raise Undetermined("no RDMA device is declared for this node: see `roles.rdma.devices`")
    return cards


def _claim(context: CheckContext[RoceOptions], *keys: str) -> str:
    """The NICs have what is wanted of these keys, or of keys that begin so."""
    cards = _cards(context)
    wanted = {
        key: value
        for key, value in texts.wanted(context.options).items()
        if any(key == name or (name.endswith(".") and key.startswith(name)) for name in keys)
    }
    read = parse_read(context.json(_READ))
    wrong, unknown = compare([rail.hca.name for rail in cards], read, wanted)
    if wrong:
        fail("; ".join(wrong))
    if unknown:
        raise Undetermined("; ".join(unknown))
    return ", ".join(f"{key} {value or 'none'}" for key, value in wanted.items()) + f" on {len(cards)} NICs"


def _applied(context: CheckContext[RoceOptions]) -> str:
    _cards(context)
    files = texts.files(context.cluster, context.node, context.options)
    files.pop(paths.SYSCTLS, None)
    as_rendered(context, files)
    return runs(context, paths.UNIT)


def _trust(context: CheckContext[RoceOptions]) -> str:
    return _claim(context, "dcbx", "trust", "dscp.")


def _pfc(context: CheckContext[RoceOptions]) -> str:
    return _claim(context, "pfc")


def _cnp(context: CheckContext[RoceOptions]) -> str:
    return _claim(context, "cnp_dscp", "cnp_priority")


def _mark(context: CheckContext[RoceOptions]) -> str:
    return _claim(context, "default_tos", "traffic_class")


def _congestion(context: CheckContext[RoceOptions]) -> str:
    cards = _cards(context)
    options = context.options
    if options.backend == "mlnx_qos":
        return _claim(context, "np", "rp")
    wrong = []
    for rail in cards:
        pci, port = rail.hca.pci or "", rail.hca.port
        text = context.output("timeout 30 mstconfig -d %s q %s", pci, f"ROCE_CC_PRIO_MASK_P{port}")
        on = bool(parse_mask(text, port) >> options.priority & 1)
        if on is not options.congestion_control:
            wrong.append(
                f"{rail}: congestion control of priority {options.priority} is {'on' if on else 'off'}"
            )
    if wrong:
        fail(f"{'; '.join(wrong)} in firmware (ROCE_CC_PRIO_MASK)")
    return f"{'on' if options.congestion_control else 'off'} for priority {options.priority} in firmware"


def _mtu(context: CheckContext[RoceOptions]) -> str:
    wrong, seen = [], []
    for rail in _rails(context):
        ethernet = context.cluster.networks[rail.hca.network].mtu
        device = context.output("timeout 20 ibv_devinfo -d %s -i %s", rail.hca.name, str(rail.hca.port))
        active, expected = parse_active_mtu(device), rdma_mtu(ethernet)
        if rail.interface is not None:
            there = context.output("cat %s", f"/sys/class/net/{rail.interface}/mtu").strip()
            if there != str(ethernet):
                wrong.append(f"{rail}: {rail.interface} has MTU {there}, not {ethernet}")
        if active != expected:
            wrong.append(f"{rail}: active_mtu is {active}, not {expected}")
        seen.append(f"{rail.hca.name} {active}")
    if wrong:
        fail("; ".join(wrong))
    return ", ".join(seen)


def _gids(context: CheckContext[RoceOptions]) -> str:
    wrong, seen = [], []
    for rail in _rails(context):
        network = context.cluster.networks[rail.hca.network]
        address = context.node.address_on(rail.hca.network, rail.hca.rail)
        shell = "sh -c %s sh %s %s"
        gids = parse_gids(context.output(shell, GIDS, rail.hca.name, str(rail.hca.port)))
        second = [gid for gid in gids if gid.kind == "RoCE v2" and gid.address is not None]
        here = [gid.index for gid in second if gid.address == address]
        index = context.options.gid_index
        subnet = network.subnet(rail.hca.rail)
        foreign = [f"{gid.address} at index {gid.index}" for gid in second if gid.address not in subnet]
        if not here:
            wrong.append(f"{rail}: no RoCE v2 GID for {address}")
        elif index is not None and index not in here:
            wrong.append(f"{rail}: the GID of {address} is at index {here[0]}, not {index}")
        if foreign:
            wrong.append(f"{rail}: {', '.join(foreign)} is not in the rail's subnet {subnet}")
        if here:
            seen.append(f"{rail.hca.name}: {address} at index {here[0]}")
    if wrong:
        fail("; ".join(wrong))
    return ", ".join(seen)


def _arp(context: CheckContext[RoceOptions]) -> str:
    values = texts.sysctls(context.cluster, context.node, context.options)
    if not values:
        raise NotInScope("the node has one rail on these networks")
    as_rendered(context, {paths.SYSCTLS: texts.sysctl_file(values)})
    there = context.fact(Sysctls, tuple(values))
    if unknown := [key for key in values if key not in there]:
        raise Undetermined(f"the kernel has no {', '.join(unknown)}")
    if wrong := [
        f"{key} is {there[key]}, not {value}" for key, value in values.items() if there[key] != value
    ]:
        fail("; ".join(wrong))
    return f"{len(values)} values"


def _reaches_peers(context: CheckContext[RoceOptions]) -> str:
    lost: list[str] = []
    reached: list[str] = []
    for rail in _rails(context):
        peer = _peer(context, rail)
        own = context.node.address_on(rail.hca.network, rail.hca.rail)
        if peer is None or own is None:
            continue
        name, address = peer
        size = context.cluster.networks[rail.hca.network].mtu - _IP_AND_ICMP
        words = (str(size), str(own), str(address))
        result = context.host.run("ping -c 3 -i 0.2 -W 2 -M do -s %s -I %s %s", *words)
        if result.rc not in (0, 1, 2):
            raise Undetermined(f"ping exited {result.rc}: {result.stderr.strip()[:80]}")
        if "Cannot assign requested address" in result.stderr:
            fail(f"{rail.interface or rail.hca.name} does not have its address {own}")
        if result.rc == 2 and "too long" not in result.stderr + result.stdout:
            raise Undetermined(f"ping to {name} ({address}): {result.stderr.strip()[:120]}")
        (lost if result.rc else reached).append(f"{rail.hca.name} to {name} ({address})")
    if lost:
        fail(f"packets of the network's MTU are lost: {', '.join(lost)}")
    if not reached:
        raise NotInScope("no other node is declared on a rail of this one")
    return ", ".join(reached)


def _peer(context: CheckContext[RoceOptions], rail: Rail) -> tuple[str, IPv4Address] | None:
    """The next node, in file order, that is on this rail."""
    names = [node.name for node in context.cluster.nodes]
    place = names.index(context.node.name)
    for name in (*names[place + 1 :], *names[:place]):
        address = context.cluster.by_name[name].address_on(rail.hca.network, rail.hca.rail)
        if address is not None:
            return name, address
    return None


def _rails(context: CheckContext[RoceOptions]) -> tuple[Rail, ...]:
    rails = context.options.rails(context.cluster, context.node)
    if not rails:
        raise Undetermined("no RDMA device is declared for this node: see `roles.rdma.devices`")
    return rails


def _strict(node: Node, options: RoceOptions) -> bool:
    return options.strict_arp


_MODULES = frozenset({Capability.KERNEL_MODULES})
CHECKS: tuple[Check, ...] = (
    Check("the NICs are configured at every boot", _applied, needs=_MODULES),
    Check("the NICs trust DSCP, and map it as declared", _trust, needs=_MODULES),
    Check("flow control is on for the declared priority only", _pfc, needs=_MODULES),
    Check("congestion control is on as declared", _congestion, needs=_MODULES),
    Check("congestion notifications are marked as declared", _cnp, needs=_MODULES),
    Check(
        "RDMA packets have the declared DSCP by default",
        _mark,
        needs=_MODULES,
    ),
    Check("interfaces and RDMA ports have the fabric's MTU", _mtu, needs=_MODULES),
    Check("each rail's device has the GID of its address", _gids, needs=_MODULES),
    Check("each rail answers ARP only for its own address", _arp, needs=_MODULES, applies=_strict),
    Check(
        "packets of the fabric's MTU reach a peer on every rail", _reaches_peers, needs=_MODULES, live=True
    ),
)
