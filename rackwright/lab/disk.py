"""A node's disk: a small file system of its own, with the node's identity already on it.

Every node writes to an ext4 image in a sparse file, mounted as the upper layer of an overlay. Bounded by
a real file system, a full disk is real: ENOSPC for root too, which no quota gives (root is exempt) and no
shared overlay folder (the whole machine would have to be full). It costs little: `mke2fs` takes 20 ms and
4 MiB, the inode tables are never written out, and there is no journal, for the lab outlives no crash of
its host anyway. The image is filled from a folder by `mke2fs -d`, so it is made without any mount, in one
step, and either complete or not there.
"""

import os
import tempfile
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rackwright.lab import keys, names
from rackwright.lab.process import run, wait_until
from rackwright.lab.spec import NodeSpec, RackSpec
from rackwright.osfamily.known import os_release

DISK_SIZE = "16G"
UPPER, WORK, FILL, SCRATCH = "upper", "work", "fill", "scratch"

_ADMIN_ID = 1000
_INODES = 524_288


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells a node from its siblings."""

    host_key: str
    machine_id: str


def disk_path(rack: str, node: str) -> Path:
    """The image file of a node's disk."""
    return names.rack_disks(rack) / f"{node}.ext4"


def make_disk(spec: RackSpec, node: NodeSpec, base: Path, admin_key: str) -> Identity:
    """Make a node's disk with a new identity on it."""
    folder = names.rack_disks(spec.name)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # the disks hold the nodes' private keys
    with tempfile.TemporaryDirectory(prefix=f".{node.name}.", dir=folder) as staging:
        content, unfinished = Path(staging, "content"), Path(staging, "disk")
        for name in (WORK, SCRATCH):
            (content / name).mkdir(parents=True)
        seed = _Seed(content / UPPER, base)
        identity = _write_identity(seed, node)
        _write_access(seed, spec, node, admin_key)
        _write_apt(seed, spec)
        _format(content, unfinished)
        unfinished.replace(disk_path(spec.name, node.name))
    return identity


def wait_released(rack: str, node: str | None = None) -> None:
    """Wait until no loop device holds a node's disk (or any of the rack's) any more.

    The kernel unmounts a dead node's disk in its own time; mounted a second time meanwhile it would be damaged.
    """
    prefix = f"{names.rack_disks(rack)}/" if node is None else str(disk_path(rack, node))
    wait_until(
        lambda: not any(file.startswith(prefix) for file in loop_files()), f"the kernel to let go of {prefix}"
    )


def loop_files() -> list[str]:
    """The files behind this machine's loop devices."""
    found = []
    for entry in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):
            found.append(entry.read_text().strip())
    return found


class _Seed:
    """Files which lie over those of the base image before the first boot."""

    def __init__(self, root: Path, base: Path) -> None:
        self.root = root
        self.base = base
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

    def append(self, path: str, line: str, mode: int) -> None:
        """The base image's file with one more line, its group kept."""
        below = self.base / path
        self.write(path, below.read_text() + line + "\n", mode)
        os.chown(self.root / path, below.stat().st_uid, below.stat().st_gid)


def _write_identity(seed: _Seed, node: NodeSpec) -> Identity:
    machine_id = uuid.uuid4().hex
    seed.write("etc/hostname", f"{node.name}\n")
    seed.write("etc/hosts", "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n")
    # Nobody on the rack's network resolves names; a server which cannot be reached costs 20 s a lookup.
    seed.write("etc/resolv.conf", "")
    seed.write("etc/machine-id", f"{machine_id}\n", 0o444)
    host_key = keys.make_key(seed.folder("etc/ssh") / "ssh_host_ed25519_key", f"root@{node.name}")
    return Identity(" ".join(host_key.split()[:2]), machine_id)


def _write_access(seed: _Seed, spec: RackSpec, node: NodeSpec, admin_key: str) -> None:
    user, home = spec.admin_user, f"home/{spec.admin_user}"
    seed.append("etc/passwd", f"{user}:x:{_ADMIN_ID}:{_ADMIN_ID}::/{home}:/bin/bash", 0o644)
    seed.append("etc/group", f"{user}:x:{_ADMIN_ID}:", 0o644)
    # "*" is no password but, unlike "!", not a locked account either.
    seed.append("etc/shadow", f"{user}:*:20000:0:99999:7:::", 0o640)
    seed.append("etc/gshadow", f"{user}:*::", 0o640)
    seed.write(f"etc/sudoers.d/90-{user}", f"{user} ALL=(ALL:ALL) NOPASSWD: ALL\n", 0o440)
    sshd = f"Port {spec.ssh_port}\nPermitRootLogin no\nPasswordAuthentication no\n"
    if os_release(node.image).sshd_has_penalties:
        # The lab asks for the banner and hangs up. sshd since 9.8 would soon shut such a caller out, and
        # with it everybody who comes from the bridge.
        sshd += f"PerSourcePenaltyExemptList {spec.bridge_address.partition('/')[0]}\n"
    seed.write("etc/ssh/sshd_config.d/90-lab.conf", sshd)
    seed.folder(f"{home}/.ssh", 0o700)
    seed.write(f"{home}/.ssh/authorized_keys", f"{admin_key}\n", 0o600)
    (seed.root / home).chmod(0o750)
    for path in (home, f"{home}/.ssh", f"{home}/.ssh/authorized_keys"):
        os.chown(seed.root / path, _ADMIN_ID, _ADMIN_ID)


def _write_apt(seed: _Seed, spec: RackSpec) -> None:
    if spec.apt_proxy is not None:
        # First in the order, as an installer's answer would be: whatever the roles write wins.
        seed.write("etc/apt/apt.conf.d/00lab-proxy", f'Acquire::http::Proxy "{spec.apt_proxy}";\n')


def _format(content: Path, disk: Path) -> None:
    options = ["-O", "^has_journal", "-m", "0", "-N", str(_INODES), "-E", "nodiscard,lazy_itable_init=1"]
    run(
        ["mke2fs", "-q", "-F", "-t", "ext4", *options, "-d", str(content), str(disk), DISK_SIZE],
        timeout=60,
    )
