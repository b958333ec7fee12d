"""Requests for answers, for tests."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

from rackwright.install.installers.request import OsDisk, Request
from rackwright.model.install import DiskRule, Install, Installer
from rackwright.model.settings import Mirrors, Ssh
from rackwright.model.types import NodeRole
from rackwright.osfamily.known import os_release
from tests.factories import make_cluster, make_network, make_node

SESSION, RECOVERY, FOLDER = (
    "s3ss10n-of-this-run",
    "rec0very-of-this-node",
    "http://10.9.0.10:8480/r4nd0m-f0lder/",
)
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPk5tZOUybMSrPOOTAVmWKNCUykzK2rjVMXdGZJkJNRP"
HOSTILE = f'{KEY} O\'Neil; 100% "$(id)" `id` %end <<RACKWRIGHT_FILE \\ # |'
CA = "-----BEGIN CERTIFICATE-----\nTUlJQg==\n-----END CERTIFICATE-----\n"
_INSTALLERS = {one.value: one for one in Installer}


def make_request(os: str, **changes: Any) -> Request:
    """A request for one node; `changes` are of Install, of Request, or ssh, mirrors, gateway, mtu, arch."""
    release = os_release(os)
    cluster_changes: dict[str, Any] = {
        "ssh": changes.pop("ssh", Ssh(user="admin")),
        "mirrors": changes.pop("mirrors", Mirrors(dnf="http://mirror.example.com/os")),
        "networks": {
            "management": make_network(
                "management",
                "10.9.0.0/24",
                gateway=changes.pop("gateway", IPv4Address("10.9.0.1")),
                mtu=changes.pop("mtu", 1500),
            )
        },
    }
    of_request = {
        key: changes.pop(key) for key in ("admin_key", "disks", "nameservers", "media") if key in changes
    }
    letters = "ab" if changes.get("mirror") else "a"
    serials = tuple(f"SN-{letter.upper()}" for letter in letters)
    install = Install(
        installer=changes.pop("installer", _INSTALLERS[release.installer]),
        disk=DiskRule(serials=serials),
        **changes,
    )
    node = make_node("worker1", 11, os=release, mac="52:54:00:77:00:11", install=install)
    cluster = make_cluster(make_node("head1", 10, NodeRole.HEAD), node, **cluster_changes)
    disks = tuple(OsDisk(f"/dev/sd{letter}", f"SN-{letter.upper()}") for letter in letters)
    values: dict[str, Any] = {
        "disks": disks,
        "admin_key": f"{KEY} admin",
        "recovery": RECOVERY if changes.get("encryption") else None,
        **of_request,
    }
    return Request(
        cluster=cluster,
        node=node,
        run="k3x9ab12",
        head="https://10.9.0.10:8443",
        ca=CA,
        files_url=FOLDER,
        session=SESSION,
        **values,
    )
