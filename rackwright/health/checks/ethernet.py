"""Ethernet: interfaces, addresses, bonds and routes."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.health.document import Document
from rackwright.health.expected import Expected, ExpectedAddress
from rackwright.health.history import HOUR, increase, name
from rackwright.health.node_records import Bond, Interface
from rackwright.health.records import Unreadable
from rackwright.health.registry import check, each
from rackwright.health.verdict import Action, Finding, fail, good, warn

CABLE = "Reseat or replace the cable or transceiver, then check the switch port."


def addressed(expected: Expected) -> bool:
    return bool(expected.addresses)


def holder(document: Document, wanted: ExpectedAddress) -> Interface:
    """The interface that has a declared address."""
    for interface in document.network.interfaces:
        if wanted.address in interface.ipv4:
            return interface
    raise Unreadable(f"no interface has {wanted.address}")


@check(
    "fabric", "Every declared address is configured on the node", reads=("network",), applies=addressed,
    remedy="Bring up the interface; compare its MAC with the declared one.", source="the cluster file",
)  # fmt: skip
def address_present(expected: Expected, document: Document) -> Iterator[Finding]:
    there = {address for interface in document.network.interfaces for address in interface.ipv4}
    for wanted in expected.addresses:
        if wanted.address not in there:
            yield fail(f"{wanted.address} on {wanted.network} is missing")
    yield good(f"{len(expected.addresses)} addresses")


@check(
    "fabric", "Every interface with a declared address has a link", reads=("network",), applies=addressed, remedy=CABLE,
    source="ClusterMAX passive checks",
)  # fmt: skip
def interface_up(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(wanted: ExpectedAddress) -> Finding | None:
        interface = holder(document, wanted)
        if interface.carrier and interface.state in ("up", "unknown"):
            return None
        return fail(
            f"{interface.name} ({wanted.network}) is {interface.state if interface.carrier else 'without link'}"
        )

    yield from each(expected.addresses, judge, "up")


@check(
    "fabric", "Every interface has the MTU of its network", reads=("network",), applies=addressed,
    remedy="Set the MTU of the interface; the switch port must allow it too.", source="the cluster file",
)  # fmt: skip
def interface_mtu(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(wanted: ExpectedAddress) -> Finding | None:
        interface = holder(document, wanted)
        if interface.mtu == wanted.mtu:
            return None
        return fail(f"{interface.name} ({wanted.network}) has MTU {interface.mtu}, declared {wanted.mtu}")

    yield from each(expected.addresses, judge, "as declared")


def ethernet_ports(expected: Expected) -> bool:
    return bool(expected.ports_of("ethernet", "roce")) and bool(expected.addresses)


@check(
    "fabric", "Every Ethernet port runs at its declared speed", reads=("network",), applies=ethernet_ports,
    needs=("hardware",), remedy=CABLE, source="the declared SKU",
)  # fmt: skip
def interface_speed(expected: Expected, document: Document) -> Iterator[Finding]:
    speeds: dict[str, int] = {}
    for entry in expected.ports_of(
        "ethernet", "roce"
    ):  # the declaration does not name the interface of the address
        speeds[entry.purpose] = min(entry.speed_gbps, speeds.get(entry.purpose, entry.speed_gbps))

    def judge(wanted: ExpectedAddress) -> Finding | None:
        interface = holder(document, wanted)
        if interface.speed_mbps is None:
            raise Unreadable(f"{interface.name} shows no speed")
        least = speeds[wanted.purpose] * 1000
        if interface.speed_mbps >= least:
            return None
        return fail(f"{interface.name} ({wanted.network}) runs at {interface.speed_mbps} of {least:.0f} Mb/s")

    judged = [one for one in expected.addresses if one.purpose in speeds and one.kind != "infiniband"]
    yield from each(judged, judge, "as declared")


@check(
    "fabric", "Few Ethernet packets have errors", reads=("network", "history"), limits=("nic_error_percent", "nic_errors"),
    applies=addressed, remedy=CABLE, source="StackHPC alert rules; node_exporter mixin",
)  # fmt: skip
def interface_errors(expected: Expected, document: Document) -> Iterator[Finding]:
    most, share = expected.limit("nic_errors"), expected.limit("nic_error_percent")

    def judge(pair: tuple[ExpectedAddress, str]) -> Finding | None:
        interface, way = holder(document, pair[0]), pair[1]
        counts = interface.statistics
        kinds = (f"{way}_errors", f"{way}_packets")
        if any(kind not in counts for kind in kinds):
            raise Unreadable(f"{interface.name} does not count {way} errors")
        evidence = f"{interface.name}: {counts[kinds[0]]} {way} errors in {counts[kinds[1]]} packets in all"
        errors, packets = (
            increase(document, name("net", interface.name, kind), counts[kind], HOUR) for kind in kinds
        )
        if errors is None or packets is None:
            much = _percent(counts[kinds[0]], counts[kinds[1]]) > share and counts[kinds[0]] > most
            return warn(evidence + "; no earlier reading to compare with") if much else None
        if errors.count > most and _percent(errors.count, packets.count) > share:
            return fail(
                f"{interface.name}: +{errors.count} {way} errors, +{packets.count} packets in {errors.seconds / 60:.0f} min"
            )
        return None

    yield from each([(wanted, way) for wanted in expected.addresses for way in ("rx", "tx")], judge, "few")


def _percent(errors: int, packets: int) -> float:
    return 100 * errors / (errors + packets) if errors else 0.0


def bonded(expected: Expected) -> bool:
    return bool(expected.bonds)


@check(
    "fabric", "Every declared bond has all its members", reads=("network",), applies=bonded, remedy=CABLE,
    source="the site's options; StackHPC alert: bond degraded",
)  # fmt: skip
def bond_members(expected: Expected, document: Document) -> Iterator[Finding]:
    there: dict[str, Bond] = {bond.name: bond for bond in document.network.bonds}
    for bond, members in sorted(expected.bonds.items()):
        if bond not in there:
            yield fail(f"{bond} is missing")
            continue
        up = {member.name for member in there[bond].members if member.up}
        missing = sorted(set(members) - up)
        if missing:  # the others carry the traffic: a switch update takes one link of every node down
            some = Action.NONE if up else Action.DRAIN
            yield fail(f"{bond} has lost {', '.join(missing)}", some)
    yield good("complete")


def routed(expected: Expected) -> bool:
    return bool(expected.gateways)


@check(
    "fabric", "The default route goes to a declared gateway", reads=("network",), applies=routed, needs=("uplink",),
    remedy="Compare the routes with the cluster file.", source="the cluster file",
)  # fmt: skip
def default_route(expected: Expected, document: Document) -> Iterator[Finding]:
    there = document.network.default_gateways
    if not set(there) & set(expected.gateways):
        other = Action.NONE if there else Action.DRAIN
        yield fail(
            f"default route by {' '.join(there) or 'none'}, declared {' '.join(expected.gateways)}", other
        )
    yield good(" ".join(there))
