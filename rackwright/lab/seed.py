"""A node's identity: the files that make it different from the others, laid over its base image before the first boot.

A container finds them in the upper layer of its overlay. A virtual machine gets them as a tar on a small
disk, which the initramfs of its image unpacks once, before systemd starts.
"""

import hashlib
import os
import tarfile
import uuid
from dataclasses import dataclass
from pathlib import Path

from rackwright.lab import keys, names
from rackwright.lab.boot_tree import SEED_ID
from rackwright.lab.spec import NodeSpec, RackSpec
from rackwright.osfamily.known import os_release

HOST_KEY = "etc/ssh/ssh_host_ed25519_key"

_ADMIN_ID = 1000


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes a node different from the others."""

    host_key: str
    machine_id: str


class Seed:
    """Files which lie over those of the base image before the first boot."""

    def __init__(self, root: Path, base: Path) -> None:
        self.root = root
        self.base = base
        self.owners: dict[str, tuple[int, int]] = {}
        """Of what is not root's, by path below the root; a seed can be packed without being root."""
        root.mkdir(mode=0o755)

    def folder(self, path: str, mode: int = 0o755) -> Path:
        """A folder with the mode it has in the base image: in an overlay the upper one's counts."""
        target = self.root
        for part in Path(path).parts:
            target /= part
            if not target.exists():
                below = self.base / target.relative_to(self.root)
                target.mkdir()
                target.chmod(below.stat().st_mode & 0o7777 if below.is_dir() else mode)
        return target

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """A file owned by root."""
        target = self.folder(str(Path(path).parent)) / Path(path).name
        target.write_text(text)
        target.chmod(mode)

    def link(self, path: str, to: str) -> None:
        """A symbolic link."""
        (self.folder(str(Path(path).parent)) / Path(path).name).symlink_to(to)

    def append(self, path: str, line: str, mode: int) -> None:
        """The base image's file with one more line, its group kept."""
        below = self.base / path
        self.write(path, below.read_text() + line + "\n", mode)
        self.own(path, below.stat().st_uid, below.stat().st_gid)

    def own(self, path: str, uid: int, gid: int) -> None:
        """Give a file or folder to a user and a group."""
        self.owners[path] = (uid, gid)
        if os.geteuid() == 0:
            os.chown(self.root / path, uid, gid)


def write_identity(seed: Seed, node: NodeSpec) -> Identity:
    """Name, machine ID and host key; returns what the rack has to know of them."""
    machine_id = uuid.uuid4().hex
    seed.write("etc/hostname", f"{node.name}\n")
    seed.write("etc/hosts", "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n")
    # No DNS server exists on the rack's network; an unreachable one costs 20 s per lookup.
    seed.write("etc/resolv.conf", "")
    seed.write("etc/machine-id", f"{machine_id}\n", 0o444)
    host_key = keys.make_key(seed.folder("etc/ssh") / Path(HOST_KEY).name, f"root@{node.name}")
    return Identity(" ".join(host_key.split()[:2]), machine_id)


def write_access(seed: Seed, spec: RackSpec, node: NodeSpec, admin_key: str) -> None:
    """The administrator with key and sudo, and sshd on the declared port."""
    user, home = spec.admin_user, f"home/{spec.admin_user}"
    seed.append("etc/passwd", f"{user}:x:{_ADMIN_ID}:{_ADMIN_ID}::/{home}:/bin/bash", 0o644)
    seed.append("etc/group", f"{user}:x:{_ADMIN_ID}:", 0o644)
    # "*" means no valid password but, unlike "!", not a locked account.
    seed.append("etc/shadow", f"{user}:*:20000:0:99999:7:::", 0o640)
    seed.append("etc/gshadow", f"{user}:*::", 0o640)
    seed.write(f"etc/sudoers.d/90-{user}", f"{user} ALL=(ALL:ALL) NOPASSWD: ALL\n", 0o440)
    sshd = f"Port {spec.ssh_port}\nPermitRootLogin no\nPasswordAuthentication no\n"
    if os_release(node.image).sshd_has_penalties:
        # The lab asks for the banner and hangs up. sshd since 9.8 would soon shut such a caller out, and
        # with it every caller from the bridge.
        sshd += f"PerSourcePenaltyExemptList {spec.bridge_address.partition('/')[0]}\n"
    seed.write("etc/ssh/sshd_config.d/90-lab.conf", sshd)
    seed.folder(f"{home}/.ssh", 0o700)
    seed.write(f"{home}/.ssh/authorized_keys", f"{admin_key}\n", 0o600)
    (seed.root / home).chmod(0o750)
    for path in (home, f"{home}/.ssh", f"{home}/.ssh/authorized_keys"):
        seed.own(path, _ADMIN_ID, _ADMIN_ID)


def write_apt(seed: Seed, spec: RackSpec) -> None:
    """The rack's mirror, where it has one."""
    if spec.apt_proxy is not None:
        # First in the order, as an installer's answer would be: what the roles write wins.
        seed.write("etc/apt/apt.conf.d/00lab-proxy", f'Acquire::http::Proxy "{spec.apt_proxy}";\n')
    if spec.kubernetes:
        # The proxy is outside the rack, and cannot reach what is served inside.
        bridge = spec.bridge_address.partition("/")[0]
        seed.write("etc/apt/apt.conf.d/00lab-direct", f'Acquire::http::Proxy::{bridge} "DIRECT";\n')


def make_seed(
    spec: RackSpec, node: NodeSpec, base: Path, admin_key: str, staging: Path
) -> tuple[Path, Identity]:
    """The seed of a virtual machine, as a tar whose name is `staging`/seed.tar.

    `base` holds the image's etc/passwd and its siblings; `staging` is an empty folder.
    """
    seed = Seed(staging / "content", base)
    identity = write_identity(seed, node)
    write_access(seed, spec, node, admin_key)
    write_apt(seed, spec)
    for number, (mac, cidr) in enumerate(ports(spec.name, node)):
        seed.write(
            f"etc/systemd/network/10-rack-{number}.network",
            _networkd(mac, cidr, node.port_mtu(number), None if number else spec.gateway),
        )
    seed.write(SEED_ID, hashlib.sha256(identity.machine_id.encode()).hexdigest() + "\n")
    packed = staging / "seed.tar"
    _pack(seed, packed, f"home/{spec.admin_user}")
    return packed, identity


def ports(rack: str, node: NodeSpec) -> list[tuple[str, str]]:
    """MAC address and address with prefix length of every port of a node, the management network first."""
    cidrs = (f"{node.address}/{node.prefix_length}", *node.extra_addresses)
    return [(names.port_mac(rack, node.name, number), cidr) for number, cidr in enumerate(cidrs)]


def _networkd(mac: str, cidr: str, mtu: int, gateway: str | None) -> str:
    route = "" if gateway is None else f"Gateway={gateway}\n"
    return (
        f"[Match]\nMACAddress={mac}\n\n[Link]\nMTUBytes={mtu}\n\n"
        f"[Network]\nAddress={cidr}\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n{route}"
    )


def _pack(seed: Seed, target: Path, home: str) -> None:
    """Files, and only those folders that are the seed's own: the image's keep their modes."""
    own = (home, str(Path(SEED_ID).parent))

    def by_number(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid, member.gid = seed.owners.get(member.name, (0, 0))
        member.uname = member.gname = ""  # the initramfs knows no names
        return member

    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(seed.root.rglob("*")):
            name = str(path.relative_to(seed.root))
            if path.is_dir() and not f"{name}/".startswith(tuple(f"{folder}/" for folder in own)):
                continue
            tar.add(path, arcname=name, recursive=False, filter=by_number)
