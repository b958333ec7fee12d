"""Names and paths of a rack's resources, derived from the rack's name alone."""

import hashlib
import os
import uuid
from pathlib import Path

RUNTIME = Path("/run/rackwright/lab")
"""State of what runs now; gone after a reboot, as are the processes it describes."""

NETNS = Path("/run/netns")
"""Where `ip netns` keeps its named namespaces."""

BRIDGE = "rack0"

# IFNAMSIZ is 16 with its closing zero.
_INTERFACE_LENGTH = 15
_MACHINES = uuid.UUID("6f2a3c52-0f1e-4d0b-9a3e-7b1c5d8e4a10")


def lab_dir() -> Path:
    """Root of what outlives a reboot: base images, the mirror's cache, disks of running nodes."""
    return Path(os.environ.get("RACKWRIGHT_LAB_DIR", "/var/lib/rackwright/lab"))


def rack_state(rack: str) -> Path:
    """Runtime state of one rack."""
    return RUNTIME / rack


def node_state(rack: str, node: str) -> Path:
    """Runtime state of one node."""
    return RUNTIME / rack / "nodes" / node


def rack_disks(rack: str) -> Path:
    """Folder of the disks of a rack's nodes."""
    return lab_dir() / "racks" / rack


def namespace(rack: str, node: str | None = None) -> str:
    """Network namespace of a rack's bridge or of a node; no name has a dot, so no two can be alike."""
    return f"rw-{rack}" if node is None else f"rw-{rack}.{node}"


def bmc_namespace(rack: str) -> str:
    """Network namespace of a rack's BMCs; with a second dot, which no node's has."""
    return f"rw-{rack}.bmcs.net"


def interface(kind: str, node: str) -> str:
    """Interface name for a node in the rack's namespace; long names are truncated and made unique with a hash."""
    name = f"{kind}-{node}"
    if len(name) <= _INTERFACE_LENGTH:
        return name
    digest = hashlib.sha256(node.encode()).hexdigest()[:6]
    return f"{name[: _INTERFACE_LENGTH - 7]}-{digest}"


def bridge(subnet: str) -> str:
    """Name of the bridge of a network other than the management network, independent of other networks."""
    return f"net-{hashlib.sha256(subnet.encode()).hexdigest()[:8]}"


def machine(rack: str, node: str) -> str:
    """Name of a node for systemd-nspawn, different in every rack and a valid host name label."""
    name = f"{rack}-{node}"
    if len(name) <= 40:
        return f"rw-{name}-{hashlib.sha256(f'{rack}.{node}'.encode()).hexdigest()[:6]}"
    return f"rw-{hashlib.sha256(f'{rack}.{node}'.encode()).hexdigest()[:32]}"


def mac(rack: str, node: str, side: str) -> str:
    """A stable, locally administered MAC address, so that a node keeps it when it is started again."""
    digest = hashlib.sha256(f"{rack}.{node}.{side}".encode()).hexdigest()
    return "02:" + ":".join(digest[i : i + 2] for i in range(0, 10, 2))


def port_mac(rack: str, node: str, number: int) -> str:
    """MAC address of a node's port: 0 is the management network's."""
    return mac(rack, node, f"node{number or ''}")


def serial_number(rack: str, node: str) -> str:
    """Serial number of a racked machine, as its firmware and its BMC print it."""
    return f"RW-{rack}-{node}"


def machine_uuid(rack: str, node: str) -> str:
    """UUID of a racked machine, as its firmware and its BMC print it."""
    return str(uuid.uuid5(_MACHINES, f"{rack}.{node}"))


def disk_serial(node: str, drive: str) -> str:
    """Serial number of a machine's disk; NVMe and virtio have room for 20 characters."""
    return f"{node[:12]}-{drive}"
