"""Options of the dataset_cache role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar, Self

from pydantic import Field, StringConstraints, model_validator

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import WritesUnitFiles
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.storage import Filesystem, MakesFilesystems, scratch_of
from rackwright.model.strings import GroupName, NodePath, Slug
from rackwright.model.text import mistake
from rackwright.model.types import NodeRole
from rackwright.model.written_folders import written_on
from rackwright.roles.dataset_cache.paths import CACHE, FILL, TIMER, UNITS

Relative = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$")
]
Remote = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*:[A-Za-z0-9_][A-Za-z0-9._/-]*$")
]


class Dataset(Frozen):
    """One dataset and where it comes from."""

    filesystem: str | None = Field(
        default=None, description="Shared filesystem of `storage:` that holds it, by name."
    )
    folder: Relative | None = Field(default=None, description="Its folder below that filesystem's path.")
    remote: Remote | None = Field(
        default=None, description="Instead of both: where rclone finds it, e.g. `store:datasets/imagenet`."
    )
    size_gib: int = Field(
        ge=1, le=2**20, description="Size limit of the dataset in GiB; a larger one is rejected."
    )
    keep: bool = Field(default=False, description="Whether a timer fetches it and it is never evicted.")
    checksums: Relative | None = Field(
        default=None,
        description="File in it with the SHA-256 of its files, as sha256sum prints them; a dataset that differs is rejected.",
    )

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.filesystem is None) == (self.remote is None) or (self.filesystem is None) != (
            self.folder is None
        ):
            raise mistake(
                "A dataset has one source: `filesystem` and `folder`, or `remote`.",
                "e.g. `{filesystem: data, folder: imagenet, size_gib: 160}`",
            )
        return self


class DatasetCacheOptions(RoleOptions, WritesUnitFiles):
    """A read cache of datasets on local scratch."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.WORKER})

    filesystem: str | None = Field(
        default=None,
        description="Name in `storage:` of a filesystem of kind local and purpose scratch. None: the only one that a "
        "node uses.",
    )
    limit_gib: int = Field(ge=1, le=2**20, description="Size limit of all datasets together in GiB.")
    project_id: int | None = Field(
        default=None,
        ge=1,
        le=2**30 - 1,
        description="XFS project on which the kernel enforces that limit too (mount option prjquota). None: only the "
        "program enforces it.",
    )
    datasets: dict[Slug, Dataset] = Field(min_length=1, description="Datasets by name.")
    group: GroupName | None = Field(
        default=None, description="Unix group that may read them. None: every user of the node."
    )
    rclone_config: NodePath = Field(
        default="/root/.config/rclone/rclone.conf",
        description="rclone's configuration with the store and its credentials, readable only by root; the site or "
        "another role writes it.",
    )
    fetch_hours: int = Field(default=12, ge=1, le=168, description="How long fetching one dataset may take.")

    def runs_on(self, node: Node) -> bool:
        """On workers that use such a filesystem."""
        return super().runs_on(node) and bool(scratch_of(node, self.filesystem))

    def filesystem_of(self, node: Node) -> Filesystem:
        """The node's scratch."""
        return scratch_of(node, self.filesystem)[0]

    @property
    def keeps(self) -> bool:
        """Whether the timer has something to fetch."""
        return any(one.keep for one in self.datasets.values())

    @property
    def has_remote(self) -> bool:
        """Whether a dataset comes from an object store."""
        return any(one.remote is not None for one in self.datasets.values())

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """The timer and what it starts."""
        return (f"{UNITS}/{FILL}", f"{UNITS}/{TIMER}")

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """No scratch, sources that a node does not mount, kept datasets that exceed the limit."""
        nodes = cluster.running("dataset_cache", self)
        if not cluster.running("dataset_cache"):
            yield (
                "",
                "No worker uses a filesystem of kind local and purpose scratch.",
                "e.g. `storage: {scratch: {kind: local, purpose: scratch, path: /scratch, roles: [worker]}}`",
            )
        yield from self._too_large()
        for node in nodes:
            if len(found := scratch_of(node, self.filesystem)) > 1:
                names = ", ".join(one.name for one in found)
                yield (
                    "filesystem",
                    f"{node.name} uses several scratch filesystems: {names}.",
                    "name one of them",
                )
                return
        yield from self._unmounted(nodes)
        yield from self._without_quota(nodes)
        yield from self._in_the_way(nodes)

    def _too_large(self) -> Iterable[tuple[str, str, str | None]]:
        for name, one in self.datasets.items():
            if one.size_gib > self.limit_gib:
                yield (
                    f"datasets.{name}.size_gib",
                    f"{name} takes {one.size_gib} GiB, but the cache has only {self.limit_gib}.",
                    None,
                )
        kept = sum(one.size_gib for one in self.datasets.values() if one.keep)
        if kept > self.limit_gib:
            yield (
                "limit_gib",
                f"Kept datasets take {kept} GiB, but the cache has only {self.limit_gib}.",
                None,
            )

    def _unmounted(self, nodes: Iterable[Node]) -> Iterable[tuple[str, str, str | None]]:
        for name, one in self.datasets.items():
            for node in nodes:
                mounted = {fs.name for fs in node.filesystems if fs.kind.shared}
                if one.filesystem is not None and one.filesystem not in mounted:
                    yield (
                        f"datasets.{name}.filesystem",
                        f"{node.name} does not use a shared filesystem {one.filesystem}.",
                        f"it uses: {', '.join(sorted(mounted)) or 'none'}",
                    )
                    break

    def _without_quota(self, nodes: Iterable[Node]) -> Iterable[tuple[str, str, str | None]]:
        for node in nodes if self.project_id is not None else ():
            path, makes = self.filesystem_of(node).path, node.offers(MakesFilesystems)
            shown = makes.made_options(node).get(path, ()) if makes is not None else ()
            if not {"prjquota", "pquota"} & set(shown):
                yield "project_id", f"{path} of {node.name} is mounted without project quotas.", None
                return

    def _in_the_way(self, nodes: Iterable[Node]) -> Iterable[tuple[str, str, str | None]]:
        """Folders of other roles in the cache."""
        seen = set()
        for node in nodes:
            cache = f"{self.filesystem_of(node).path}/{CACHE}"
            for one in written_on(node):
                if (one.path == cache or one.path.startswith(f"{cache}/")) and one.option not in seen:
                    seen.add(one.option)
                    yield (
                        "",
                        f"`{one.option}` is {one.path}, inside the dataset cache.",
                        "give it a separate folder",
                    )
