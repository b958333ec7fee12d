"""The rack's networks: bridges in a namespace without any way out, and one namespace per node.

A node has a cable to the bridge of the management network, eth0, and one more for each further address,
eth1 and so on, each to that network's bridge, so that it has as many ports as a real node. Where the cluster file
declares the cabling of a network, those cables end at leaf switches (rackwright.lab.leaves) instead.
"""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Interface
from itertools import count

from rackwright.lab import bmc_network, leaves, names
from rackwright.lab.links import TIMEOUT, batch, exists, has_link, make_namespace, remove_link
from rackwright.lab.process import run
from rackwright.lab.spec import NodeSpec, RackSpec

NODE_INTERFACE = "eth0"


def make_rack(spec: RackSpec) -> None:
    """The rack's own namespace with its bridge; leaves a finished one as it is."""
    namespace = names.namespace(spec.name)
    mtu = max(mtu for node in spec.nodes for mtu in (node.mtu, *node.extra_mtus))
    make_namespace(namespace)
    if not has_link(namespace, names.BRIDGE):
        batch(
            namespace,
            "link set lo up",
            # With a fixed address the bridge keeps it when the first cable comes or goes.
            f"link add {names.BRIDGE} address {names.mac(spec.name, '', 'bridge')} type bridge mcast_snooping 0",
        )
    batch(
        namespace,
        f"link set {names.BRIDGE} mtu {mtu} addrgenmode none up",
        f"address replace {spec.bridge_address} dev {names.BRIDGE}",
    )
    subnets = {IPv4Interface(cidr).network for node in spec.nodes for cidr in node.extra_addresses}
    for bridge in sorted(names.bridge(str(subnet)) for subnet in subnets):
        if not has_link(namespace, bridge):
            mac = names.mac(spec.name, "", bridge)
            batch(namespace, f"link add {bridge} address {mac} type bridge mcast_snooping 0")
        batch(namespace, f"link set {bridge} mtu {mtu} addrgenmode none up")
    leaves.make(spec, mtu)
    bmc_network.make(spec)


def make_node(spec: RackSpec, node: NodeSpec) -> None:
    """A node's namespace and cable, newly created: no process uses it yet."""
    rack, own = names.namespace(spec.name), names.namespace(spec.name, node.name)
    remove_node(spec.name, node.name)
    make_namespace(own)
    cable = names.interface("v", node.name)
    batch(
        rack,
        f"link add {cable} mtu {node.mtu} address {names.mac(spec.name, node.name, 'switch')} type veth "
        f"peer name {NODE_INTERFACE} mtu {node.mtu} address {names.port_mac(spec.name, node.name, 0)} netns {own}",
        f"link set {cable} addrgenmode none master {names.BRIDGE} up",
    )
    # systemd does not bring up lo in a namespace it was given; without it a node cannot reach itself.
    batch(
        own,
        "link set lo up",
        f"link set {NODE_INTERFACE} addrgenmode none up",
        f"address add {node.address}/{node.prefix_length} dev {NODE_INTERFACE}",
    )
    if node.kubelet:
        # kubeadm takes the address of the default route; nothing answers behind it. The metadata services of clouds,
        # which kubelet looks for, would time out.
        gateway = spec.gateway or spec.bridge_address.partition("/")[0]
        batch(own, f"route add default via {gateway}", "route add unreachable 169.254.0.0/16")
    for number, cidr in enumerate(node.extra_addresses, start=1):
        _add_port(spec, node, number, cidr)


def make_machine(spec: RackSpec, node: NodeSpec) -> None:
    """A virtual machine's cables, made afresh: their other ends are its network cards."""
    rack = names.namespace(spec.name)
    remove_node(spec.name, node.name)
    bridges = [
        names.BRIDGE,
        *(names.bridge(str(IPv4Interface(cidr).network)) for cidr in node.extra_addresses),
    ]
    for number, bridge in enumerate(bridges):
        cable = names.interface("v" if number == 0 else f"e{number}", node.name)
        mtu = node.port_mtu(number)
        batch(rack, f"tuntap add dev {cable} mode tap vnet_hdr")
        end = leaves.plug(spec, node, number) or bridge
        batch(rack, f"link set {cable} mtu {mtu} addrgenmode none master {end} up")


