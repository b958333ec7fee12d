"""Encrypts the root so that it unlocks itself: bound to the machine's TPM or to a Tang server, with clevis.

Debian's initramfs-tools cannot use systemd-cryptenroll's enrolment; clevis-initramfs unlocks with TPM 2 and Tang
(clevis-luks-unlockers(7), read 2026-11-27).
"""

from __future__ import annotations

import json
import os
from ipaddress import IPv4Interface

from rackwright.install.agent import boot, layout, tree
from rackwright.install.agent.disks import TARGET
from rackwright.install.agent.guard import Network
from rackwright.install.agent.inside import run_inside
from rackwright.install.agent.order import Encryption, Order

_KEY = "/run/rackwright-recovery"
"""Key file on a tmpfs inside the node's root, only while the key is bound."""
_SECONDS = 900.0

NEEDED = (
    ("cryptsetup", "cryptsetup-initramfs"),
    ("clevis-luks-bind", "clevis-luks"),
    ("update-initramfs", "initramfs-tools"),
)
_PIN_NEEDED = {"tpm2": ("clevis-encrypt-tpm2", "clevis-tpm2"), "tang": ("clevis-encrypt-tang", "clevis")}


def needed(encryption: Encryption) -> list[tuple[str, str]]:
    """Required programs of the image and their packages."""
    return [*NEEDED, _PIN_NEEDED[encryption.kind]]


def crypttab(uuid: str) -> str:
    """/etc/crypttab."""
    return f"{layout.CRYPT} UUID={uuid} none luks,discard,initramfs\n"


def pin(encryption: Encryption) -> tuple[str, str]:
    """clevis pin and configuration; contains no secret."""
    if encryption.kind == "tpm2":
        # PCR 7 measures the Secure Boot policy. It does not change when kernels and boot loaders are updated.
        return "tpm2", json.dumps({"pcr_bank": "sha256", "pcr_ids": "7"})
    settings = {"url": encryption.tang}
    if encryption.thumbprint:
        settings["thp"] = encryption.thumbprint
    return "tang", json.dumps(settings)


def network_argument(network: Network, interface: str) -> str:
    """Kernel arguments that let the initramfs reach a Tang server; initramfs-tools(7), `ip=` and `vlan=`."""
    device = interface if network.vlan is None else f"vlan{network.vlan}"
    vlan = "" if network.vlan is None else f" vlan={device}:{interface}"
    if network.address is None:
        return f"ip=:::::{device}:dhcp{vlan}"
    address = IPv4Interface(network.address)
    return f"ip={address.ip}::{network.gateway or ''}:{address.netmask}::{device}:none{vlan}"


def bind(order: Order) -> None:
    """Bind the root's key, and build the initramfs that unlocks it."""
    assert order.encryption is not None
    device = layout.crypt_device(order)
    tree.put(TARGET, "/etc/crypttab", crypttab(boot.uuid_of(device)))
    name, settings = pin(order.encryption)
    trusted = ["-y"] if name == "tang" else []  # accept the Tang server's keys without a prompt
    descriptor = os.open(TARGET + _KEY, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(order.encryption.recovery_key)
        bound = ["clevis", "luks", "bind", "-f", *trusted, "-k", _KEY, "-d", device, name, settings]
        run_inside(bound, _SECONDS)
    finally:
        os.unlink(TARGET + _KEY)
    run_inside(["update-initramfs", "-u", "-k", "all"], _SECONDS)
