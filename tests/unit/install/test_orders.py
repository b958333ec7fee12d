"""What an agent is ordered to do: its own reader takes it, and the files let the administrator in."""

from __future__ import annotations

import stat
from ipaddress import IPv4Address

import pytest

from rackwright.errors import InstallError
from rackwright.install.agent import order
from rackwright.install.image import ACCOUNTS
from rackwright.install.known_hosts import trust
from rackwright.install.medium import config
from rackwright.install.orders import kernel_arguments, orders
from rackwright.install.record import Record
from rackwright.install.verdict import judge
from rackwright.model.install import DiskRule, Encryption, Volumes
from rackwright.model.settings import Ssh
from rackwright.osfamily.known import os_release
from rackwright.ssh.known_hosts import HostKey, read_known_hosts
from tests.factories import make_network
from tests.unit.install.site import (
    EXT4,
    GPT,
    HOST_KEY,
    changed,
    disk,
    inventory,
    mac,
    make_boot_network,
    make_image,
    make_site,
    make_worker,
)

KEY = "ssh-ed25519 AAAA rackwright"


@pytest.fixture
def image(tmp_path):
    return make_image(tmp_path / "image")


def ordered(node, image, found=None, recovery=None, confirmed=None, **cluster):
    verdict = judge(node, found or inventory(), "SN-1", confirmed or {})
    made = make_site(node).model_copy(update=cluster)
    return orders(made, node, "r1", image, KEY, verdict, recovery)


def parsed(given, **more):
    return order.parse(given, "r1", **more)


def files(given):
    return {one["path"]: one for one in given["files"]}


def test_the_agent_takes_them(image):
    given = ordered(
        make_worker(), image, inventory(1, disk(signatures=[EXT4, GPT])), confirmed={"DISK-1": (EXT4, GPT)}
    )
    found = parsed(given)
    assert found.disks == (order.Disk("/dev/sda", "DISK-1", (EXT4, GPT)),)
    assert (found.node, found.image.size, found.image.sha256) == ("worker1", image.size, image.sha256)
    assert (found.mirror, found.lvm, found.encryption) == (False, False, None)
    assert found.kernel_arguments == "console=tty0 console=ttyS0,115200 rackwright.run=r1"


def test_a_mirror_that_is_encrypted(image):
    rule = DiskRule(serials=("DISK-1", "DISK-2"))
    node = changed(make_worker(), mirror=True, volumes=Volumes.LVM, encryption=Encryption.TPM2, disk=rule)
    given = ordered(node, image, inventory(1, disk(), disk(2, path="/dev/sdb")), recovery="a long passphrase")
    found = parsed(given)
    assert [one.path for one in found.disks] == ["/dev/sda", "/dev/sdb"]
    assert (found.mirror, found.lvm) == (True, True)
    assert (found.encryption.kind, found.encryption.recovery_key) == ("tpm2", "a long passphrase")
    assert "a long passphrase" not in repr(found)
    tang = changed(node, encryption=Encryption.TANG, tang="http://10.1.0.5")
    assert parsed(ordered(tang, image, inventory(1, disk(), disk(2, path="/dev/sdb")), "x")).encryption.tang


def test_a_diskless_node_gets_no_disk(image):
    node = changed(make_worker(), diskless=True, disk=DiskRule())
    assert parsed(ordered(node, image, inventory(1, disk(signatures=[GPT]))), ramdisk=True).disks == ()


def test_the_administrator_can_log_in_and_become_root(image):
    given = ordered(make_worker(), image)
    found = files(given)
    assert (
        found["/etc/passwd"]["content"]
        == "root:x:0:0::/root:/bin/bash\nadmin:x:1000:1000::/home/admin:/bin/bash\n"
    )
    assert found["/etc/group"]["content"].endswith("admin:x:1000:\n")
    assert found["/etc/shadow"]["content"].endswith("admin:*:20000:0:99999:7:::\n"), "no password ever"
    assert [found[f"/etc/{name}"]["mode"] for name in ACCOUNTS] == [0o644, 0o644, 0o640, 0o640]
    assert [found[f"/etc/{name}"]["gid"] for name in ACCOUNTS] == [0, 0, 42, 42]
    assert found["/etc/sudoers.d/90-admin"]["content"] == "admin ALL=(ALL:ALL) NOPASSWD: ALL\n"
    assert found["/etc/sudoers.d/90-admin"]["mode"] == 0o440
    keys = found["/home/admin/.ssh/authorized_keys"]
    assert (keys["content"], keys["mode"], keys["uid"], keys["gid"]) == (f"{KEY}\n", 0o600, 1000, 1000)
    assert [(one["path"], one["mode"], one["uid"]) for one in given["folders"]] == [
        ("/home/admin", 0o750, 1000),
        ("/home/admin/.ssh", 0o700, 1000),
    ]
    assert "PasswordAuthentication no" in found["/etc/ssh/sshd_config.d/90-install.conf"]["content"]


