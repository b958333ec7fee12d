"""Mistakes of the scratch role that need the cluster to be found."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import BoundsHooks
from rackwright.model.ranges import fold
from rackwright.model.storage import MakesFilesystems, on_a_filesystem, scratch_of
from rackwright.model.written_folders import written_on
from rackwright.roles.scratch.options import ScratchOptions
from rackwright.workload.lookup import declared_on

Problem = tuple[str, str, str | None]
_SPARE_SECONDS = 60
"""For the other scripts of an epilog, and the lock of this one."""
_QUOTA_OPTIONS = frozenset({"prjquota", "pquota"})
_ATIME_OPTIONS = frozenset(
    {"atime", "noatime", "relatime", "norelatime", "strictatime", "nostrictatime", "defaults"}
)
_RELATIME_LEAST_HOURS = 48
"""relatime sets an access time once in 24 hours (mount(8)): a file that is read daily may look unread for almost 48."""


def problems_of(options: ScratchOptions, cluster: Cluster) -> Iterator[Problem]:
    """All of them."""
    nodes = cluster.running("scratch", options)
    if not cluster.running("scratch"):
        wanted = f"the filesystem {options.filesystem}" if options.filesystem else "a filesystem"
        yield (
            "filesystem" if options.filesystem else "",
            f"No worker uses {wanted} of kind local and purpose scratch.",
            "e.g. `storage: {scratch: {kind: local, purpose: scratch, path: /scratch, roles: [worker]}}`",
        )
    for node in nodes:
        found = scratch_of(node, options.filesystem)
        if len(found) > 1:
            names = ", ".join(one.name for one in found)
            yield (
                "filesystem",
                f"{node.name} uses several scratch filesystems: {names}.",
                "name one of them",
            )
            return
    if options.warn_hours > options.fail_hours:
        yield "warn_hours", "`warn_hours` is more than `fail_hours`.", None
    yield from _without_manager(options, nodes)
    yield from _without_time(options, nodes)
    yield from _quota(options, nodes)
    yield from _unread(options, nodes)
    yield from _access(options, nodes)
    yield from _in_the_way(options, nodes)
    yield from _elsewhere(options, cluster)


def _without_manager(options: ScratchOptions, nodes: Iterable[Node]) -> Iterator[Problem]:
    if names := [node.name for node in nodes if options.jobs and not _has_prolog(node)]:
        yield (
            "jobs",
            f"{fold(names)} has no workload manager with a prolog, which makes the folders of jobs.",
            "add `roles.slurm`, or `jobs: false`",
        )


def _has_prolog(node: Node) -> bool:
    manager = declared_on(node)
    return manager is not None and "prolog" in manager.hooks


def _without_time(options: ScratchOptions, nodes: Iterable[Node]) -> Iterator[Problem]:
    """An epilog that the workload manager ends drains the node."""
    bounds = [bound for node in nodes if (bound := node.offers(BoundsHooks)) is not None]
    least = min((bound.hook_seconds for bound in bounds), default=None)
    if options.jobs and least is not None and options.remove_seconds + _SPARE_SECONDS > least:
        yield (
            "remove_seconds",
            f"An epilog may remove files for {options.remove_seconds} s, but is killed after {least} s: that drains the node.",
            f"at most {max(least - _SPARE_SECONDS, 1)}, or a longer `slurm: {{timeouts: {{prolog_epilog: ...}}}}`",
        )


def _quota(options: ScratchOptions, nodes: Iterable[Node]) -> Iterator[Problem]:
    if options.quota_gib is None:
        return
    times = "noatime" if options.user_hours is None else "relatime"
    for node in nodes:
        path, makes = options.filesystem_of(node).path, node.offers(MakesFilesystems)
        kind = makes.made_filesystems(node).get(path) if makes is not None else None
        if makes is None or kind is None:
            continue  # reported by the section `storage`
        if kind != "xfs":
            yield "quota_gib", f"{path} of {node.name} is {kind}, but job limits need xfs.", None
            return
        if _QUOTA_OPTIONS.isdisjoint(makes.made_options(node).get(path, ())):
            yield (
                "quota_gib",
                f"{path} of {node.name} is mounted without project quotas.",
                f"e.g. `storage_layout: {{filesystems: {{{path}: {{mount_options: [{times}, prjquota]}}}}}}`",
            )
            return


def _unread(options: ScratchOptions, nodes: Iterable[Node]) -> Iterator[Problem]:
    """Without access times a file that is read every day looks as old as its last change, and is removed."""
    hours = options.user_hours
    if hours is None or not options.places:
        return
    for node in nodes:
        path, makes = options.filesystem_of(node).path, node.offers(MakesFilesystems)
        given = makes.made_options(node).get(path) if makes is not None else None
        if given is None:
            continue  # reported by the section `storage`
        access = _access_times(given)
        kept = ", ".join(("relatime", *(one for one in given if one not in _ATIME_OPTIONS)))
        if access == "noatime":
            yield (
                "user_hours",
                f"{path} of {node.name} is mounted with noatime: files that are read every day would be removed as unread.",
                f"e.g. `storage_layout: {{filesystems: {{{path}: {{mount_options: [{kept}]}}}}}}`",
            )
            return
        if access == "relatime" and hours < _RELATIME_LEAST_HOURS:
            yield (
                "user_hours",
                f"{path} of {node.name} is mounted with relatime, which records reads up to 24 h late: {hours} h is too short.",
                f"at least {_RELATIME_LEAST_HOURS}, or `strictatime` in `mount_options`",
            )
            return


def _access(options: ScratchOptions, nodes: Iterable[Node]) -> Iterator[Problem]:
    """What the program on the node refuses (node_folders.mounted), in each prolog and in the timer's run."""
    fails = "every prolog" if options.jobs else "the timer that removes leftovers"
    for node in nodes:
        path, makes = options.filesystem_of(node).path, node.offers(MakesFilesystems)
        found = makes.made_access(node).get(path) if makes is not None else None
        if found is None:
            continue
        owner, bits = found[0], int(found[1], 8)
        if owner != "root" or (bits & 0o022 and not bits & stat.S_ISVTX):
            state = f"{path} of {node.name} has owner {owner} and mode {found[1]}"
            yield (
                "",
                f"{state}: other users could rename what root makes in it, so {fails} would fail.",
                f"e.g. `storage_layout: {{filesystems: {{{path}: {{owner: root, mode: '755'}}}}}}`, or `mode: '1777'`",
            )
            return


