"""InfiniBand and RoCE ports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rackwright.health.checks import scope
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.node_records import RdmaDevice, RdmaPort
from rackwright.health.records import Unreadable
from rackwright.health.registry import check, each
from rackwright.health.verdict import Action, Finding, fail, good, unknown, warn

CABLE = "Reseat or replace the cable or transceiver; then the switch port; then the NIC."
LAYERS = {"infiniband": "InfiniBand", "roce": "Ethernet"}
LINK_COUNTERS = ("symbol_error", "link_error_recovery", "link_downed")
FULL_MEMBER = 0x8000


@dataclass(frozen=True)
class Port:
    """A port with its device."""

    device: RdmaDevice
    port: RdmaPort

    @property
    def label(self) -> str:
        return f"{self.device.name}/{self.port.port}"


def ports(document: Document, layer: str | None = None) -> list[Port]:
    """Every port there is, of one link layer or of any."""
    found = [Port(device, port) for device in document.infiniband.devices for port in device.ports]
    return [one for one in found if layer is None or one.port.layer == layer]


def some(document: Document, layer: str | None = None) -> list[Port]:
    found = ports(document, layer)
    if not found:
        raise Unreadable("there is no RDMA port" if layer is None else f"there is no RDMA port over {layer}")
    return found


def up(document: Document) -> list[Port]:
    """Ports that are in use; a down one is another check's affair."""
    return [one for one in some(document) if one.port.state == "ACTIVE"]


def declared(expected: Expected, kind: str) -> int:
    return sum(entry.count for entry in expected.ports_of(kind))


@check(
    "fabric", "Every declared RDMA port is there", reads=("infiniband",), applies=scope.rdma, action=Action.REBOOT,
    remedy="Reboot once; then reseat the NIC.", source="the declared SKU; gpud infiniband; ClusterMAX",
)  # fmt: skip
def rdma_ports(expected: Expected, document: Document) -> Iterator[Finding]:
    for kind, layer in LAYERS.items():
        wanted, found = declared(expected, kind), len(ports(document, layer))
        if found < wanted:
            yield fail(f"{found} of {wanted} {kind} ports are there")
    yield good(f"{len(ports(document))} ports")


@check(
    "fabric", "Every declared RDMA port is up", reads=("infiniband",), applies=scope.rdma, remedy=CABLE,
    source="Azure ai-infrastructure-on-azure: state 4 ACTIVE, phys_state 5 LinkUp",
)  # fmt: skip
def rdma_active(expected: Expected, document: Document) -> Iterator[Finding]:
    for kind, layer in LAYERS.items():
        wanted = declared(expected, kind)
        there = ports(document, layer)
        down = [one for one in there if one.port.state != "ACTIVE" or one.port.physical != "LinkUp"]
        if len(there) - len(down) < wanted:
            told = ", ".join(f"{one.label} {one.port.state}/{one.port.physical}" for one in down)
            yield fail(
                f"{len(there) - len(down)} of {wanted} {kind} ports are up; {told or 'others missing'}"
            )
    yield good("all up")


@check(
    "fabric", "Every RDMA port runs at its declared speed", reads=("infiniband",), applies=scope.rdma, remedy=CABLE,
    source="the declared SKU; Azure ai-infrastructure-on-azure",
)  # fmt: skip
def rdma_rate(expected: Expected, document: Document) -> Iterator[Finding]:
    for kind, layer in LAYERS.items():
        wanted = sorted((e.speed_gbps for e in expected.ports_of(kind) for _ in range(e.count)), reverse=True)
        there = sorted(ports(document, layer), key=lambda one: -one.port.rate_gbps)
        if len(there) < len(wanted):
            yield unknown(f"{len(there)} of {len(wanted)} {kind} ports tell a speed")
        for one, speed in zip(there, wanted):  # noqa: B905
            if one.port.rate_gbps < speed:
                yield fail(f"{one.label} runs at {one.port.rate_gbps:g} of {speed} Gb/s")
    yield good("as declared")


@check(
    "fabric", "RDMA links are clean", reads=("infiniband",), applies=scope.rdma,
    limits=("ib_link_errors", "ib_link_errors_fail"), remedy=CABLE, source="ai-infrastructure-on-azure ib_link_validation",
)  # fmt: skip
def rdma_link_errors(expected: Expected, document: Document) -> Iterator[Finding]:
    few, most = expected.limit("ib_link_errors"), expected.limit("ib_link_errors_fail")

    def judge(one: Port) -> Finding | None:
        bad = {name: counter(one, name) for name in LINK_COUNTERS}
        told = one.label + ": " + ", ".join(f"{name} {count}" for name, count in bad.items() if count)
        if max(bad.values()) > most:
            return fail(told)
        return warn(told) if max(bad.values()) > few else None

    yield from each(some(document), judge, "no error")


def counter(one: Port, name: str) -> int:
    counts = one.port.counters
    if name not in counts:
        raise Unreadable(f"{one.label} does not count {name}")
    return counts[name]


