"""Control groups: which processes belong to a node, its limits, and how to end or freeze all of them at once.

Every process of the lab is put into a group before it starts, and a process cannot leave its group by
forking or by losing its parent. So the groups, not lists of pids, define what the lab may kill: membership
survives a kill -9 of `up` at any moment and never points at a recycled pid.

Three kinds of host are met: pure v2; v1 with v2 mounted beside it for naming only (hybrid); v1 alone,
where the lab mounts v2 for itself. Naming, freezing and killing always use v2; limits use whichever
hierarchy has the controller. A node that runs a kubelet has a group in every hierarchy.
"""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab import names
from rackwright.lab.process import run, wait_until

_ROOT_GROUP = "rackwright"
_OWN_MOUNT = names.RUNTIME / ".cgroup2"
_PERIOD_US = 100_000
_V1_CONTROLLERS = ("cpu", "memory")
"""Those that limit a node."""
CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids")
"""Those of v1 that a kubelet and its container runtime use."""
CPUSET = ("cpuset.cpus", "cpuset.mems")
"""What a new group of v1 does not inherit; no process can join it before."""
_FURTHER = (*CONTROLLERS, "hugetlb", "net_cls", "net_prio", "perf_event", "rdma", "misc")


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """Where this host's control groups are mounted."""

    unified: Path
    v1: dict[str, Path]
    every_v1: dict[str, Path]
    """Every v1 hierarchy by controller, the named ones (`name=systemd`) included."""

    def all(self) -> tuple[Path, ...]:
        """Every mounted hierarchy that limits nodes, each once."""
        return (self.unified, *dict.fromkeys(self.v1.values()))

    def every(self) -> tuple[Path, ...]:
        """Every mounted hierarchy, each once."""
        return (self.unified, *dict.fromkeys(self.every_v1.values()))


@cache
def hierarchies() -> Hierarchies:
    """The hierarchies of this host; mounts v2 if it is not mounted."""
    unified, v1 = parse_mountinfo(Path("/proc/self/mountinfo").read_text())
    if unified is None:
        unified = _OWN_MOUNT
        unified.mkdir(parents=True, exist_ok=True)
        run(["mount", "-t", "cgroup2", "none", str(unified)], timeout=10)
    if not os.access(unified, os.W_OK):
        raise LabError(
            f"{unified} is read-only", hint="the lab needs a host or a container which may make groups"
        )
    return Hierarchies(unified, {name: v1[name] for name in _V1_CONTROLLERS if name in v1}, v1)


def parse_mountinfo(text: str) -> tuple[Path | None, dict[str, Path]]:
    """The v2 mount and the v1 mount of each controller."""
    unified: Path | None = None
    v1: dict[str, Path] = {}
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        mount_point = Path(left.split()[4].encode().decode("unicode_escape"))
        kind, _, options = right.split(" ", 2)
        if kind == "cgroup2" and unified is None:
            unified = mount_point
        elif kind == "cgroup":
            for option in options.split(" ")[-1].split(","):
                if option in _FURTHER or option.startswith("name="):
                    v1.setdefault(option, mount_point)
    return unified, v1


def group(*path: str) -> Path:
    """A group of the lab in the unified hierarchy."""
    return hierarchies().unified.joinpath(_ROOT_GROUP, *path)


def relative(*path: str) -> str:
    """A group of the lab as seen from the top of the unified hierarchy."""
    return "/".join((_ROOT_GROUP, *path))


def tidy() -> None:
    """Remove the lab's own group once nothing is in it."""
    for root in hierarchies().every():
        with suppress(OSError):
            (root / _ROOT_GROUP).rmdir()
    if hierarchies().unified == _OWN_MOUNT and not (_OWN_MOUNT / _ROOT_GROUP).exists():
        run(["umount", str(_OWN_MOUNT)], timeout=10)
        _OWN_MOUNT.rmdir()
        hierarchies.cache_clear()


def create(*path: str, everywhere: bool = False) -> list[Path]:
    """Make a group afresh and return its directories, to be joined in that order.

    `everywhere`: in every hierarchy and with every controller, instead of those that limit nodes.
    """
    remove(*path)
    roots = hierarchies().every() if everywhere else hierarchies().all()
    return [_make(root, root.joinpath(_ROOT_GROUP, *path), everywhere) for root in roots]


def _make(root: Path, directory: Path, everywhere: bool) -> Path:
    while True:
        try:
            directory.parent.mkdir(parents=True, exist_ok=True)
            if root == hierarchies().unified:
                _delegate(directory.parent, everywhere)
            directory.mkdir(exist_ok=True)
            if root == hierarchies().every_v1.get("cpuset"):
                _fill_cpuset(root, directory)
        except FileNotFoundError:  # another rack's end has just tidied up the empty parent
            continue
        return directory


