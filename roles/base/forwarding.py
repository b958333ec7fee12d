"""Packet forwarding: what is declared of a node, how it is read and set."""

from __future__ import annotations

from ipaddress import IPv4Address

from rackwright.model.cluster import Network, Node
from rackwright.model.interfaces import NeedsForwarding
from rackwright.render import render
from rackwright.roles.base.options import BaseOptions

PATH = "/etc/sysctl.d/90-rackwright-forwarding.conf"

_EACH = "for f in /proc/sys/net/ipv4/conf/*/forwarding /proc/sys/net/ipv6/conf/*/forwarding; do"
READ = {
    # cat, as dash reads byte by byte and /proc/sys ends after the first;
    # each interface forwards by its own value, regardless of ip_forward (Linux Documentation/networking/ip-sysctl.rst)
    False: (
        "test -r /proc/sys/net/ipv4/conf/all/forwarding || exit 0; on=; "
        f'{_EACH} [ ! -r "$f" ] || [ "$(cat "$f")" = 0 ] || on="$on ${{f#/proc/sys/net/}}"; done; '
        'echo "${on:-off}"'
    ),
    True: "cat /proc/sys/net/ipv4/ip_forward",
}
"""Shell, by what is wanted: what prints WANT where it is so."""
WANT = {False: "off", True: "1"}
WRITE = {
    False: f'{_EACH} [ ! -e "$f" ] || echo 0 >"$f"; done',
    True: "echo 1 >/proc/sys/net/ipv4/ip_forward",
}


def left_to(node: Node) -> str | None:
    """The roles of the node that need forwarding and turn it on by themselves; None: no role does."""
    roles = [role for role, options in node.options.items() if isinstance(options, NeedsForwarding)]
    return ", ".join(roles) or None


def wanted(node: Node, options: BaseOptions) -> bool | None:
    """Whether the node is to forward packets; None: that is left to a role which needs it."""
    if options.forwarding:
        return True
    return None if left_to(node) is not None else False


def text(wanted: bool | None) -> str | None:
    """The file that keeps it across reboots; None: the role writes no file."""
    return None if wanted is None else render("base/forwarding.conf.j2", forwarding=wanted)


def inside(address: str, network: Network) -> bool:
    """Whether an address, as a tool printed it, is in a network; ValueError where it cannot be read."""
    return IPv4Address(address) in network.cidr