def _access_times(given: Iterable[str]) -> str:
    """Which of three ways the kernel keeps access times: relatime is its default, strictatime wins over noatime (mount(2))."""
    last = {one.replace("no", "", 1) if one.startswith("no") else one: one for one in given}
    if last.get("strictatime") == "strictatime":
        return "strictatime"
    return "noatime" if last.get("atime") == "noatime" else "relatime"


def _in_the_way(options: ScratchOptions, nodes: Iterable[Node]) -> Iterator[Problem]:
    seen = set()
    for node in nodes:
        path = options.filesystem_of(node).path
        for one in written_on(node):
            first = one.path.removeprefix(f"{path}/").partition("/")[0]
            if one.option in seen or (one.path != path and not one.path.startswith(f"{path}/")):
                continue
            if one.path == path or first in options.reserved:
                seen.add(one.option)
                what = "the filesystem itself" if one.path == path else f"the folder {first} of this role"
                yield (
                    "",
                    f"`{one.option}` is {one.path}, {what}.",
                    f"give it a separate folder, e.g. {path}/{one.option.partition('.')[0]}",
                )


def _elsewhere(options: ScratchOptions, cluster: Cluster) -> Iterator[Problem]:
    """Options are often the same on all nodes: one without scratch would fill its boot disk below the same path."""
    paths = {options.filesystem_of(node).path for node in cluster.running("scratch", options)}
    found: dict[tuple[str, str], list[str]] = {}
    for node in cluster.nodes:
        for one in written_on(node):
            for path in paths:
                if one.path.startswith(f"{path}/") and not on_a_filesystem(node, one.path):
                    found.setdefault((one.option, path), []).append(node.name)
    for (option, path), names in found.items():
        yield (
            "",
            f"`{option}` is below {path}, and {fold(names)} has no filesystem there: its boot disk would fill.",
            "declare scratch for these nodes too, or another folder by their group's `options`",
        )
