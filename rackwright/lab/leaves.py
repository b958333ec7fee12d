"""Leaf switches of a rack: a namespace each, with a bridge for every subnet, and an lldpd that names it and its ports.

A leaf's bridges are joined to those of the networks, so that nodes on different leaves of a rail reach each other. A
node's cable passes through a bridge of two ports, which forwards LLDP as a wire does: the ends of all cables stay in
the rack's namespace, where machines and faults need them.
"""

import re
from ipaddress import IPv4Interface
from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab import cgroup, names
from rackwright.lab.links import batch, has_link, make_namespace, remove_link
from rackwright.lab.process import launch, require, wait_until
from rackwright.lab.spec import NodeSpec, RackSpec

DAEMON = "lldpd"
_FORWARD_LLDP = 0x4000
"""group_fwd_mask: frames to 01:80:c2:00:00:0e, which a bridge keeps unless asked (Linux, Documentation/networking/bridge.rst)."""
_CHROOT = Path("/run/lldpd")
"""Where Debian's lldpd confines its helper; systemd makes it where it runs the daemon."""
_PORT = re.compile(r"[A-Za-z0-9_.-]{1,15}")
_INTERVAL_SECONDS = 2
"""Between two LLDP frames. 30 is a switch's usual value; a test should not wait for it."""
_SETTINGS = """\
configure system hostname {leaf}
configure lldp portidsubtype ifname
configure lldp tx-interval {seconds}
"""
_STARTS = 'hostname "$1"; shift; exec "$@"'


def make(spec: RackSpec, mtu: int) -> None:
    """The leaves that cables end at, and their way to the networks; leaves finished ones as they are."""
    for leaf in spec.leaves:
        own = names.namespace(spec.name, leaf)
        make_namespace(own)
        batch(own, "link set lo up")
        for subnet in _subnets(spec, leaf):
            bridge, uplink = names.bridge(subnet), names.interface("u", f"{leaf}.{subnet}")
            if not has_link(own, bridge):
                mac = names.mac(spec.name, leaf, bridge)
                batch(own, f"link add {bridge} address {mac} type bridge mcast_snooping 0")
            if not has_link(names.namespace(spec.name), uplink):
                inner = f"up{bridge.removeprefix('net')}"
                batch(
                    names.namespace(spec.name),
                    f"link add {uplink} mtu {mtu} type veth peer name {inner} mtu {mtu} netns {own}",
                    f"link set {uplink} addrgenmode none master {bridge} up",
                )
                batch(own, f"link set {inner} addrgenmode none master {bridge} up")
            batch(own, f"link set {bridge} mtu {mtu} addrgenmode none up")


def start(spec: RackSpec) -> None:
    """Run an lldpd on each leaf on which none runs."""
    if not spec.leaves:
        return
    require((DAEMON,), "a rack with declared leaf switches")
    for leaf in spec.leaves:
        if cgroup.populated(spec.name, _group(leaf)):
            continue
        folder = names.rack_state(spec.name) / "leaves" / leaf
        folder.mkdir(parents=True, exist_ok=True)
        _CHROOT.mkdir(mode=0o755, exist_ok=True)
        settings = folder / "lldpd.conf"
        settings.write_text(_SETTINGS.format(leaf=leaf, seconds=_INTERVAL_SECONDS))
        socket = folder / "lldpd.socket"
        socket.unlink(missing_ok=True)
        daemon = [
            DAEMON,
            "-d",
            "-u",
            str(socket),
            "-O",
            str(settings),
            "-I",
            "*,!up-*,!net-*",
            "-S",
            "leaf switch",
        ]
        argv = ["nsenter", f"--net={names.NETNS / names.namespace(spec.name, leaf)}", "--"]
        argv += ["unshare", "--uts", "sh", "-c", _STARTS, "leaf", leaf, *daemon]
        launch(argv, cgroup.create(spec.name, _group(leaf)), folder / "lldpd.log")
        wait_until(socket.exists, f"the lldpd of leaf {leaf}; see {folder / 'lldpd.log'}", 30)


def plug(spec: RackSpec, node: NodeSpec, number: int) -> str | None:
    """Run a cable from a leaf to the rack's namespace, and return the bridge that a node's end of it joins.

    None: the cable of this port ends at no leaf.
    """
    end = node.leaf_port(number)
    if end is None:
        return None
    if not _PORT.fullmatch(end.port):
        raise LabError(
            f"{end.leaf}: {end.port!r} cannot be the name of an interface of the lab",
            hint="e.g. `port_name: swp{port}` under `fabrics`",
        )
    rack, own = names.namespace(spec.name), names.namespace(spec.name, end.leaf)
    wire, outer = names.interface(f"c{number}", node.name), names.interface(f"p{number}", node.name)
    mtu = node.port_mtu(number)
    unplug(spec.name, node.name, number)
    batch(
        rack,
        f"link add {wire} type bridge mcast_snooping 0 group_fwd_mask {_FORWARD_LLDP}",
        f"link add {outer} mtu {mtu} type veth peer name {end.port} mtu {mtu} "
        f"address {names.mac(spec.name, end.leaf, end.port)} netns {own}",
        f"link set {outer} addrgenmode none master {wire} up",
        f"link set {wire} addrgenmode none up",
    )
    subnet = str(IPv4Interface(node.extra_addresses[number - 1]).network)
    batch(own, f"link set {end.port} addrgenmode none master {names.bridge(subnet)} up")
    return wire


def unplug(rack: str, node: str, number: int) -> None:
    """Take the rest of a cable away, if it ended at a leaf."""
    for kind in ("p", "c"):
        remove_link(rack, names.interface(f"{kind}{number}", node))


def _subnets(spec: RackSpec, leaf: str) -> list[str]:
    """The subnets of the cables that end at a leaf."""
    found = {
        str(IPv4Interface(cidr).network)
        for node in spec.nodes
        for cidr, port in zip(node.extra_addresses, node.leaf_ports, strict=False)
        if port is not None and port.leaf == leaf
    }
    return sorted(found)


def _group(leaf: str) -> str:
    return f"{leaf}.leaf"
