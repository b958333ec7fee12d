"""The rules of a node, as data for its file: pure functions of what is declared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, collapse_addresses
from typing import Literal

from rackwright.model.cluster import Cluster, Network, Node
from rackwright.model.listening import declared_listeners
from rackwright.model.services import Listener
from rackwright.model.types import NetworkPurpose
from rackwright.render import render
from rackwright.roles.firewall.options import (
    DROP_IN,
    UNIT,
    UNIT_FILE,
    FirewallOptions,
    Zone,
    first_and_last,
)

RULES = "/etc/rackwright/firewall.nft"
TABLE = "inet rackwright"
PROTOCOLS: tuple[Literal["tcp", "udp"], ...] = ("tcp", "udp")

CHECK = f"nft -c -f %s{RULES}"
"""Run before anything changes; %s is a folder with the new files below it."""
ACTIVATE = (
    f"set -e; systemctl daemon-reload; if [ -e {RULES} ]; then systemctl reload-or-restart {UNIT}; "
    f"else systemctl stop {UNIT} 2>/dev/null || :; nft delete table {TABLE} 2>/dev/null || :; fi"
)
"""Puts the file in force; after a rollback to no file at all, nothing is filtered as before."""
IN_FORCE = "as declared"
_DIFFERS = "the table in the kernel differs from the file"
# What the file means is printed by the nft that reads it, in a network namespace with nothing else in it: no version's
# way of printing a rule has to be known here, and no digest has to be kept on the node.
LIVE = f"""\
[ -e {RULES} ] || {{ echo 'the node has no rules file'; exit; }}
live=$(nft -s list table {TABLE} 2>/dev/null) || {{ echo 'the table {TABLE} is not loaded'; exit; }}
want=$(unshare --net sh -c 'nft -f {RULES} && nft -s list table {TABLE}') || exit
if [ "$live" != "$want" ]; then
    strange=$(printf '%s\\n' "$want" -- "$live" | awk '/^--$/ {{ seen = 1; next }} !seen {{ want[$0]; next }} !($0 in want) {{ sub(/^[ \\t]+/, ""); print; exit }}')
    echo "{_DIFFERS}: ${{strange:-rules are missing}}"
else
    systemctl -q is-active {UNIT} && echo '{IN_FORCE}' || echo '{UNIT} is not active'
fi"""
"""Shell that prints IN_FORCE, or what is wrong; nothing where that is unknown."""
READ = f"""\
case $(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status) in
*[13579bdf]???) ;;
*) systemctl -q is-active {UNIT} && echo '{IN_FORCE}' || echo '{UNIT} is not active'; exit ;;
esac
{LIVE}"""
"""The same for plans. Who may not read the kernel's tables (CAP_NET_ADMIN, bit 12; the drift check in pull mode) goes by
the unit alone.
"""


@dataclass(frozen=True)
class Ports:
    """Ports of one protocol, as nft writes a set of them."""

    protocol: Literal["tcp", "udp"]
    text: str


@dataclass(frozen=True)
class Area:
    """One network that the node is on, and what its addresses may reach."""

    name: str
    zone: Zone
    cidr: IPv4Network
    external: bool
    railed: bool
    """Several subnets of it arrive by several ports, and one rail's packets may come by another rail's."""
    addresses: tuple[IPv4Address, ...]
    """The node's own."""
    kept_off: tuple[Ports, ...]
    """Declared for other networks alone."""
    open: tuple[Ports, ...]
    """Declared for this one."""


def areas(cluster: Cluster, node: Node, options: FirewallOptions) -> tuple[Area, ...]:
    """The networks that the node has addresses on, in the file's order."""
    listeners = [declared.listener for declared in declared_listeners(cluster, node)]
    found = []
    for network in cluster.networks.values():
        own = tuple(entry.address for entry in node.addresses if entry.network == network.name)
        if own:
            found.append(_area(network, options.zone(network), own, listeners))
    return tuple(found)


def _area(network: Network, zone: Zone, own: tuple[IPv4Address, ...], listeners: list[Listener]) -> Area:
    here = [one for one in listeners if network.purpose in one.purposes]
    opened = {(one.protocol, one.ports) for one in here}
    elsewhere = [
        one
        for one in listeners
        if network.purpose not in one.purposes and (one.protocol, one.ports) not in opened
    ]
    return Area(
        name=network.name,
        zone=zone,
        cidr=network.cidr,
        external=network.purpose is NetworkPurpose.EXTERNAL,
        railed=network.rails > 1,
        addresses=own,
        kept_off=tuple(_by_protocol(elsewhere)),
        open=tuple(_by_protocol(here)),
    )


def _by_protocol(listeners: Iterable[Listener]) -> Iterator[Ports]:
    there = list(listeners)
    for protocol in PROTOCOLS:
        ranges = sorted({one.ports for one in there if one.protocol == protocol})
        if ranges:
            yield Ports(protocol, _set(ranges))


def _set(ranges: Iterable[tuple[int, int]]) -> str:
    """An nft set; overlapping ranges are joined, which an anonymous set of intervals does not do by itself."""
    joined: list[list[int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1][1] = max(joined[-1][1], last)
        else:
            joined.append([first, last])
    return ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in joined)


def inner(cluster: Cluster) -> tuple[IPv4Network, ...]:
    """Addresses of the cluster's own networks."""
    return tuple(collapse_addresses(network.cidr for network in cluster.inner_networks))


def _further(cluster: Cluster, node: Node) -> Iterator[dict[str, str]]:
    """What roles accept from addresses outside the node's networks."""
    for declared in declared_listeners(cluster, node):
        one = declared.listener
        for source in one.sources:
            yield {
                "source": str(source),
                "protocol": one.protocol,
                "ports": _set([one.ports]),
                "comment": f"{declared.owner}: {one.program}",
            }


def _allowed(cluster: Cluster, options: FirewallOptions) -> Iterator[dict[str, str]]:
    for rule in options.allow:
        addresses = rule.addresses(cluster)
        if addresses is not None:  # the cluster file was refused otherwise
            yield {
                "source": str(addresses),
                "protocol": rule.protocol,
                "ports": _set([first_and_last(rule.ports)]),
                "comment": rule.comment,
            }


def rules(cluster: Cluster, node: Node, options: FirewallOptions) -> str:
    """The file that nft reads."""
    return render(
        "firewall/firewall.nft.j2",
        table=TABLE,
        areas=areas(cluster, node, options),
        inner=inner(cluster),
        ssh_port=cluster.ssh.port,
        ssh_from=options.ssh_from,
        allowed=(*_further(cluster, node), *_allowed(cluster, options)),
        log=options.log_refused,
    )


def files(cluster: Cluster, node: Node, options: FirewallOptions) -> dict[str, str]:
    """The rules, the unit that loads them at boot, and what loads them after nftables.service has flushed everything."""
    return {
        RULES: rules(cluster, node, options),
        UNIT_FILE: render("firewall/rackwright-firewall.service.j2", rules=RULES, table=TABLE),
        DROP_IN: render("firewall/nftables.service.conf.j2", rules=RULES),
    }
