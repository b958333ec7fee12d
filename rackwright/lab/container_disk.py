"""A node's disk: a small separate file system, with the node's identity already on it.

Every node writes to an ext4 image in a sparse file, mounted as the upper layer of an overlay. Bounded by
a real file system, a full disk is real: ENOSPC for root too, which no quota gives (root is exempt) and no
shared overlay folder (the whole machine would have to be full). It costs little: `mke2fs` takes 20 ms and
4 MiB, the inode tables are never written out, and there is no journal, for the lab outlives no crash of
its host anyway. The image is filled from a folder by `mke2fs -d`, so it is made without any mount, in one
step, and either complete or not there.
"""

import tempfile
from contextlib import suppress
from pathlib import Path

from rackwright.lab import kubelet_node, names
from rackwright.lab.process import run, wait_until
from rackwright.lab.seed import Identity, Seed, write_access, write_apt, write_identity
from rackwright.lab.spec import NodeSpec, RackSpec

DISK_SIZE = "16G"
UPPER, WORK, FILL, SCRATCH = "upper", "work", "fill", "scratch"

_INODES = 524_288


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
        if node.kubelet:
            kubelet_node.folders(content)
        seed = Seed(content / UPPER, base)
        identity = write_identity(seed, node)
        write_access(seed, spec, node, admin_key)
        write_apt(seed, spec)
        if node.kubelet:
            kubelet_node.write_seed(seed, node)
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


def _format(content: Path, disk: Path) -> None:
    options = ["-O", "^has_journal", "-m", "0", "-N", str(_INODES), "-E", "nodiscard,lazy_itable_init=1"]
    run(
        ["mke2fs", "-q", "-F", "-t", "ext4", *options, "-d", str(content), str(disk), DISK_SIZE],
        timeout=60,
    )
