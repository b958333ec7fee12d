"""The cache on a mounted filesystem: what is in it, and how something leaves it. On the node: standard library, Python 3.9."""

from __future__ import annotations

import grp
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from rackwright.node_folders.locking import LockHeld
from rackwright.node_folders.locking import locked as file_locked
from rackwright.node_folders.mounted import mounted, own
from rackwright.node_folders.quota import project_of, set_limit, set_project
from rackwright.node_folders.removal import clear, move_away
from rackwright.roles.dataset_cache.node_files import size_of
from rackwright.roles.dataset_cache.node_readers import reader_of
from rackwright.roles.dataset_cache.paths import BIN, INCOMING, MANIFESTS, STATE

GIB = 1 << 30
_REMOVE_SECONDS = 3600.0


class CacheMistake(Exception):  # noqa: N818 - printed as a sentence
    """A dataset cannot be fetched, or is not there."""


@contextmanager
def locked(name: str, state: str = STATE, seconds: float = 0.0) -> Iterator[None]:
    """One process at a time; CacheMistake where another one holds the lock for longer than that."""
    try:
        with file_locked(os.path.join(state, f"{name}.lock"), seconds):
            yield
    except LockHeld:
        raise CacheMistake(f"another process is working on {name}") from None


@contextmanager
def opened_cache(settings: Mapping[str, Any], state: str = STATE) -> Iterator[Cache]:
    """The cache, whose folders are made if they are missing."""
    with mounted(settings["root"]) as root, own(root, settings["folder"], 0o755) as folder:
        if settings["project"] and os.geteuid() == 0 and project_of(folder) != settings["project"]:
            set_project(folder, settings["project"])
            set_limit(settings["root"], settings["project"], settings["limit_gib"])
        with own(folder, INCOMING, 0o700), own(folder, MANIFESTS, 0o700):
            yield Cache(settings, root, folder, state)


@dataclass(frozen=True)
class Cache:
    """Datasets in a folder; one that is there is whole."""

    settings: Mapping[str, Any]
    root: int
    folder: int
    state: str

    @property
    def top(self) -> str:
        return os.path.join(str(self.settings["root"]), str(self.settings["folder"]))

    @property
    def group(self) -> int:
        """Number of the group that reads the datasets; root's where every user does."""
        name = self.settings["group"]
        if name is None:
            return os.getegid()
        try:
            return grp.getgrnam(name).gr_gid
        except KeyError:
            raise CacheMistake(f"there is no group {name}") from None

    def path(self, name: str) -> str:
        """Folder of a dataset."""
        return os.path.join(self.top, name)

    def manifest(self, name: str) -> str:
        """File of its checksums; its time is that of the last fetch."""
        return os.path.join(self.top, MANIFESTS, f"{name}.sha256")

    def incoming(self, name: str) -> str:
        """Where it is while it is fetched."""
        return os.path.join(self.top, INCOMING, name)

    def is_complete(self, name: str) -> bool:
        """Whether it is there, with its checksums."""
        return os.path.isdir(self.path(name)) and os.path.isfile(self.manifest(name))

    def names(self) -> list[str]:
        """Everything that is in the cache, declared or not."""
        with os.scandir(self.folder) as entries:
            return sorted(entry.name for entry in entries if not entry.name.startswith("."))

    def drop(self, name: str) -> None:
        """Out of the way at once, then removed."""
        with locked(name, self.state), own(self.root, BIN, 0o700) as bin_folder:
            with suppress(FileNotFoundError):
                move_away(name, self.folder, bin_folder)
            with suppress(FileNotFoundError), own(self.folder, INCOMING, 0o700) as incoming:
                move_away(name, incoming, bin_folder)
            with suppress(FileNotFoundError):
                os.unlink(self.manifest(name))
            removed = clear(bin_folder, _REMOVE_SECONDS)
            if not removed.is_complete:
                raise CacheMistake(
                    f"{name} was not fully removed: {'; '.join(removed.left) or 'it takes too long'}"
                )

    def make_room(self, name: str) -> None:
        """For a dataset of its declared size: those fetched longest ago leave, but not what is kept or read now."""
        datasets = self.settings["datasets"]
        there = {one: size_of(self.path(one)) for one in self.names() if one != name}
        coming = {name, *(one for one in datasets if os.path.isdir(self.incoming(one)))}
        wanted = sum(datasets[one]["gib"] for one in coming) * GIB
        free = self.settings["limit_gib"] * GIB - sum(there.values()) - wanted
        leaving = sorted(
            (one for one in there if not datasets.get(one, {}).get("keep")), key=lambda one: self.fetched(one)
        )
        busy = []
        for one in leaving:
            if free >= 0:
                return
            if reader := reader_of(self.path(one)):
                busy.append(f"{one} is in use by process {reader}")
                continue
            self.drop(one)
            free += there[one]
        if free < 0:
            why = f": {'; '.join(busy)}" if busy else ""
            raise CacheMistake(f"no room for {name}: {-free / GIB:.1f} GiB short{why}")

    def fetched(self, name: str) -> float:
        """When it was asked for last."""
        try:
            return os.stat(self.manifest(name)).st_mtime
        except FileNotFoundError:
            return 0.0

    def listing(self) -> dict[str, Any]:
        """State and bytes by dataset, and all bytes; reads nothing but the cache."""
        found = {}
        for name in sorted({*self.settings["datasets"], *self.names()}):
            there = self.is_complete(name)
            state = "complete" if there else "incomplete" if os.path.isdir(self.incoming(name)) else "missing"
            where = self.path(name) if there else self.incoming(name)
            found[name] = {"state": state, "bytes": size_of(where) if state != "missing" else 0}
        return {"datasets": found, "bytes": sum(one["bytes"] for one in found.values())}
