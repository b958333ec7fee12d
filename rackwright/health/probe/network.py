"""InfiniBand and RoCE ports, Ethernet interfaces, bonds and addresses."""

from __future__ import annotations

import json
from typing import Any

from rackwright.health.probe.source import Source, Unavailable, integer, number, patience

RDMA = "/sys/class/infiniband"
NET = "/sys/class/net"
COUNTERS = (
    "symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "port_xmit_discards",
    "local_link_integrity_errors",
)  # fmt: skip
GIDS_READ = 16
EMPTY_GID = "0000:0000:0000:0000:0000:0000:0000:0000"


def infiniband(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """Every RDMA device and port of the hardware."""
    return {"devices": [rdma_device(source, name) for name in rdma_names(source)]}


def rdma_names(source: Source) -> list[str]:
    """RDMA devices without virtual functions; a port may have hundreds of them.

    Virtual functions have a link `physfn` (Linux, Documentation/ABI/testing/sysfs-bus-pci, read 2026-11-23). A container
    that has only virtual functions keeps them.
    """
    names = source.names(RDMA)
    physical = [name for name in names if not source.exists(f"{RDMA}/{name}/device/physfn")]
    return physical or names


def rdma_device(source: Source, name: str) -> dict[str, Any]:
    at = f"{RDMA}/{name}"
    where = source.target(at + "/device")
    return {
        "name": name,
        "address": where.rsplit("/", 1)[-1] if where else None,
        "board": source.maybe(at + "/board_id"),
        "firmware": source.maybe(at + "/fw_ver"),
        "node_guid": source.maybe(at + "/node_guid"),
        "ports": [rdma_port(source, at, port) for port in source.names(at + "/ports")],
    }


def rdma_port(source: Source, at: str, port: str) -> dict[str, Any]:
    at = f"{at}/ports/{port}"
    pkeys = [source.maybe(f"{at}/pkeys/{name}") for name in source.names(at + "/pkeys")]
    return {
        "port": integer(port),
        "state": (source.maybe(at + "/state") or "").partition(": ")[2] or None,
        "physical": (source.maybe(at + "/phys_state") or "").partition(": ")[2] or None,
        "rate_gbps": number(source.maybe(at + "/rate")),
        "layer": source.maybe(at + "/link_layer"),
        "lid": hexadecimal(source.maybe(at + "/lid")),
        "sm_lid": hexadecimal(source.maybe(at + "/sm_lid")),
        "pkeys": sorted({key for key in pkeys if key and key != "0x0000"}),
        "gids": gids(source, at),
        "counters": counters(source, at),
    }


def counters(source: Source, at: str) -> dict[str, int]:
    """The counters of a port; a NIC without a performance agent prints `N/A (no PMA)`."""
    found = {name: integer(source.maybe(f"{at}/counters/{name}")) for name in COUNTERS}
    return {name: value for name, value in found.items() if value is not None}


def gids(source: Source, at: str) -> list[dict[str, Any]]:
    """The first GIDs that are set, with their type and interface."""
    found = []
    for name in sorted(source.names(at + "/gids"), key=lambda name: integer(name) or 0)[:GIDS_READ]:
        gid = source.maybe(f"{at}/gids/{name}")
        if gid and gid != EMPTY_GID:
            kind = source.maybe(f"{at}/gid_attrs/types/{name}")
            interface = source.maybe(f"{at}/gid_attrs/ndevs/{name}")
            found.append({"index": integer(name), "gid": gid, "type": kind, "interface": interface})
    return found


def hexadecimal(text: str | None) -> int | None:
    try:
        return int(text, 16) if text else None
    except ValueError:
        return None


def network(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """Every hardware interface and bond with its addresses, and the default route."""
    addresses = parse_addresses(source.run(["ip", "-j", "addr", "show"], patience(request, 3.0)))
    return {
        "interfaces": [
            interface(source, name, addresses.get(name, []))
            for name in source.names(NET)
            if name != "lo" and source.exists(f"{NET}/{name}/operstate")
        ],
        "bonds": [bond(source, name) for name in source.names("/proc/net/bonding")],
        "default_gateways": default_gateways(source.text("/proc/net/route")),
    }


def parse_addresses(text: str) -> dict[str, list[str]]:
    """Read `ip -j addr show`: IPv4 addresses by interface."""
    try:
        return {
            entry["ifname"]: [
                one["local"] for one in entry.get("addr_info", []) if one.get("family") == "inet"
            ]
            for entry in json.loads(text)
            if entry
        }
    except (ValueError, KeyError, TypeError) as error:
        raise Unavailable(f"`ip -j addr show` did not print its JSON: {error!r}") from None


def interface(source: Source, name: str, addresses: list[str]) -> dict[str, Any]:
    at = f"{NET}/{name}"
    where = source.target(at + "/device")
    master = source.target(at + "/master")
    speed = integer(source.maybe(at + "/speed"))  # reading it fails while the link is down
    return {
        "name": name,
        "address": where.rsplit("/", 1)[-1] if where else None,
        "state": source.maybe(at + "/operstate"),
        "carrier": {"1": True, "0": False}.get(source.maybe(at + "/carrier") or ""),
        "speed_mbps": speed if speed is not None and speed > 0 else None,
        "mtu": integer(source.maybe(at + "/mtu")),
        "mac": source.maybe(at + "/address"),
        "master": master.rsplit("/", 1)[-1] if master else None,
        "carrier_changes": integer(source.maybe(at + "/carrier_changes")),
        "statistics": {
            key: integer(source.maybe(f"{at}/statistics/{key}"))
            for key in ("rx_packets", "tx_packets", "rx_errors", "tx_errors", "rx_dropped")
        },
        "ipv4": addresses,
    }


def bond(source: Source, name: str) -> dict[str, Any]:
    """One file of /proc/net/bonding."""
    mode: str | None = None
    members: list[dict[str, Any]] = []
    member: dict[str, Any] | None = None
    for line in source.text("/proc/net/bonding/" + name).splitlines():
        key, _, value = (part.strip() for part in line.partition(": "))
        if key == "Bonding Mode":
            mode = value
        elif key == "Slave Interface":
            member = {"name": value, "up": None, "failures": None}
            members.append(member)
        elif member is not None and key == "MII Status":
            member["up"] = value == "up"
        elif member is not None and key == "Link Failure Count":
            member["failures"] = integer(value)
    return {"name": name, "mode": mode, "members": members}


def default_gateways(text: str) -> list[str]:
    """Read /proc/net/route: gateways of default routes."""
    found = []
    for line in text.splitlines()[1:]:
        fields = line.split()
        if (
            len(fields) > 7
            and fields[1] == "00000000"
            and fields[7] == "00000000"
            and fields[2] != "00000000"
        ):
            raw = bytes.fromhex(fields[2])
            found.append(".".join(str(byte) for byte in reversed(raw)))
    return found
