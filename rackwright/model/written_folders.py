"""Folders that grow on a node; each must be on the filesystem intended for it.

As in rackwright.model.interfaces, options classes implement `WritesBelow`, and no role refers to another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rackwright.model.cluster import Node


class WrittenFolder(NamedTuple):
    """A folder that grows on a node; its writers need the intended filesystem mounted."""

    path: str
    what: str
    """Name in messages, e.g. `docker's images`."""
    option: str
    """Option that sets it, e.g. `docker.data_root`."""
    units: tuple[str, ...] = ()
    """Units that write it; empty: only jobs and users do."""
    large: bool = True
    """Whether it grows so much that it belongs on local scratch, if the node has some."""


class WritesBelow:
    """Options of a role whose daemons, jobs or users write a lot below declared folders."""

    def written_folders(self, node: Node) -> tuple[WrittenFolder, ...]:
        """Such folders on this node."""
        raise NotImplementedError


def written_on(node: Node) -> tuple[WrittenFolder, ...]:
    """Such folders of all roles of a node."""
    return tuple(
        folder
        for options in node.options.values()
        if isinstance(options, WritesBelow)
        for folder in options.written_folders(node)
    )