def test_an_id_that_is_taken_and_an_account_that_is_there(image):
    passwd = image.folder / "etc/passwd"
    passwd.write_text("root:x:0:0::/root:/bin/bash\nother:x:1000:7::/:/bin/sh\n")
    (image.folder / "etc/group").write_text("root:x:0:\nusers:x:1001:\n")
    found = files(ordered(make_worker(), image))
    assert found["/etc/passwd"]["content"].endswith("admin:x:1002:1002::/home/admin:/bin/bash\n")
    assert found["/etc/shadow"]["gid"] == 0, "the image has no group shadow"
    passwd.write_text("root:x:0:0::/root:/bin/bash\nadmin:x:1500:1600::/home/admin:/bin/sh\n")
    found = files(ordered(make_worker(), image))
    assert not {f"/etc/{name}" for name in ACCOUNTS} & set(found)
    assert (
        found["/home/admin/.ssh/authorized_keys"]["uid"],
        found["/home/admin/.ssh/authorized_keys"]["gid"],
    ) == (1500, 1600)


def test_the_network_is_the_declared_one(image):
    network = make_network("management", "10.9.0.0/24", gateway=IPv4Address("10.9.0.1"), mtu=9000)
    found = files(ordered(make_worker(), image, networks={"management": network}))
    assert found["/etc/hostname"]["content"] == "worker1\n"
    assert "10.9.0.11 worker1.test.example worker1\n" in found["/etc/hosts"]["content"]
    assert found["/etc/systemd/network/20-install.network"]["content"] == (
        f"[Match]\nMACAddress={mac(1)}\nType=ether\n\n[Link]\nMTUBytes=9000\n\n"
        "[Network]\nAddress=10.9.0.11/24\nLinkLocalAddressing=no\nIPv6AcceptRA=no\nGateway=10.9.0.1\n"
    )


def test_a_tagged_bond(image):
    node = changed(make_worker(), vlan=12, bond=(mac(50),))
    found = {path: one["content"] for path, one in files(ordered(node, image)).items() if "network/" in path}
    folder = "/etc/systemd/network"
    assert f"PermanentMACAddress={mac(1)} {mac(50)}\n" in found[f"{folder}/10-install-members.network"]
    assert "Mode=802.3ad" in found[f"{folder}/10-install-bond.netdev"]
    assert "[Match]\nName=bond0\n\n[Network]\nVLAN=vlan12\n" in found[f"{folder}/10-install-port.network"]
    assert "Id=12" in found[f"{folder}/10-install-vlan.netdev"]
    assert found[f"{folder}/20-install.network"].startswith("[Match]\nName=vlan12\n")


def test_a_system_that_images_do_not_suit(image):
    node = make_worker().model_copy(update={"os": os_release("rocky-9")})
    with pytest.raises(InstallError, match="worker1 runs rocky-9, which uses ") as error:
        ordered(node, image)
    assert error.value.hint == "set `install: {installer: kickstart}`"


def test_arguments_of_the_kernel():
    install = changed(make_worker(), console=None, kernel_arguments=("iommu=pt", "quiet")).install
    assert kernel_arguments(install, "r1") == "iommu=pt quiet rackwright.run=r1"


def test_what_a_medium_has_for_its_agent():
    node, cluster = make_worker(), make_site(make_worker())
    record = Record("worker1", run="r1", mode="install", serial="SN-1")
    found = config(cluster, changed(node, vlan=12), cluster.boot_network, record, "the token")
    assert found == {
        "version": 1,
        "server": "https://127.0.0.1:8443",
        "token": "the token",
        "node": "worker1",
        "run": "r1",
        "serial": "SN-1",
        "mode": "install",
        "network": {"mac": mac(1), "address": "10.9.0.11/24", "gateway": None, "vlan": 12},
    }
    record = Record("worker1", run="r1", mode="discover", serial="SN-9", mac=mac(9))
    bare = node.model_copy(update={"mac": None, "install": None, "addresses": ()})
    found = config(cluster, bare, cluster.boot_network, record, "t")
    assert (found["serial"], found["network"]) == (
        "SN-9",
        {"mac": mac(9), "address": None, "gateway": None, "vlan": None},
    )


def test_the_vlan_is_that_of_the_management_network(tmp_path):
    node = changed(make_worker(), vlan=100)
    cluster = make_site(node)
    prov = cluster.management.model_copy(update={"name": "prov"})
    cluster = cluster.model_copy(update={"networks": {**cluster.networks, "prov": prov}})
    record = Record("worker1", run="r1", mode="install")
    for network, vlan in (("management", 100), ("prov", None)):
        found = config(cluster, node, make_boot_network(network=network), record, "t")["network"]
        assert found["vlan"] == vlan


def test_known_hosts_has_the_new_key_and_those_of_others(tmp_path):
    path = tmp_path / "ssh/known_hosts"
    cluster = make_site(make_worker()).model_copy(update={"ssh": Ssh(user="admin", known_hosts=path)})
    trust(cluster, cluster.by_name["worker1"], HOST_KEY)
    path.write_text(f"head1 ssh-ed25519 BBBB\n{path.read_text()}worker1,old ssh-rsa CCCC\n")
    other = HOST_KEY.replace("a2tr", "a2ts")
    trust(cluster, cluster.by_name["worker1"], other)
    known = read_known_hosts(path)
    for name in ("worker1", "worker1.test.example", "10.9.0.11"):
        assert known.named(name) == (HostKey("ssh-ed25519", other.split()[1]),)
    assert known.named("head1") == (HostKey("ssh-ed25519", "BBBB"),)
    assert known.named("old") == (HostKey("ssh-rsa", "CCCC"),)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    before = path.stat().st_ino
    trust(cluster, cluster.by_name["worker1"], other)
    assert path.stat().st_ino == before, "what is right is not written again"
