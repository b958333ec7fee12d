"""A small site for the tests of installations: nodes with BMCs, what their agents find, an image."""

from __future__ import annotations

import base64
import hashlib
import json
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from rackwright.install.image import RootImage, read_image
from rackwright.install.inventory import Inventory, read_inventory
from rackwright.model.bmc import Bmc
from rackwright.model.cluster import Cluster, Node
from rackwright.model.install import BootNetwork, DiskRule, Install
from rackwright.model.types import NodeRole, Platform
from tests.factories import make_cluster, make_node

GPT, EXT4 = "/dev/sda:gpt:1f0c", "/dev/sda1:ext4:data"
HOST_KEY = "ssh-ed25519 " + base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + b"k" * 32).decode()
IMAGE = bytes(range(256)) * 64


def mac(number: int) -> str:
    """The MAC of a worker's port."""
    return f"02:00:00:00:00:{number:02x}"


def make_image(folder: Path, content: bytes = IMAGE, os: str = "debian-13") -> RootImage:
    """A root image in a folder, which is small and not really one."""
    (folder / "etc").mkdir(parents=True, exist_ok=True)
    (folder / "root.tar.zst").write_bytes(content)
    for name, text in {
        "passwd": "root:x:0:0::/root:/bin/bash\n",
        "group": "root:x:0:\nshadow:x:42:\n",
    }.items():
        (folder / "etc" / name).write_text(text)
    for name in ("shadow", "gshadow"):
        (folder / "etc" / name).write_text(
            "root:*:20000:0:99999:7:::\n" if name == "shadow" else "root:*::\n"
        )
    digest = hashlib.sha256(content).hexdigest()
    files = [{"name": "root.tar.zst", "bytes": len(content), "sha256": digest}]
    (folder / "manifest.json").write_text(json.dumps({"os": os, "group": "worker1", "files": files}))
    return read_image(folder)


def make_worker(number: int = 1, image: Path | None = Path("/nowhere/image"), **changes: Any) -> Node:
    """worker<number>, with a BMC and an installation on the disk DISK-<number>."""
    install = Install(image=image, disk=DiskRule(serials=(f"DISK-{number}",)), secure_boot=False)
    fields: dict[str, Any] = {
        "platform": Platform.BARE_METAL,
        "mac": mac(number),
        "serial": f"SN-{number}",
        "bmc": Bmc(address=IPv4Address(f"10.8.0.{number}"), user="admin", password="bmc_password"),
        "install": install,
    }
    return make_node(f"worker{number}", 10 + number, **{**fields, **changes})


def changed(node: Node, **changes: Any) -> Node:
    """The node with another installation."""
    assert node.install is not None
    return node.model_copy(update={"install": node.install.model_copy(update=changes)})


def make_boot_network(port: int = 8443, **changes: Any) -> BootNetwork:
    """Where agents reach the head: 127.0.0.1 itself."""
    here = IPv4Address("127.0.0.1")
    return BootNetwork(
        **{"network": "management", "server": here, "bmc_server": here, "port": port, **changes}
    )


def make_site(*nodes: Node, network: BootNetwork | None = None) -> Cluster:
    """A cluster of these nodes behind a head."""
    head = make_node("head1", 10, NodeRole.HEAD, platform=Platform.BARE_METAL)
    return make_cluster(head, *nodes, boot_network=network or make_boot_network())


def disk(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A disk as an agent reports it."""
    found: dict[str, Any] = {
        "path": "/dev/sda",
        "serial": f"DISK-{number}",
        "wwn": None,
        "model": "Example 480",
        "size_bytes": 480 * 10**9,
        "rotational": False,
        "read_only": False,
        "by_path": ["pci-0000:00:17.0-ata-1"],
        "pci": "0000:00:17.0",
        "signatures": [],
    }
    return {**found, **changes}


def document(number: int = 1, *disks: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The inventory of worker<number>'s machine as its agent posts it."""
    found: dict[str, Any] = {
        "version": 1,
        "dmi": {"product_uuid": f"uuid-{number}", "product_serial": f"SN-{number}", "sys_vendor": "Example"},
        "memory_kib": 2048 * 1024 - 100_000,
        "cpus": 2,
        "cpu_model": "Example CPU",
        "sockets": 1,
        "efi": True,
        "secure_boot": False,
        "tpm": None,
        "clock": 1.0e9,
        "kernel": "6.12.57",
        "nics": [
            {"name": "eno1", "mac": mac(number), "pci": "0000:01:00.0", "driver": "igb", "carrier": True}
        ],
        "disks": list(disks or (disk(number),)),
        "pci": [{"address": "0000:01:00.0", "vendor": "8086", "device": "1521", "class": "0200"}],
        "gpus": 0,
    }
    return {**found, **changes}


def inventory(number: int = 1, *disks: dict[str, Any], **changes: Any) -> Inventory:
    """The same, read."""
    return read_inventory(document(number, *disks, **changes))
