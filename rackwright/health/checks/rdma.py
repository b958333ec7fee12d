"""Declared InfiniBand and RoCE ports; other ports of a node are ignored."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rackwright.health.checks import declared, scope
from rackwright.health.checks.declared import Port
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.history import DAY, HOUR, name, rising
from rackwright.health.records import Unreadable
from rackwright.health.registry import check, each
from rackwright.health.verdict import Action, Finding, fail, good, unknown, warn
from rackwright.status import Status

CABLE = "Reseat or replace the cable or transceiver, then try another switch port, then replace the NIC."
LINK_COUNTERS = {
    "symbol_error": ("ib_symbol_errors", HOUR),
    "link_error_recovery": ("ib_link_recoveries", HOUR),
    "link_downed": ("ib_link_downs", DAY),
    "local_link_integrity_errors": ("ib_integrity_errors", DAY),
}
"""Limit and window of each counter."""
FULL = {
    "symbol_error": 0xFFFF, "link_error_recovery": 0xFF, "link_downed": 0xFF, "local_link_integrity_errors": 0xF,
    "port_rcv_errors": 0xFFFF, "port_xmit_discards": 0xFFFF,
}  # fmt: skip
"""Largest value of each counter, by its width in PortCounters (Linux drivers/infiniband/core/sysfs.c); it saturates."""
FULL_MEMBER = 0x8000


@check(
    "fabric", "Every declared RDMA port is present", reads=("infiniband",), applies=scope.rdma, needs=("kernel-modules",), action=Action.REBOOT,
    remedy="Reboot once, then reseat the NIC.", source="the declared SKU; gpud infiniband; ClusterMAX",
)  # fmt: skip
def rdma_ports(expected: Expected, document: Document) -> Iterator[Finding]:
    count = 0
    for kind in declared.LAYERS:
        wanted = sum(entry.count for entry in expected.ports_of(kind))
        found = len(declared.ports_of_kind(expected, document, kind))
        count += found
        if found < wanted:
            yield fail(f"{found} of {wanted} declared {kind} ports found")
        if kind in expected.unknown_ports:
            yield unknown(declared.undeclared(expected, kind))
    yield good(f"{count} ports")


@check(
    "fabric", "Every declared RDMA port is up", reads=("infiniband",), applies=scope.rdma, needs=("kernel-modules",), remedy=CABLE,
    source="Azure ai-infrastructure-on-azure: state 4 ACTIVE, phys_state 5 LinkUp",
)  # fmt: skip
def rdma_active(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(one: Port) -> Finding | None:
        if one.port.state == "ACTIVE" and one.port.physical == "LinkUp":
            return None
        return fail(
            f"{one.label} is {one.port.state}/{one.port.physical}, declared {one.speed_gbps} Gb/s {one.kind}"
        )

    yield from each(declared.ports(expected, document), judge, "all up")


@check(
    "fabric", "Every RDMA port runs at its declared speed", reads=("infiniband",), applies=scope.rdma, needs=("kernel-modules",), remedy=CABLE,
    source="the declared SKU; Azure ai-infrastructure-on-azure",
)  # fmt: skip
def rdma_rate(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(one: Port) -> Finding | None:
        if one.port.rate_gbps >= one.speed_gbps:
            return None
        return fail(f"{one.label} runs at {one.port.rate_gbps:g} of {one.speed_gbps} Gb/s")

    yield from each(declared.ports(expected, document), judge, "as declared")


def counted(document: Document, one: Port, counter: str, most: float, window: float) -> Finding | None:
    """Judge the increase of a counter. A saturated counter has stopped counting; its errors may be a year old."""
    counts = one.port.counters
    if counter not in counts:
        raise Unreadable(f"{one.label} does not count {counter}")
    value = counts[counter]
    key = name("ib", one.device.name, one.port.port, counter)
    found = rising(document, f"{one.label}: {counter}", key, value, most, window)
    if value == FULL[counter] and (found is None or found.status is not Status.FAIL):
        return warn(
            f"{one.label}: {counter} is saturated at {value} and no longer counts; clear it with perfquery -R"
        )
    return found


@check(
    "fabric", "RDMA links have few errors", reads=("infiniband", "history"), applies=scope.rdma, needs=("kernel-modules",),
    limits=tuple(limit for limit, _ in LINK_COUNTERS.values()), remedy=CABLE,
    source="InfiniBand: bit error rate of 1e-12; NVIDIA NVSentinel, NIC health monitor",
)  # fmt: skip
def rdma_link_errors(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(pair: tuple[Port, str]) -> Finding | None:
        limit, window = LINK_COUNTERS[pair[1]]
        return counted(document, *pair, expected.limit(limit), window)

    there = declared.ports(expected, document)
    yield from each([(one, counter) for one in there for counter in LINK_COUNTERS], judge, "no error")


@check(
    "fabric", "RDMA ports receive few bad packets", reads=("infiniband", "history"), applies=scope.rdma, needs=("kernel-modules",),
    limits=("ib_receive_errors",), remedy=CABLE, source="ai-infrastructure-on-azure ib_link_validation",
)  # fmt: skip
def rdma_traffic_errors(expected: Expected, document: Document) -> Iterator[Finding]:
    most = expected.limit("ib_receive_errors")
    there = declared.ports(expected, document)
    yield from each(there, lambda one: counted(document, one, "port_rcv_errors", most, HOUR), "few errors")


@check(
    "fabric", "RDMA ports discard few packets", reads=("infiniband", "history"), applies=scope.rdma, needs=("kernel-modules",), action=Action.NONE,
    limits=("ib_transmit_discards",), remedy="Look for fabric congestion and for a receiver that stalls.",
    source="ai-infrastructure-on-azure ib_link_validation",
)  # fmt: skip
def rdma_discards(expected: Expected, document: Document) -> Iterator[Finding]:
    most = expected.limit("ib_transmit_discards")
    there = declared.ports(expected, document)
    yield from each(
        there, lambda one: counted(document, one, "port_xmit_discards", most, HOUR), "few packets"
    )


@check(
    "fabric", "Every InfiniBand port has a LID and a subnet manager", reads=("infiniband",), applies=scope.infiniband, needs=("kernel-modules",),
    remedy="Check that a subnet manager runs (`sminfo`), then check the cable.", source="InfiniBand: LID and SM LID are assigned by the SM",
)  # fmt: skip
def ib_subnet(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(one: Port) -> Finding | None:
        if one.port.state != "ACTIVE" or (one.port.lid not in (0, 0xFFFF) and one.port.sm_lid != 0):
            return None
        return fail(f"{one.label}: LID {one.port.lid}, subnet manager at LID {one.port.sm_lid}")

    yield from each(declared.ports(expected, document, "infiniband"), judge, "known")


@check(
    "fabric", "Every InfiniBand port is a full member of its partition", reads=("infiniband",), applies=scope.infiniband, needs=("kernel-modules",),
    remedy="Correct the subnet manager's partitions.conf.", source="ai-infrastructure-on-azure; ClusterMAX PKey",
)  # fmt: skip
def ib_pkeys(expected: Expected, document: Document) -> Iterator[Finding]:
    wanted = {int(key, 16) for key in expected.pkeys}

    def judge(one: Port) -> Finding | None:
        there = {int(key, 16) for key in one.port.pkeys}
        missing = sorted(wanted - there)
        if missing:
            return fail(f"{one.label} lacks partition key " + ", ".join(f"0x{key:04x}" for key in missing))
        if not any(key & FULL_MEMBER for key in there):
            return fail(
                f"{one.label} is not a full member of any partition; partition keys: {' '.join(one.port.pkeys) or 'none'}"
            )
        return None

    yield from each(declared.ports(expected, document, "infiniband"), judge, "full members")


@check(
    "fabric", "Every RDMA device has a unique GUID", reads=("infiniband",), applies=scope.rdma, needs=("kernel-modules",),
    remedy="Burn the NIC's GUID again (mstflint) or replace it.", source="InfiniBand: GUIDs are unique in a subnet",
)  # fmt: skip
def rdma_guids(expected: Expected, document: Document) -> Iterator[Finding]:
    guids = [(device.node_guid, device.name) for device in declared.devices(expected, document)]
    for guid, device in guids:
        if not re.fullmatch("[0-9a-f]{4}(:[0-9a-f]{4}){3}", guid):
            yield unknown(f"{device} has an invalid GUID: {guid}")
        elif not guid.replace(":", "").strip("0"):
            yield fail(f"{device} has no GUID")
        elif [other for other, _ in guids].count(guid) > 1:
            yield fail(f"{device} shares GUID {guid}")
    yield good(f"{len(guids)} GUIDs")


@check(
    "fabric", "Every RoCE port has a RoCE v2 address", reads=("infiniband",), applies=scope.roce, needs=("kernel-modules",),
    remedy="Restore the interface's address; NCCL needs the GID.", source="NCCL: NCCL_IB_GID_INDEX, RoCE v2",
)  # fmt: skip
def roce_gids(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(one: Port) -> Finding | None:
        good_ones = [
            g
            for g in one.port.gids
            if g.type == "RoCE v2" and g.gid.startswith("0000:0000:0000:0000:0000:ffff:")
        ]
        return None if good_ones else fail(f"{one.label} has no RoCE v2 GID with an IPv4 address")

    yield from each(declared.ports(expected, document, "roce"), judge, "there")


@check(
    "fabric", "RDMA devices of a board type run one firmware version, the declared one if the site declares it", reads=("infiniband",), applies=scope.rdma, needs=("kernel-modules",),
    action=Action.NONE, remedy="Update the firmware (mstflint), then reset the NIC or reboot.",
    source="imbue cluster-health: flint firmware; ClusterMAX minimum versions",
)  # fmt: skip
def rdma_firmware(expected: Expected, document: Document) -> Iterator[Finding]:
    versions: dict[str, set[str]] = {}
    for device in declared.devices(expected, document):
        versions.setdefault(device.board, set()).add(device.firmware)
    for board, there in sorted(versions.items()):
        wanted = expected.nic_firmware.get(board)
        if wanted is not None and there != {wanted}:
            yield fail(f"{board} runs {' '.join(sorted(there))}, declared {wanted}")
        elif len(there) > 1:
            yield fail(f"{board} runs mixed firmware: {' '.join(sorted(there))}")
    yield good("; ".join(f"{board} {' '.join(there)}" for board, there in sorted(versions.items())))
