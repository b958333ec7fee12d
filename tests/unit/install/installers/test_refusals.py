"""What is refused before anything is armed, with the whole message."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest

from rackwright.errors import InstallError
from rackwright.install.installers.answers import make
from rackwright.install.installers.refusals import refuse
from rackwright.install.installers.request import OsDisk
from rackwright.model.install import BootNetwork, Installer
from rackwright.model.settings import Mirrors
from tests.factories import make_node, make_sku
from tests.unit.install.installers.made import make_request


def _refused(request, **of_cluster):
    cluster = request.cluster.model_copy(update=of_cluster)
    with pytest.raises(InstallError) as caught:
        refuse(cluster, request.node)
    return caught.value.message, caught.value.hint


@pytest.mark.parametrize(
    ("release", "changes", "message", "hint"),
    [
        (
            "debian-12",
            {"installer": Installer.KICKSTART},
            "worker1 runs debian-12, whose installer does not support kickstart.",
            "set `installer: preseed`",
        ),
        (
            "ubuntu-24.04",
            {"vlan": 12},
            (
                "worker1 has its management network on the tagged VLAN 12, but the initramfs of ubuntu-24.04's installer does not support VLANs."
            ),
            "make it the port's untagged VLAN, or declare an image",
        ),
        (
            "debian-12",
            {"vlan": 12},
            (
                "worker1 has its management network on the tagged VLAN 12, but the initramfs of debian-12's installer does not support VLANs."
            ),
            "make it the port's untagged VLAN, or declare an image",
        ),
        (
            "rocky-9",
            {"mirrors": Mirrors()},
            "Installing worker1 needs a mirror of rocky-9.",
            "set `mirrors: {dnf: http://mirror.example.com/os}`",
        ),
        (
            "debian-12",
            {"mirror": True, "volumes": "lvm", "encryption": "tpm2"},
            "worker1 declares an encrypted mirror, but partman of debian-12 cannot encrypt an array.",
            "set `mirror: false` or `encryption: none`, or declare an image",
        ),
        (
            "debian-12",
            {"encryption": "tpm2"},
            "worker1 declares an encrypted root without volumes, but partman of debian-12 puts LVM on what it encrypts.",
            "set `volumes: lvm`",
        ),
    ],
)
def test_refused(release, changes, message, hint):
    assert _refused(make_request(release, **changes)) == (message, hint)


def test_a_boot_network_that_is_not_the_management_network():
    boot = BootNetwork(network="boot", server=IPv4Address("10.8.0.5"), bmc_server=IPv4Address("10.8.0.5"))
    assert _refused(make_request("debian-12"), boot_network=boot) == (
        "worker1 would be installed over the network boot, but an installer configures only one network: management.",
        "set `boot_network: {network: management}`, or declare an image",
    )


def test_every_reason_is_in_the_message():
    request = make_request("debian-12", encryption="tpm2")
    node = request.node.model_copy(update={"mac": None, "sku": make_sku(cpu_architecture="aarch64")})
    with pytest.raises(InstallError) as caught:
        refuse(request.cluster, node)
    assert caught.value.message.splitlines() == [
        "The MAC address of worker1 is not declared.",
        "worker1 is aarch64, but installers are supported only on x86_64.",
        "worker1 declares an encrypted root without volumes, but partman of debian-12 puts LVM on what it encrypts.",
    ]
    assert caught.value.hint == "add `macs:` or `machines:`; declare an image; set `volumes: lvm`"


def test_a_node_without_an_installer_is_not_refused():
    request = make_request("debian-12")
    refuse(request.cluster, make_node("worker2", 12))


@pytest.mark.parametrize(
    ("disks", "named"),
    [((), "none"), ((OsDisk("/dev/sda", "SN-A"), OsDisk("/dev/sdb", "SN-A")), "SN-A, SN-A")],
)
def test_as_many_disks_as_declared(disks, named):
    with pytest.raises(InstallError, match=f"^worker1 needs 1 disk, but approved are: {named}.$"):
        make(make_request("debian-12", disks=disks))
