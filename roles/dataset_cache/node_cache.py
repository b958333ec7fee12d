"""The cache on a mounted filesystem: its contents and eviction. On the node: standard library, Python 3.9."""

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
from rackwright.node_folders.quota import NoQuota, project_of, set_limit, set_project, usage
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
        for hidden in (INCOMING, MANIFESTS):
            with own(folder, hidden, 0o700):
                pass
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
            raise CacheMistake(f"group {name} does not exist") from None

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

    def begun(self) -> list[str]:
        """What is being fetched, or was when a copy broke off; declared or not."""
        try:
            return sorted(os.listdir(self.incoming("")))
        except FileNotFoundError:
            return []

    def drop(self, name: str) -> None:
        """Moved aside at once, then removed."""
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

    def keep_limit(self) -> None:
        """Let the kernel keep the limit that is declared now, on everything that is fetched from now on."""
        project, gib = self.settings["project"], self.settings["limit_gib"]
        if not project:
            return
        with locked(".limit", self.state, _REMOVE_SECONDS):
            self._give_project(project)
            if self._kernel_kib() != gib << 20:
                set_limit(self.settings["root"], project, gib)

    def _give_project(self, project: int) -> None:
        """What was fetched for another project cannot be renamed into the cache (EXDEV; seen on Linux 6.18): it goes."""
        with own(self.folder, INCOMING, 0o700) as incoming, own(self.folder, MANIFESTS, 0o700) as manifests:
            if project_of(incoming) != project:
                with own(self.root, BIN, 0o700) as bin_folder:
                    for name in os.listdir(incoming):
                        move_away(name, incoming, bin_folder)
                    clear(bin_folder, _REMOVE_SECONDS)
            for folder in (incoming, manifests, self.folder):
                if project_of(folder) != project:
                    set_project(folder, project)

    def _kernel_kib(self) -> int:
        """The limit in force; 0: none."""
        return usage(self.settings["root"]).get(self.settings["project"], (0, 0))[1]

    def make_room(self, name: str) -> None:
        """Room for a dataset of its declared size: evicts those fetched longest ago, but none that is kept or being read."""
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
        """State and bytes by dataset, all bytes, and the kernel's limit; reads nothing but the cache."""
        found: dict[str, dict[str, Any]] = {}
        for name in sorted({*self.settings["datasets"], *self.names(), *self.begun()}):
            there = self.is_complete(name)
            state = "complete" if there else "incomplete" if os.path.isdir(self.incoming(name)) else "missing"
            where = self.path(name) if there else self.incoming(name)
            found[name] = {"state": state, "bytes": size_of(where) if state != "missing" else 0}
        listed: dict[str, Any] = {"datasets": found, "bytes": sum(one["bytes"] for one in found.values())}
        if self.settings["project"]:
            try:
                listed["kernel_kib"] = self._kernel_kib()
            except NoQuota as error:
                listed["kernel_silent"] = str(error)
        return listed
