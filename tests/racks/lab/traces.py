"""Everything on this machine that bears a rack's name: what `down` must leave nothing of."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rackwright.lab import cgroup, container_disk, names


def traces(rack: str) -> list[str]:
    """Namespaces, mounts, processes, groups, loop devices and files of a rack."""
    return sorted([*_files(rack), *_mounts(rack), *_processes(rack), *_devices(rack)])


def _files(rack: str) -> Iterator[str]:
    roots = [root / "rackwright" for root in cgroup.hierarchies().every()]
    for folder in (names.RUNTIME, names.lab_dir() / "racks", names.NETNS, *roots):
        for pattern in (rack, f"rw-{rack}", f"rw-{rack}.*", f".*{rack}*"):
            yield from (f"file {path}" for path in folder.glob(pattern))


def _mounts(rack: str) -> Iterator[str]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if f"/{rack}/" in line or f"rw-{rack}" in line:
            yield f"mount {line}"


def _processes(rack: str) -> Iterator[str]:
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # One that has given up its memory is dead: it waits for a CPU to end on, or for the machine's init.
            alive = "\nVmSize:" in (entry / "status").read_text()
            if alive and f"/rackwright/{rack}" in (entry / "cgroup").read_text():
                yield f"process {entry.name} {(entry / 'comm').read_text().strip()}"


def _devices(rack: str) -> Iterator[str]:
    yield from (f"loop {file}" for file in container_disk.loop_files() if f"/{rack}/" in file)
