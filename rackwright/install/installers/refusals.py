"""What an installer cannot do, so that a node is refused before anything is armed."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.errors import InstallError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.install import Encryption, Install, Installer, Volumes

Refusal = tuple[str, str]
"""A full sentence, and what to do."""


def refuse(cluster: Cluster, node: Node) -> None:
    """Raise InstallError with every reason why the node's declared installer cannot install it."""
    found = list(refusals(cluster, node))
    if found:
        raise InstallError(
            "\n".join(message for message, _ in found),
            hint="; ".join(dict.fromkeys(hint for _, hint in found)),
        )


def refusals(cluster: Cluster, node: Node) -> Iterator[Refusal]:
    """Each reason, with a hint; none for a node that declares no installer."""
    install = node.install
    if install is None or install.installer is None:
        return
    if install.installer.value != node.os.installer:
        yield (
            f"{node.name} runs {node.os}, whose installer reads no {install.installer}.",
            f"`installer: {node.os.installer}`",
        )
    yield from _network(cluster, node, install)
    yield from _of_installer(cluster, node, install)


def _network(cluster: Cluster, node: Node, install: Install) -> Iterator[Refusal]:
    if node.mac is None:
        yield f"The MAC address of {node.name} is not declared.", "add `macs:` or `machines:`"
    boot = cluster.boot_network
    if boot is not None and boot.network != cluster.management.name:
        yield (
            (
                f"{node.name} would be installed over the network {boot.network}, and an installer configures one network: "
                f"{cluster.management.name}."
            ),
            f"`boot_network: {{network: {cluster.management.name}}}`, or declare an image",
        )
    if install.vlan is not None and install.installer is not Installer.KICKSTART:
        yield (
            (
                f"{node.name} has its management network in VLAN {install.vlan}, tagged, and the initramfs of {node.os}'s "
                "installer has no VLANs."
            ),
            "make the VLAN the port's untagged one, or declare an image",
        )
    if node.sku.cpu_architecture != "x86_64":
        yield (
            f"{node.name} is {node.sku.cpu_architecture}; answers are made for x86_64 alone.",
            "declare an image",
        )


def _of_installer(cluster: Cluster, node: Node, install: Install) -> Iterator[Refusal]:
    if install.installer is Installer.KICKSTART and cluster.mirrors.dnf is None:
        yield (
            f"{node.name} needs a mirror of {node.os} to be installed from.",
            "`mirrors: {dnf: http://mirror.example.com/os}`",
        )
    if install.installer is Installer.PRESEED and install.encryption is not Encryption.NONE:
        if install.mirror:
            yield (
                f"{node.name} declares an encrypted mirror, and partman of {node.os} encrypts no array.",
                "`mirror: false`, `encryption: none`, or declare an image",
            )
        elif install.volumes is not Volumes.LVM:
            yield (
                (
                    f"{node.name} declares an encrypted root without volumes, and partman of {node.os} puts LVM on what it "
                    "encrypts."
                ),
                "`volumes: lvm`",
            )
