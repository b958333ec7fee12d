"""Folders that grow on a node, so that each is on the filesystem that is meant for it.

As rackwright.model.interfaces: options classes implement `WritesBelow`, and no role names or imports another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rackwright.model.cluster import Node


class WrittenFolder(NamedTuple):
    """A folder that grows on a node: what writes it must find the filesystem that is meant for it."""

    path: str
    what: str
    """For messages, e.g. `docker's images`."""
    option: str
    """Where it is declared, e.g. `docker.data_root`."""
    units: tuple[str, ...] = ()
    """Units that write it; empty: jobs and users alone do."""
    large: bool = True
    """Whether it grows so much that it belongs on local scratch where a node has some."""


class WritesBelow:
    """Options of a role whose daemons, jobs or users write much below declared folders."""

    def written_folders(self, node: Node) -> tuple[WrittenFolder, ...]:
        """Those on this node."""
        raise NotImplementedError


def written_on(node: Node) -> tuple[WrittenFolder, ...]:
    """Such folders of all roles of a node."""
    return tuple(
        folder
        for options in node.options.values()
        if isinstance(options, WritesBelow)
        for folder in options.written_folders(node)
    )
