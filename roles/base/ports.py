"""A node's ports: which interface has which declared address, the default route, and packet forwarding."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rackwright.claims.check import CheckContext, Undetermined, Warned, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.kernel import sysctls_at_boot
from rackwright.facts.settings import Answer
from rackwright.model.cluster import Network
from rackwright.model.routes import NEVER, default_networks
from rackwright.model.types import NetworkPurpose
from rackwright.roles.base import forwarding
from rackwright.roles.base.options import BaseOptions


@dataclass(frozen=True)
class Port:
    """The interface of an address, and the device below it where that is a VLAN."""

    interface: str
    device: str


@dataclass(frozen=True)
class Route:
    """One default route; a multipath route is one for each next hop."""

    interface: str
    gateway: str | None
    metric: int

    def __str__(self) -> str:
        return f"{self.gateway} ({self.interface})" if self.gateway else self.interface


def parse_addresses(printed: Any) -> dict[str, Port]:  # noqa: ANN401 - JSON, unchecked until here
    """`ip -j addr show`: the port of each IPv4 address."""
    try:
        entries = {entry["ifname"]: entry for entry in printed if entry}
        ports = {name: Port(name, _device(entries, name)) for name in entries}
        return {
            address["local"]: ports[name]
            for name, entry in entries.items()
            for address in entry.get("addr_info", ())
            if address.get("family") == "inet"
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise Undetermined(f"`ip -j addr show` did not print interfaces: {error!r}") from None


def _device(entries: Mapping[str, Any], name: str) -> str:
    """The lowest interface below a VLAN or macvlan; a veth's other end in another namespace does not count."""
    for _ in entries:
        below = entries[name].get("link")
        if below not in entries or "link_netnsid" in entries[name]:
            break
        name = below
    return name


def parse_default_routes(printed: Any) -> tuple[Route, ...]:  # noqa: ANN401 - JSON, unchecked until here
    """`ip -j route show default`: the routes, the one in use first."""
    try:
        routes = [
            Route(hop["dev"], hop.get("gateway"), int(entry.get("metric", 0)))
            for entry in printed
            if entry
            for hop in entry.get("nexthops", [entry])
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Undetermined(f"`ip -j route show default` did not print routes: {error!r}") from None
    return tuple(sorted(routes, key=lambda route: route.metric))


def addresses_on_ports(context: CheckContext[BaseOptions]) -> str:
    """Every declared address is there; the external ones share no port with the cluster's own."""
    ports = parse_addresses(context.json("ip -j addr show"))
    networks = context.cluster.networks
    of_network: dict[str, list[Port]] = {}
    for entry in context.node.addresses:
        port = ports.get(str(entry.address))
        if port is None:
            fail(f"no interface has {entry.address}, the node's declared address on {entry.network}")
        of_network.setdefault(entry.network, []).append(port)
    outside = [name for name in of_network if networks[name].purpose is NetworkPurpose.EXTERNAL]
    for name in outside:
        _own_port(name, of_network, [other for other in of_network if other not in outside])
    return ", ".join(f"{name} on {_interfaces(there)}" for name, there in of_network.items())


def _own_port(name: str, of_network: Mapping[str, list[Port]], others: Iterable[str]) -> None:
    for other in others:
        for mine in of_network[name]:
            for theirs in of_network[other]:
                if mine.interface == theirs.interface:
                    fail(
                        f"{name} and {other} are both on {mine.interface}; external access needs a separate port"
                    )
                if mine.device == theirs.device:
                    raise Warned(f"{name} and {other} are VLANs of one port, {mine.device}")


def _interfaces(ports: Iterable[Port]) -> str:
    return " ".join(dict.fromkeys(port.interface for port in ports))


def default_route(context: CheckContext[BaseOptions]) -> str:
    """The default route in use has a declared gateway; no default route uses a fabric or storage network."""
    routes = parse_default_routes(context.json("ip -j route show default"))
    declared = default_networks(context.cluster.networks, context.node)
    for route in routes:
        wrong = _forbidden(context, route)
        if wrong is not None:
            fail(f"a default route uses {route}, on the {wrong.purpose} network {wrong.name}")
    if not declared:
        return f"none is declared; {', '.join(map(str, routes)) or 'the node has none'}"
    wanted = " or ".join(f"{net.gateway} ({net.name})" for net in declared)
    if not routes:
        fail(f"the node has no default route, but {wanted} is declared")
    used = [route for route in routes if route.metric == routes[0].metric]
    gateways = {str(net.gateway) for net in declared}
    for route in used:
        if route.gateway not in gateways:
            fail(f"the default route uses {route}, not {wanted}")
    return ", ".join(map(str, used))


def _forbidden(context: CheckContext[BaseOptions], route: Route) -> Network | None:
    """The fabric or storage network that a route uses."""
    own = [context.cluster.networks[entry.network] for entry in context.node.addresses]
    never = [net for net in own if net.purpose in NEVER]
    if route.gateway is not None:
        try:
            return next((net for net in never if forwarding.inside(route.gateway, net)), None)
        except ValueError:
            raise Undetermined(f"a default route has the gateway {route.gateway!r}") from None
    ports = parse_addresses(context.json("ip -j addr show"))
    for entry in context.node.addresses:
        port = ports.get(str(entry.address))
        network = context.cluster.networks[entry.network]
        if network in never and port is not None and port.interface == route.interface:
            return network
    return None


_KEY = re.compile(r"ipv[46]/conf/\S+/forwarding")


def forwarding_as_declared(context: CheckContext[BaseOptions]) -> str:
    """Packets are forwarded where that is declared or left to a container runtime, else nowhere."""
    wanted = forwarding.wanted(context.node, context.options)
    as_rendered(context, {forwarding.PATH: forwarding.text(wanted)})
    if wanted is None:
        return f"left to {forwarding.left_to(context.node)}, which needs it"
    found = context.fact(Answer, forwarding.READ[wanted], may_be_empty=True)
    if found is None:
        raise Undetermined("/proc/sys/net/ipv4 cannot be read")
    if found != forwarding.WANT[wanted]:
        if wanted:
            fail(f"net.ipv4.ip_forward is {found}, but base.forwarding is true")
        keys = found.split()
        if not all(_KEY.fullmatch(key) for key in keys):
            raise Undetermined(f"forwarding of the interfaces cannot be read: {found[:80]!r}")
        fail(f"the node forwards packets, but base.forwarding is false: {', '.join(keys)}")
    at_boot = sysctls_at_boot(context).get("net.ipv4.ip_forward")
    if at_boot != str(int(wanted)):
        fail(
            f"after a reboot net.ipv4.ip_forward would be {at_boot or 'as the kernel has it'}, not {int(wanted)}"
        )
    return "forwards, as declared" if wanted else "forwards nothing"