def _delegate(directory: Path, everywhere: bool) -> None:
    # Controllers reach a group only when every group above it passes them on.
    root = hierarchies().unified
    for level in [*reversed(directory.relative_to(root).parents), directory.relative_to(root)]:
        available = (root / level / "cgroup.controllers").read_text().split()
        for controller in available if everywhere else set(_V1_CONTROLLERS).intersection(available):
            _try_write(root / level / "cgroup.subtree_control", f"+{controller}")


def _fill_cpuset(root: Path, directory: Path) -> None:
    for level in reversed(directory.relative_to(root).parents[:-1]):
        _copy_cpuset(root / level)
    _copy_cpuset(directory)


def _copy_cpuset(directory: Path) -> None:
    for name in CPUSET:
        if not (directory / name).read_text().strip():
            (directory / name).write_text((directory.parent / name).read_text())


def missing_controllers() -> list[str]:
    """Controllers that a kubelet needs and that this host has in no hierarchy."""
    if has_v1():
        return [name for name in CONTROLLERS if name not in hierarchies().every_v1]
    available = (hierarchies().unified / "cgroup.controllers").read_text().split()
    return [name for name in ("cpu", "cpuset", "memory", "pids") if name not in available]


def has_v1() -> bool:
    """Whether this host's controllers are in v1 hierarchies."""
    return any(name in hierarchies().every_v1 for name in CONTROLLERS)


def limit(cpus: int, memory_mib: int, *path: str) -> dict[str, bool]:
    """Limit a group; returns which of the limits the host enforces."""
    quota, memory = cpus * _PERIOD_US, memory_mib << 20
    unified = group(*path)
    _try_write(unified / "memory.swap.max", "0")  # or the limit would only move the node to the swap
    settings = {
        "cpu": [(unified / "cpu.max", f"{quota} {_PERIOD_US}")],
        "memory": [(unified / "memory.max", str(memory))],
    }
    for controller, root in hierarchies().v1.items():
        name, value = {
            "cpu": ("cpu.cfs_quota_us", str(quota)),
            "memory": ("memory.limit_in_bytes", str(memory)),
        }[controller]
        settings[controller].append((root.joinpath(_ROOT_GROUP, *path, name), value))
    return {
        controller: any(file.exists() and _try_write(file, value) for file, value in files)
        for controller, files in settings.items()
    }


def memory_mib(*path: str) -> int | None:
    """Memory a group uses now, None where the host does not count it."""
    files = [group(*path) / "memory.current"]
    if "memory" in hierarchies().v1:
        files.append(hierarchies().v1["memory"].joinpath(_ROOT_GROUP, *path, "memory.usage_in_bytes"))
    for file in files:
        try:
            return int(file.read_text()) >> 20
        except OSError:
            continue
    return None


def populated(*path: str) -> bool:
    """Whether any process lives in the group or below it."""
    try:
        return "populated 1" in (group(*path) / "cgroup.events").read_text()
    except OSError:
        return False


def pids(directory: Path) -> list[int]:
    """Processes of a directory's group and the groups below it."""
    found: list[int] = []
    for folder, _, files in os.walk(directory):
        if "cgroup.procs" in files:
            try:
                found += [int(pid) for pid in Path(folder, "cgroup.procs").read_text().split()]
            except OSError:  # the group went away, or holds threads only
                continue
    return found


def freeze(frozen: bool, *path: str) -> None:
    """Stop every process of a group where it is, or let all go on."""
    (group(*path) / "cgroup.freeze").write_text("1" if frozen else "0")
    wanted = f"frozen {int(frozen)}"
    wait_until(
        lambda: wanted in (group(*path) / "cgroup.events").read_text(), f"{'/'.join(path)} to be {wanted}"
    )


def kill(*path: str) -> None:
    """End every process of a group at once, as a power failure would, and wait until they are gone."""
    directory = group(*path)
    if not directory.is_dir():
        return

    def strike() -> bool:
        if not (directory / "cgroup.kill").exists() or not _try_write(directory / "cgroup.kill", "1"):
            for pid in pids(directory):  # kernels before 5.14: repeated until no process is left to fork
                os.kill(pid, signal.SIGKILL)
        return not populated(*path)

    wait_until(strike, f"the processes of {'/'.join(path)} to end")


def remove(*path: str) -> None:
    """End a group's processes and remove it in every hierarchy."""
    kill(*path)
    for root in hierarchies().every():
        directory = root.joinpath(_ROOT_GROUP, *path)
        wait_until(partial(_remove_tree, directory), f"{directory} to be removable")


def children(*path: str) -> list[str]:
    """Names of the groups below a group."""
    directory = group(*path)
    return sorted(entry.name for entry in directory.iterdir() if entry.is_dir()) if directory.is_dir() else []


def _remove_tree(directory: Path) -> bool:
    try:
        for folder, _, _ in os.walk(directory, topdown=False):
            os.rmdir(folder)
    except FileNotFoundError:
        return not directory.exists()
    except OSError:  # a process which was just killed still counts until it is reaped
        return False
    return True


def _try_write(file: Path, text: str) -> bool:
    try:
        file.write_text(text)
    except OSError:
        return False
    return True
