"""The seed of a virtual machine: what is in the tar that gives it its identity."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from rackwright.lab import names
from rackwright.lab.boot_tree import SEED_ID
from rackwright.lab.seed import Identity, make_seed, ports
from rackwright.lab.spec import NodeSpec, VmSpec
from tests.unit.lab.specs import node, rack

PASSWD = "root:x:0:0:root:/root:/bin/bash\nslurm:x:64030:64030::/nonexistent:/usr/sbin/nologin\n"
KEY = "ssh-ed25519 AAAA the operator's"


def machine(**changes: object) -> NodeSpec:
    plain = {
        "mtu": 9000,
        "extra_addresses": ("10.9.0.11/24",),
        "vm": VmSpec(sockets=1, cores=2, threads=1, numa_nodes=1),
    }
    return node(1, **(plain | changes))


class Packed:
    """A seed, and what is in it."""

    def __init__(self, folder: Path, gateway: str | None = None, **changes: object) -> None:
        folder.mkdir()
        base = folder / "image"
        (base / "etc").mkdir(parents=True)
        for name, text, mode in (
            ("passwd", PASSWD, 0o644),
            ("group", "root:x:0:\nshadow:x:42:\n", 0o644),
            ("shadow", "root:*:20000:0:99999:7:::\n", 0o640),
            ("gshadow", "root:*::\n", 0o640),
        ):
            (base / "etc" / name).write_text(text)
            (base / "etc" / name).chmod(mode)
        (folder / "staging").mkdir()
        one = machine(**changes)
        self.identity: Identity
        packed, self.identity = make_seed(
            rack(folder, nodes=(one,), gateway=gateway), one, base, KEY, folder / "staging"
        )
        self.content = packed.read_bytes()
        with tarfile.open(packed) as tar:
            self.members = tar.getmembers()
            self.texts = {
                member.name: file.read().decode()
                for member in self.members
                if (file := tar.extractfile(member)) is not None
            }


@pytest.fixture
def packed(tmp_path: Path) -> Packed:
    return Packed(tmp_path / "seed")


def test_every_member_with_its_kind_mode_and_owner(packed: Packed):
    assert [(m.name, m.type == tarfile.DIRTYPE, oct(m.mode), m.uid, m.gid) for m in packed.members] == [
        ("etc/apt/apt.conf.d/00lab-proxy", False, "0o644", 0, 0),
        ("etc/group", False, "0o644", 0, 0),
        ("etc/gshadow", False, "0o640", 0, 0),
        ("etc/hostname", False, "0o644", 0, 0),
        ("etc/hosts", False, "0o644", 0, 0),
        ("etc/machine-id", False, "0o444", 0, 0),
        ("etc/passwd", False, "0o644", 0, 0),
        ("etc/resolv.conf", False, "0o644", 0, 0),
        ("etc/shadow", False, "0o640", 0, 0),
        ("etc/ssh/ssh_host_ed25519_key", False, "0o600", 0, 0),
        ("etc/ssh/ssh_host_ed25519_key.pub", False, "0o644", 0, 0),
        ("etc/ssh/sshd_config.d/90-lab.conf", False, "0o644", 0, 0),
        ("etc/sudoers.d/90-ops", False, "0o440", 0, 0),
        ("etc/systemd/network/10-rack-0.network", False, "0o644", 0, 0),
        ("etc/systemd/network/10-rack-1.network", False, "0o644", 0, 0),
        ("home/ops", True, "0o750", 1000, 1000),
        ("home/ops/.ssh", True, "0o700", 1000, 1000),
        ("home/ops/.ssh/authorized_keys", False, "0o600", 1000, 1000),
        ("var/lib/rackwright", True, "0o755", 0, 0),
        (SEED_ID, False, "0o644", 0, 0),
    ]
    assert {(m.uname, m.gname) for m in packed.members} == {("", "")}  # the initramfs knows no names


def test_accounts_are_those_of_the_image_and_the_administrator(packed: Packed):
    assert packed.texts["etc/passwd"] == f"{PASSWD}ops:x:1000:1000::/home/ops:/bin/bash\n"
    assert packed.texts["etc/group"] == "root:x:0:\nshadow:x:42:\nops:x:1000:\n"
    assert packed.texts["etc/shadow"] == "root:*:20000:0:99999:7:::\nops:*:20000:0:99999:7:::\n"
    assert packed.texts["etc/gshadow"] == "root:*::\nops:*::\n"
    assert packed.texts["etc/sudoers.d/90-ops"] == "ops ALL=(ALL:ALL) NOPASSWD: ALL\n"
    assert packed.texts["home/ops/.ssh/authorized_keys"] == f"{KEY}\n"


def test_each_port_has_its_address_by_its_mac(packed: Packed):
    first, second = (names.mac("unit", "node1", side) for side in ("node", "node1"))
    assert first != second
    assert packed.texts["etc/systemd/network/10-rack-0.network"] == (
        f"[Match]\nMACAddress={first}\n\n[Link]\nMTUBytes=9000\n\n"
        "[Network]\nAddress=10.0.0.11/24\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n"
    )
    assert packed.texts["etc/systemd/network/10-rack-1.network"] == (
        f"[Match]\nMACAddress={second}\n\n[Link]\nMTUBytes=9000\n\n"
        "[Network]\nAddress=10.9.0.11/24\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n"
    )
    assert ports("unit", machine()) == [(first, "10.0.0.11/24"), (second, "10.9.0.11/24")]


def test_the_default_route_is_the_management_networks(tmp_path: Path):
    texts = Packed(tmp_path / "routed", gateway="10.0.0.1").texts
    routed = [name for name, text in texts.items() if "\nGateway=10.0.0.1\n" in text]
    assert routed == ["etc/systemd/network/10-rack-0.network"]


def test_the_rack_knows_the_host_key_and_the_machine_id_before_the_first_boot(packed: Packed):
    public = packed.texts["etc/ssh/ssh_host_ed25519_key.pub"]
    assert public == f"{packed.identity.host_key} root@node1\n"
    assert packed.texts["etc/ssh/ssh_host_ed25519_key"].startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    assert packed.texts["etc/machine-id"] == f"{packed.identity.machine_id}\n"
    assert len(packed.identity.machine_id) == 32


def test_sshd_apt_and_names(packed: Packed):
    assert packed.texts["etc/ssh/sshd_config.d/90-lab.conf"] == (
        "Port 22\nPermitRootLogin no\nPasswordAuthentication no\nPerSourcePenaltyExemptList 10.0.0.1\n"
    )
    assert packed.texts["etc/apt/apt.conf.d/00lab-proxy"] == (
        'Acquire::http::Proxy "http://10.0.0.1:3142";\n'
    )
    assert packed.texts["etc/hostname"] == "node1\n"
    assert packed.texts["etc/resolv.conf"] == ""


def test_an_older_sshd_gets_no_option_that_it_does_not_know(tmp_path: Path):
    old = Packed(tmp_path / "old", image="debian-12")
    assert "PerSourcePenalty" not in old.texts["etc/ssh/sshd_config.d/90-lab.conf"]


def test_every_seed_is_another_one_and_names_itself_last(tmp_path: Path, packed: Packed):
    other = Packed(tmp_path / "other")
    seed_id = packed.texts[SEED_ID].strip()
    assert len(seed_id) == 64
    assert other.texts[SEED_ID].strip() != seed_id
    assert other.identity != packed.identity
    # unpacked in this order: an id that is there vouches for everything before it
    assert packed.members[-1].name == SEED_ID
    # not the machine's ID itself, which is a secret of the node (machine-id(5))
    assert packed.identity.machine_id not in packed.texts[SEED_ID]