def _add_port(spec: RackSpec, node: NodeSpec, number: int, cidr: str) -> None:
    """A cable to the bridge of one further network; like eth0 it keeps its MAC addresses."""
    cable, interface, own = (
        names.interface(f"e{number}", node.name),
        f"eth{number}",
        names.namespace(spec.name, node.name),
    )
    outer = names.mac(spec.name, node.name, f"switch{number}")
    inner = names.port_mac(spec.name, node.name, number)
    mtu = node.port_mtu(number)
    end = leaves.plug(spec, node, number) or names.bridge(str(IPv4Interface(cidr).network))
    batch(
        names.namespace(spec.name),
        f"link add {cable} mtu {mtu} address {outer} type veth "
        f"peer name {interface} mtu {mtu} address {inner} netns {own}",
        f"link set {cable} addrgenmode none master {end} up",
    )
    batch(own, f"link set {interface} addrgenmode none up", f"address add {cidr} dev {interface}")


def _further_cables(rack: str, node: str) -> Iterator[str]:
    """The rack's ends of a node's cables to networks other than the management network."""
    for number in count(1):
        cable = names.interface(f"e{number}", node)
        if not has_link(names.namespace(rack), cable):
            return
        yield cable


def remove_node(rack: str, node: str) -> None:
    """Remove a node's cable and namespace, if they exist."""
    own = names.namespace(rack, node)
    if exists(names.namespace(rack)):
        for kind in ("v", "w"):  # w: the other end of a delay line, see rackwright.lab.faults
            remove_link(rack, names.interface(kind, node))
        for number, cable in enumerate(list(_further_cables(rack, node)), start=1):
            remove_link(rack, cable)
            leaves.unplug(rack, node, number)
    if exists(own):
        run(["ip", "netns", "delete", own], timeout=TIMEOUT)


def remove_rack(rack: str) -> None:
    """Delete every namespace of a rack; their cables and the bridge go with them."""
    for namespace in [*node_namespaces(rack), names.namespace(rack)]:
        if exists(namespace):
            run(["ip", "netns", "delete", namespace], timeout=TIMEOUT)


def node_namespaces(rack: str) -> list[str]:
    """The node namespaces of a rack which exist now."""
    prefix = names.namespace(rack, "")
    return sorted(path.name for path in names.NETNS.glob(f"{prefix}*"))


def racks() -> list[str]:
    """The racks which have a namespace now."""
    found = (path.name.removeprefix("rw-") for path in names.NETNS.glob("rw-*"))
    return sorted({name.partition(".")[0] for name in found})


def set_cable(rack: str, node: str, up: bool) -> None:
    """Plug a node's cables in, or pull them."""
    state = "up" if up else "down"
    cables = (names.interface("v", node), *_further_cables(rack, node))
    batch(names.namespace(rack), *(f"link set {cable} {state}" for cable in cables))


def insert_delay_line(rack: str, node: str, mtu: int) -> tuple[str, str]:
    """Cut a node's cable in two and return both loose ends, the node's first."""
    near, outer, far = (names.interface(kind, node) for kind in ("v", "w", "x"))
    remove_link(rack, outer)
    batch(
        names.namespace(rack),
        f"link add {outer} mtu {mtu} type veth peer name {far} mtu {mtu}",
        # The loose ends only carry frames: the namespace must not answer ARP on them.
        f"link set {far} addrgenmode none arp off up",
        f"link set {near} nomaster arp off",
        f"link set {outer} addrgenmode none master {names.BRIDGE} up",
    )
    return near, far


def remove_delay_line(rack: str, node: str) -> None:
    """Make a node's cable whole again."""
    remove_link(rack, names.interface("w", node))
    batch(names.namespace(rack), f"link set {names.interface('v', node)} arp on master {names.BRIDGE}")


def inside(namespace: str, argv: Sequence[str]) -> list[str]:
    """The command which runs `argv` in a namespace's network and nowhere else."""
    return ["nsenter", f"--net={names.NETNS / namespace}", "--", *argv]
