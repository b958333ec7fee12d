"""Files by which `storage:` has filesystems mounted and exported, whether or not the cluster file still declares them."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple

from pyinfra.api.facts import FactBase

from rackwright.model.cluster import Node
from rackwright.model.storage import FilesystemPurpose, ServesFilesystems
from rackwright.model.unit_files import declared_unit_files

PURPOSE = "X-Rackwright-Purpose="
"""Begins a line of each unit that mounts a filesystem of `storage:`; systemd ignores X- (systemd.unit(5))."""
HEADER = "# Written by rackwright"
"""Begins each file of exports that rackwright writes."""
_WHOLE = "end"
_READ = f"""\
command -v grep >/dev/null || exit 0
grep -s '^{PURPOSE}' /etc/systemd/system/*.mount /etc/systemd/system/*.automount /dev/null
grep -ls '^{HEADER}' /etc/exports.d/*.exports
echo {_WHOLE}"""


class UnreadableFiles(ValueError):  # noqa: N818 - as UnreadableMounts
    """The node did not list them to the end."""


class StorageFile(NamedTuple):
    """A mount unit, an automount unit, or a file of exports."""

    path: str
    purpose: str | None
    """Of the filesystem; None for exports."""

    @property
    def name(self) -> str:
        """The name of the unit, or of the file."""
        return PurePosixPath(self.path).name

    @property
    def is_export(self) -> bool:
        return self.purpose is None

    @property
    def keeps_state(self) -> bool:
        """A service that loses it begins with an empty state."""
        return self.purpose == FilesystemPurpose.STATE


class StorageFiles(FactBase[tuple[StorageFile, ...]]):
    """Those that rackwright wrote, in the order of their paths."""

    def command(self) -> str:
        return _READ

    @staticmethod
    def default() -> tuple[StorageFile, ...]:
        return ()

    def process(self, output: list[str]) -> tuple[StorageFile, ...]:
        lines = [line for line in output if line]
        if not lines or lines[-1] != _WHOLE:
            raise UnreadableFiles("the files of mounts and exports were not listed to the end")
        found = set()
        for line in lines[:-1]:
            path, mark, purpose = line.partition(f":{PURPOSE}")
            found.add(StorageFile(path, purpose if mark else None))
        return tuple(sorted(found, key=lambda file: file.path))


def undeclared(node: Node, found: tuple[StorageFile, ...]) -> tuple[StorageFile, ...]:
    """Those that no role of the node declares."""
    exports = {one.exports_file for one in node.options.values() if isinstance(one, ServesFilesystems)}
    declared = declared_unit_files(node) | exports
    return tuple(file for file in found if file.path not in declared)
