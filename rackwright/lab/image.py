"""Base images: a Debian tree per suite, built once, kept under the hash of its recipe."""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab import cgroup, names, sources, state
from rackwright.lab.process import joined, run
from rackwright.lab.spec import IMAGES

_PACKAGES = (
    "systemd-sysv",
    "openssh-server",
    "python3-minimal",
    "iproute2",
    "sudo",
    "dbus",
    "ca-certificates",
    "kmod",
    "udev",
    "procps",
    "iputils-ping",
)

# Run by mmdebstrap with the tree as $1. Identity (machine id, host keys, name) belongs to a node, never
# to an image. The timers would take dpkg's lock at a moment of their own choosing. Nobody on a node reads
# packages' descriptions, a third of the index. The masked generators look for what no container has
# (partitions to find, a kernel command line, a TPM), again at every daemon-reload.
_CUSTOMIZE = """\
rm -f "$1"/etc/machine-id "$1"/var/lib/dbus/machine-id "$1"/etc/ssh/ssh_host_*
rm -f "$1"/etc/hostname "$1"/etc/resolv.conf "$1"/usr/sbin/policy-rc.d
echo force-unsafe-io >"$1"/etc/dpkg/dpkg.cfg.d/lab
echo 'Acquire::Languages "none";' >"$1"/etc/apt/apt.conf.d/lab
mkdir -p "$1"/etc/systemd/system-generators
for generator in bless-boot debug gpt-auto hibernate-resume run system-update tpm2; do
    ln -s /dev/null "$1/etc/systemd/system-generators/systemd-$generator-generator"
done
chroot "$1" systemctl disable apt-daily.timer apt-daily-upgrade.timer
"""

_BUILD_TIMEOUT = 900


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything a base image depends on; equal recipes make the same image."""

    suite: str
    sources: tuple[str, ...]
    packages: tuple[str, ...]
    apt_options: tuple[str, ...]
    customize: str

    @property
    def key(self) -> str:
        """Short name of the recipe's content."""
        content = json.dumps(asdict(self), sort_keys=True)
        return f"{self.suite}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"


def recipe(image: str) -> Recipe:
    """The recipe of a base image on this machine."""
    suite = IMAGES[image]
    valid = sources.apt_setting("Acquire::Check-Valid-Until")
    # A machine which reads a frozen mirror must say so to its nodes, or their apt refuses the old date.
    options = ('Acquire::Check-Valid-Until "false"',) if valid == "false" else ()
    lines = sources.machine_mirrors().lines(suite)
    return Recipe(suite, tuple(lines), _PACKAGES, options, _CUSTOMIZE)


@contextmanager
def held(images: set[str], log: Callable[[str], None]) -> Iterator[dict[str, Path]]:
    """The trees of these images, built where missing, and kept from removal while the block runs."""
    _folder().mkdir(parents=True, exist_ok=True)
    recipes = {image: recipe(image) for image in sorted(images)}
    handles: list[int] = []
    try:
        trees = {}
        for image, wanted in recipes.items():
            handle = os.open(_folder() / f"{wanted.key}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
            handles.append(handle)
            trees[image] = _ensure(image, wanted, handle, log)
        sweep()
        yield trees
    finally:
        for handle in handles:
            os.close(handle)


def sweep() -> None:
    """Remove unfinished builds without a builder, and images which nothing uses and no recipe makes."""
    if not _folder().is_dir():
        return
    try:
        used = _in_use()
    except LabError:
        return  # unreadable state may stand for a running rack: what it uses is unknown
    current = {recipe(image).key for image in IMAGES}
    for lock in sorted(_folder().glob("*.lock")):
        key = lock.name.removesuffix(".lock")
        handle = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue  # being built, or about to be booted
        else:
            _discard_unfinished(key)
            if key not in current and str(_folder() / key) not in used:
                shutil.rmtree(_folder() / key, ignore_errors=True)
        finally:
            os.close(handle)


def _ensure(image: str, wanted: Recipe, handle: int, log: Callable[[str], None]) -> Path:
    tree = _folder() / wanted.key
    fcntl.flock(handle, fcntl.LOCK_SH)
    while not tree.is_dir():
        fcntl.flock(handle, fcntl.LOCK_EX)  # waits for another builder of the same image
        if not tree.is_dir():
            log(f"building base image {image} (once, about half a minute)")
            _discard_unfinished(wanted.key)
            _build(wanted, tree)
        fcntl.flock(handle, fcntl.LOCK_SH)
    return tree


def _build(wanted: Recipe, tree: Path) -> None:
    if not sources.KEYRING.exists():
        raise LabError(f"{sources.KEYRING} is missing: apt-get install debian-archive-keyring")
    temporary = _unfinished(wanted.key)
    groups = cgroup.create(group(wanted.key))
    argv = ["mmdebstrap", "--mode=root", "--variant=minbase", f"--include={','.join(wanted.packages)}"]
    if not wanted.sources:
        argv.append("--components=main contrib non-free non-free-firmware")
    argv += [f"--aptopt={option}" for option in wanted.apt_options]
    argv += [f"--customize-hook={wanted.customize}", wanted.suite, str(temporary), *wanted.sources]
    # In a mount namespace of its own: whatever ends the build, no mount of it stays behind.
    run(joined(["unshare", "--mount", *argv], groups), timeout=_BUILD_TIMEOUT)
    cgroup.remove(group(wanted.key))
    temporary.chmod(0o755)
    temporary.rename(tree)


def _discard_unfinished(key: str) -> None:
    cgroup.remove(group(key))
    if _unfinished(key).exists():
        shutil.rmtree(_unfinished(key))


def _in_use() -> set[str]:
    racks = (
        [entry.name for entry in names.RUNTIME.iterdir() if entry.is_dir()] if names.RUNTIME.is_dir() else []
    )
    records = [state.node_record(rack, node) for rack in racks for node in state.recorded_nodes(rack)]
    return {record.base for record in records if record is not None}


def group(key: str) -> str:
    """The control group of a build: of this image in this lab folder, whose lock says who may end it."""
    return f"image.{key}.{hashlib.sha256(str(names.lab_dir()).encode()).hexdigest()[:6]}"


def _folder() -> Path:
    return names.lab_dir() / "images"


def _unfinished(key: str) -> Path:
    return _folder() / f".{key}.unfinished"
