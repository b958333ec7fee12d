"""Which files of systemd's units are declared on a node."""

from __future__ import annotations

from rackwright.model.cluster import Node
from rackwright.model.interfaces import KeepsUnitFiles, WritesUnitFiles

_ADMINISTRATORS = (
    "/etc/systemd/system/",
    "/etc/systemd/system.control/",
    "/run/systemd/system/",
    "/run/systemd/system.control/",
    "/usr/local/lib/systemd/system/",
)
"""Folders whose files override the distribution's (systemd.unit(5), UNIT FILE LOAD PATH, read 2026-11-23)."""
_OWN = "rackwright-"
"""Prefixes of units that rackwright commands install."""


def declared_unit_files(node: Node) -> frozenset[str]:
    """Paths of the unit files and drop-ins that the roles of a node write."""
    return frozenset(
        path
        for options in node.options.values()
        if isinstance(options, WritesUnitFiles)
        for path in options.unit_files(node)
    )


def foreign_unit_files(node: Node, fragment: str, drop_ins: tuple[str, ...]) -> tuple[str, ...]:
    """Undeclared files of a unit; empty unless a role on the node requests this check.

    `fragment`: the unit file itself, empty if the unit is masked or has none.
    """
    keeper = node.offers(KeepsUnitFiles)
    if keeper is None:
        return ()
    declared = {*keeper.allowed_drop_ins, *declared_unit_files(node)}
    return tuple(
        path
        for path in (fragment, *drop_ins)
        if path.startswith(_ADMINISTRATORS)
        and path not in declared
        and not (path == fragment and path.rpartition("/")[2].startswith(_OWN))
    )
