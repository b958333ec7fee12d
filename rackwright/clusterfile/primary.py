"""Finds the primary head; a cluster has exactly one."""

from __future__ import annotations

from rackwright.clusterfile.groups import Group
from rackwright.clusterfile.report import Report
from rackwright.documents.nearest import short, suggest
from rackwright.model.types import NodeRole


def find_primary(report: Report, groups: list[Group], *, complete: bool) -> str | None:
    """Name of the primary head; None if there is none, with the reason reported.

    `complete`: every group of the file was valid, so a missing head is really missing.
    """
    flagged = [group for group in groups if group.entry.primary]
    for group in flagged:
        _check_flag(report, group)
    heads = [group for group in groups if NodeRole.HEAD in group.roles]
    for group in flagged[1:]:
        line, _ = report.document.position((*flagged[0].path, "primary"))
        report.add(
            (*group.path, "primary"),
            f"A primary head is already declared on line {line}.",
            "set it on one head",
        )
    if flagged:
        return _named(flagged[0]) if flagged[0] in heads else None
    return _only_head(report, groups, heads, complete)


def _check_flag(report: Report, group: Group) -> None:
    path, given = (*group.path, "primary"), group.entry.primary
    if isinstance(given, str) and given not in group.names:
        if group.names:
            report.add(
                path,
                f"This group has no node {short(given)}.",
                suggest(given, group.names, what="true, or one of its nodes"),
            )
    elif NodeRole.HEAD not in group.roles and report.clean((*group.path, "roles")):
        report.add(path, "Only a head can be primary.", "add `head` to its roles")
    elif given is True and len(group.names) > 1:
        report.add(
            path,
            f"Only one node can be primary, but this group has {len(group.names)}.",
            f"name it, e.g. `primary: {group.names[0]}`",
        )


def _named(group: Group) -> str | None:
    """The node that a group declares primary; None if it names none or several."""
    given = group.entry.primary
    if isinstance(given, str):
        return given if given in group.names else None
    return group.names[0] if len(group.names) == 1 else None


def _only_head(report: Report, groups: list[Group], heads: list[Group], complete: bool) -> str | None:
    names = [name for group in heads for name in group.names]
    if len(names) == 1:
        return names[0]
    readable = (
        complete
        and all(group.names and group.roles for group in groups)
        and report.clean(("defaults", "roles"))
    )
    if not names and groups and readable:
        report.add(("nodes",), "The cluster has no head.", "give one node the role `head`")
    elif names and readable:
        report.add(
            (*heads[0].path, "nodes"),
            f"There are {len(names)} heads, but none is primary.",
            f"name one in its group: `primary: {names[0]}`",
        )
    return None
