"""Everything that the nodes of a cluster fetch: from the plan of empty nodes, from the lock, and from what roles name."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rackwright.data import Site
from rackwright.engine.reports import Reports
from rackwright.errors import RackwrightError
from rackwright.lock.content import GroupLock
from rackwright.lock.lock_file import read_lock
from rackwright.lock.references import parse
from rackwright.model.cluster import Cluster, Node
from rackwright.model.mirrored import MirrorItem, NeedsMirrored
from rackwright.plan.node_plan import NodePlan, PlannedOperation
from rackwright.pyinfra_driver.driver import Driver
from rackwright.pyinfra_driver.offline import EmptyNode
from rackwright.shipped import deploy_of

_FROM_URL = re.compile(r"(key|sha256) ([0-9A-Fa-f]+) from (https?://\S+)")
_VERSION = re.compile(r"[0-9*].*")
_KINDS = ("package", "image", "chart", "manifest", "wheel", "file")


@dataclass(frozen=True)
class Item:
    """One thing to mirror, and the roles that need it."""

    item: MirrorItem
    roles: tuple[str, ...]
    digest: str | None = None
    """Of an image, as the lock has it."""

    @property
    def label(self) -> str:
        """As messages name it."""
        version = f" {self.item.version}" if self.item.version else ""
        return f"{self.item.kind} {self.item.name}{version}"


@dataclass(frozen=True)
class Listing:
    """All items, and what could not be listed."""

    items: tuple[Item, ...]
    unknown: tuple[str, ...]
    """Full sentences: nodes whose needs are not known."""

    def of(self, *kinds: str) -> tuple[Item, ...]:
        """Items of some kinds."""
        return tuple(one for one in self.items if one.item.kind in kinds)


def list_items(cluster: Cluster, deploy: Path | None = None) -> Listing:
    """Evaluates the site's deploy for one node of each kind, without a connection; loads pyinfra."""
    found: dict[MirrorItem, set[str]] = {}
    unknown = []
    for node in _one_of_each(cluster):
        reports = Reports()
        site = Site(cluster, node, offline=True)
        Driver([site], deploy or deploy_of(cluster.path), reports, connector=EmptyNode).plan()
        plan = reports.plans[node.name]
        if plan.error is not None:
            unknown.append(f"What {node.name} needs is not known: {plan.error}")
        for item in _planned(cluster, node, plan):
            found.setdefault(replace(item, role=""), set()).add(item.role)
    for item in _named(cluster):
        found.setdefault(replace(item, role=""), set()).add(item.role)
    digests = locked_digests(cluster)
    items = [
        Item(item, tuple(sorted(roles)), digests.get(item.name) if item.kind == "image" else None)
        for item, roles in found.items()
    ]
    return Listing(tuple(sorted(items, key=_order)), tuple(unknown))


def locked_digests(cluster: Cluster) -> dict[str, str]:
    """Digests of images in the cluster's lock; none without a lock."""
    if not cluster.lock_path.exists():
        return {}
    return dict(read_lock(cluster).images)


def _order(one: Item) -> tuple[int, str, str, str]:
    item = one.item
    return _KINDS.index(item.kind), item.platform or "", item.name, item.version or ""


def _one_of_each(cluster: Cluster) -> Iterator[Node]:
    """Nodes that differ in what their packages depend on."""
    seen: set[Hashable] = set()
    for node in cluster.nodes:
        kind = (
            node.sku.name,
            node.os.id,
            node.roles,
            node.primary,
            node.platform,
            tuple(sorted(node.options)),
        )
        if kind not in seen:
            seen.add(kind)
            yield node


def _planned(cluster: Cluster, node: Node, plan: NodePlan) -> Iterator[MirrorItem]:
    group = _group(cluster, node)
    for operation in plan.operations:
        for change in operation.changes:
            if change.kind == "package" and change.after is not None:
                after = change.after.removesuffix(", held")
                version = after if _VERSION.fullmatch(after) else None
                yield MirrorItem(
                    "package",
                    change.target,
                    version,
                    sha256=None if group is None else group.sha256.get(change.target),
                    platform=node.os.id,
                    role=operation.role,
                )
            elif (fetched := _FROM_URL.fullmatch(change.after or "")) is not None:
                yield _file(operation, fetched)


def _file(operation: PlannedOperation, fetched: re.Match[str]) -> MirrorItem:
    """The plan shows the beginning of a file's SHA-256; the operation's command has all of it."""
    kind, known, url = fetched.groups()
    whole = (
        re.search(rf"\b{known}[0-9a-f]{{{64 - len(known)}}}\b", " ".join(operation.commands))
        if kind == "sha256"
        else None
    )
    name = url.rstrip("/").rpartition("/")[2]
    return MirrorItem("file", name, None, url, None if whole is None else whole[0], role=operation.role)


def _group(cluster: Cluster, node: Node) -> GroupLock | None:
    try:
        return read_lock(cluster).group_of(node) if cluster.lock_path.exists() else None
    except RackwrightError:
        return None


def _named(cluster: Cluster) -> Iterable[MirrorItem]:
    for node in cluster.nodes:
        for options in node.options.values():
            if isinstance(options, NeedsMirrored):
                for item in options.mirrored(cluster, node):
                    yield replace(item, name=str(parse(item.name))) if item.kind == "image" else item
