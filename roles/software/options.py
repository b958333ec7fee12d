"""Options of the software role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field, StringConstraints

from rackwright.model.cluster import Cluster, Node
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.storage import FilesystemPurpose
from rackwright.model.strings import NodePath

_Below = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$")
]


class SpiderCache(Frozen):
    """A cache of module trees that the site keeps with `update_lmod_system_cache_files`."""

    folder: NodePath = Field(description="Folder of the cache, e.g. /software/lmod/cache.")
    timestamp: NodePath = Field(description="File whose timestamp is the time of the trees' last change.")


class SoftwareOptions(RoleOptions):
    """Lmod in login shells of ordinary users, with the module trees of the site."""

    below: tuple[_Below, ...] = Field(
        default=("modules",),
        description="Module trees below each filesystem of purpose `software` that the node uses, e.g. `modules`.",
    )
    modulepath: tuple[NodePath, ...] = Field(
        default=(), description="Further module trees, after those, e.g. of a repository below /cvmfs."
    )
    cache: bool = Field(
        default=True,
        description="Whether Lmod uses caches. false: every `module avail` reads all trees, so new modules appear at once.",
    )
    spider_cache: SpiderCache | None = Field(
        default=None,
        description="Where the site keeps a cache of its trees. None: Lmod has only per-user caches.",
    )

    def runs_on(self, node: Node) -> bool:
        """Where there is a tree."""
        return bool(self.modulepath) or any(
            one.purpose is FilesystemPurpose.SOFTWARE for one in node.filesystems
        )

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """A cache that is turned off, and trees that are one tree."""
        if self.spider_cache is not None and not self.cache:
            yield "spider_cache", "`cache: false` ignores this cache.", "remove one of them"
        for node in cluster.running("software", self):
            trees = self.trees(node)
            if not trees:
                yield "below", f"{node.name} has no module tree.", "e.g. `below: [modules]`"
                return
            for tree in trees:
                if trees.count(tree) > 1:
                    yield (
                        "modulepath",
                        f"{tree} is listed twice as a module tree of {node.name}.",
                        "name it once",
                    )
                    return

    def trees(self, node: Node) -> tuple[str, ...]:
        """MODULEPATH of a node, before the distribution's own."""
        software = (one for one in node.filesystems if one.purpose is FilesystemPurpose.SOFTWARE)
        return (*(f"{one.path}/{name}" for one in software for name in self.below), *self.modulepath)