@check(
    "fabric", "RDMA ports receive and send what they should", reads=("infiniband",), applies=scope.rdma,
    limits=("ib_receive_errors", "ib_transmit_discards"), remedy=CABLE + " Discards: look for congestion.",
    source="ai-infrastructure-on-azure ib_link_validation",
)  # fmt: skip
def rdma_traffic_errors(expected: Expected, document: Document) -> Iterator[Finding]:
    most = {
        "port_rcv_errors": expected.limit("ib_receive_errors"),
        "port_xmit_discards": expected.limit("ib_transmit_discards"),
    }

    def judge(one: Port) -> Finding | None:
        bad = {name: counter(one, name) for name in most}
        told = [f"{name} {bad[name]} (most {most[name]:.0f})" for name in most if bad[name] > most[name]]
        return fail(f"{one.label}: {', '.join(told)}") if told else None

    yield from each(some(document), judge, "few errors")


@check(
    "fabric", "Every InfiniBand port knows the subnet manager", reads=("infiniband",), applies=scope.infiniband,
    remedy="Is a subnet manager running (`sminfo`)? Then the cable.", source="InfiniBand: LID and SM LID are assigned by the SM",
)  # fmt: skip
def ib_subnet(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(one: Port) -> Finding | None:
        if one.port.state != "ACTIVE" or (one.port.lid not in (0, 0xFFFF) and one.port.sm_lid != 0):
            return None
        return fail(f"{one.label}: LID {one.port.lid}, subnet manager at LID {one.port.sm_lid}")

    yield from each(some(document, "InfiniBand"), judge, "known")


@check(
    "fabric", "Every InfiniBand port is a full member of its partition", reads=("infiniband",), applies=scope.infiniband,
    remedy="Correct partitions.conf of the subnet manager.", source="ai-infrastructure-on-azure; ClusterMAX PKey",
)  # fmt: skip
def ib_pkeys(expected: Expected, document: Document) -> Iterator[Finding]:
    wanted = {int(key, 16) for key in expected.pkeys}

    def judge(one: Port) -> Finding | None:
        there = {int(key, 16) for key in one.port.pkeys}
        missing = sorted(wanted - there)
        if missing:
            return fail(f"{one.label} lacks partition key " + ", ".join(f"0x{key:04x}" for key in missing))
        if not any(key & FULL_MEMBER for key in there):
            return fail(f"{one.label} is a full member of no partition: {' '.join(one.port.pkeys) or 'none'}")
        return None

    yield from each(some(document, "InfiniBand"), judge, "full members")


@check(
    "fabric", "Every RDMA device has its own GUID", reads=("infiniband",), applies=scope.rdma,
    remedy="Burn the NIC's GUID again (mstflint) or replace it.", source="InfiniBand: GUIDs are unique in a subnet",
)  # fmt: skip
def rdma_guids(expected: Expected, document: Document) -> Iterator[Finding]:
    guids = [(device.node_guid, device.name) for device in document.infiniband.devices]
    if not guids:
        raise Unreadable("there is no RDMA device")
    for guid, name in guids:
        if not re.fullmatch("[0-9a-f]{4}(:[0-9a-f]{4}){3}", guid):
            yield unknown(f"{name} tells a GUID that is none: {guid}")
        elif not guid.replace(":", "").strip("0"):
            yield fail(f"{name} has no GUID")
        elif [other for other, _ in guids].count(guid) > 1:
            yield fail(f"{name} shares GUID {guid}")
    yield good(f"{len(guids)} GUIDs")


@check(
    "fabric", "Every RoCE port has a RoCE v2 address", reads=("infiniband",), applies=scope.roce,
    remedy="Give the interface its address again; NCCL needs the GID.", source="NCCL: NCCL_IB_GID_INDEX, RoCE v2",
)  # fmt: skip
def roce_gids(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(one: Port) -> Finding | None:
        good_ones = [
            g
            for g in one.port.gids
            if g.type == "RoCE v2" and g.gid.startswith("0000:0000:0000:0000:0000:ffff:")
        ]
        return None if good_ones else fail(f"{one.label} has no RoCE v2 GID with an IPv4 address")

    yield from each(some(document, "Ethernet"), judge, "there")


@check(
    "fabric", "Equal RDMA devices run one firmware, the declared one if any is", reads=("infiniband",), applies=scope.rdma,
    action=Action.REBOOT, remedy="Update the firmware (mstflint), then reset the NIC or reboot.",
    source="imbue cluster-health: flint firmware; ClusterMAX minimum versions",
)  # fmt: skip
def rdma_firmware(expected: Expected, document: Document) -> Iterator[Finding]:
    versions: dict[str, set[str]] = {}
    for device in document.infiniband.devices:
        versions.setdefault(device.board, set()).add(device.firmware)
    if not versions:
        raise Unreadable("there is no RDMA device")
    for board, there in sorted(versions.items()):
        wanted = expected.nic_firmware.get(board)
        if wanted is not None and there != {wanted}:
            yield fail(f"{board} runs {' '.join(sorted(there))}, declared is {wanted}")
        elif len(there) > 1:
            yield fail(f"{board} runs different firmware: {' '.join(sorted(there))}")
    yield good("; ".join(f"{board} {' '.join(there)}" for board, there in sorted(versions.items())))
