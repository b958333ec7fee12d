"""Options of a role that installs a part of the locked GPU stack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from rackwright.errors import RackwrightError
from rackwright.lock.for_roles import Trouble, has_stack, lock_problems, loose_versions
from rackwright.lock.lock_file import read_lock
from rackwright.model.cluster import Cluster, Node
from rackwright.model.options import RoleOptions
from rackwright.model.types import NodeRole


class StackOptions(RoleOptions):
    """Base of such options: the role installs what is locked and rejects a lock that lacks it."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.WORKER, NodeRole.LOGIN})
    role: ClassVar[str]
    parts: ClassVar[tuple[str, ...]]
    """Components of the lock, the first of which every node of the role has."""

    @classmethod
    def nodes(cls, cluster: Cluster) -> tuple[Node, ...]:
        """Nodes the role runs on that need the first part."""
        return tuple(node for node in cluster.running(cls.role) if cls.needed_on(node))

    @classmethod
    def needed_on(cls, node: Node) -> bool:
        """Whether a node is declared to have what the parts are for."""
        return has_stack(node)

    def runs_on(self, node: Node) -> bool:
        """On nodes that need the parts."""
        return super().runs_on(node) and self.needed_on(node)

    def lock_problems(self, cluster: Cluster) -> Iterable[Trouble]:
        """A lock that cannot be used, or lacks this role's part for a kind of node."""
        found = list(lock_problems(cluster, self.role))
        return found or list(self._missing(cluster))

    def warnings(self, cluster: Cluster) -> Iterable[Trouble]:
        """Versions without a revision, which the lock reports as missing."""
        return loose_versions(cluster, self.role)

    def _missing(self, cluster: Cluster) -> Iterator[Trouble]:
        nodes = self.nodes(cluster)
        if not nodes or cluster.gpu_stack is None:
            return
        try:
            lock = read_lock(cluster)
        except RackwrightError:
            return  # lock_problems reports it
        for kind, node in sorted({(node.sku.name, node.os.id): node for node in reversed(nodes)}.items()):
            group = lock.group_of(node)
            if group is not None and not group.components.get(self.parts[0]):
                yield (
                    "",
                    f"The lock omits {self.parts[0]} for {kind[0]} on {kind[1]}.",
                    f"remove {self.role} from these nodes, or add it to gpu_stack and lock again",
                )
