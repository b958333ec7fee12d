"""What an installer cannot do, so that a node is refused before any machine is armed."""

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
    """Each reason with a hint; none for a node without an installer."""
    install = node.install
    if install is None or install.installer is None:
        return
    if install.installer.value != node.os.installer:
        yield (
            f"{node.name} runs {node.os}, whose installer does not support {install.installer}.",
            f"set `installer: {node.os.installer}`",
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
                f"{node.name} would be installed over the network {boot.network}, but an installer configures only one network: "
                f"{cluster.management.name}."
            ),
            f"set `boot_network: {{network: {cluster.management.name}}}`, or declare an image",
        )
    if install.vlan is not None and install.installer is not Installer.KICKSTART:
        yield (
            (
                f"{node.name} has its management network on the tagged VLAN {install.vlan}, but the initramfs of {node.os}'s "
                "installer does not support VLANs."
            ),
            "make it the port's untagged VLAN, or declare an image",
        )
    if node.sku.cpu_architecture != "x86_64":
        yield (
            f"{node.name} is {node.sku.cpu_architecture}, but installers are supported only on x86_64.",
            "declare an image",
        )


def _of_installer(cluster: Cluster, node: Node, install: Install) -> Iterator[Refusal]:
    if install.installer is Installer.KICKSTART and cluster.mirrors.dnf is None:
        yield (
            f"Installing {node.name} needs a mirror of {node.os}.",
            "set `mirrors: {dnf: http://mirror.example.com/os}`",
        )
    if install.installer is Installer.PRESEED and install.encryption is not Encryption.NONE:
        if install.mirror:
            yield (
                f"{node.name} declares an encrypted mirror, but partman of {node.os} cannot encrypt an array.",
                "set `mirror: false` or `encryption: none`, or declare an image",
            )
        elif install.volumes is not Volumes.LVM:
            yield (
                (
                    f"{node.name} declares an encrypted root without volumes, but partman of {node.os} puts LVM on what it "
                    "encrypts."
                ),
                "set `volumes: lvm`",
            )
