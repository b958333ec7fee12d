"""Node groups with ranges expanded and defaults filled in."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.catalog import mig
from rackwright.clusterfile.file import Defaults, LabSection, NodeGroup
from rackwright.clusterfile.report import Report
from rackwright.clusterfile.sections import read_section
from rackwright.documents.document import DataPath
from rackwright.documents.nearest import suggest
from rackwright.documents.yaml_data import Data
from rackwright.model.ranges import RangeMistake, expand
from rackwright.model.sku import Sku
from rackwright.model.text import host_label_mistake
from rackwright.model.types import NodeRole, Platform, Workload
from rackwright.osfamily.known import OsRelease

MAX_NODES = 20_000


@dataclass(frozen=True)
class Group:
    """One entry of `nodes:`; `names` is empty if the range is invalid."""

    index: int
    entry: NodeGroup
    names: tuple[str, ...]
    roles: frozenset[NodeRole]
    os: OsRelease | None
    platform: Platform
    sku: Sku | None
    workload: Workload | None
    lab: LabSection | None
    mig: dict[str, int]
    """The MIG layout, resolved if the file names one; empty if MIG is off or the name is unknown."""

    @property
    def path(self) -> DataPath:
        """Path of the group in the file."""
        return ("nodes", self.index)

    def first_name(self) -> str:
        """Name of the group in messages."""
        return self.names[0] if self.names else self.entry.nodes


def read_groups(report: Report, raw: Data, defaults: Defaults, skus: dict[str, Sku]) -> list[Group]:
    """The valid groups; mistakes are reported."""
    groups: list[Group] = []
    owners: dict[str, DataPath] = {}
    _check_sku(report, defaults.sku, ("defaults", "sku"), skus)
    for index, item in enumerate(raw if isinstance(raw, list) else ()):
        path: DataPath = ("nodes", index)
        entry = read_section(report, NodeGroup, item, path)
        if entry is None:
            continue
        if entry.sku is not None:
            _check_sku(report, entry.sku, (*path, "sku"), skus)
        names = _names(report, (*path, "nodes"), entry.nodes)
        _claim(report, names, (*path, "nodes"), owners)
        groups.append(_group(report, index, entry, names, defaults, skus))
    if len(owners) > MAX_NODES:
        report.add(
            ("nodes",), f"The cluster has {len(owners)} nodes; rackwright supports at most {MAX_NODES}."
        )
    return groups


def _names(report: Report, path: DataPath, text: str) -> tuple[str, ...]:
    try:
        names = expand(text)
    except RangeMistake as error:
        report.add(path, error.message, error.hint)
        return ()
    for name in names:
        wrong = host_label_mistake(name)
        if wrong is not None:
            report.add(path, wrong if name == text else f"{wrong[:-1]}: {name[:70]}.")
            return ()
    return names


def _claim(report: Report, names: tuple[str, ...], path: DataPath, owners: dict[str, DataPath]) -> None:
    twice: dict[DataPath, list[str]] = {}
    for name in names:
        owner = owners.setdefault(name, path)
        if owner != path:
            twice.setdefault(owner, []).append(name)
    for owner, shared in twice.items():
        line, _ = report.document.position(owner)
        more = f" and {len(shared) - 1} more are" if len(shared) > 1 else " is"
        report.add(
            path, f"{shared[0]}{more} already declared on line {line}.", "declare each node in one group only"
        )


def _check_sku(report: Report, name: str | None, path: DataPath, skus: dict[str, Sku]) -> None:
    if name is not None and name not in skus and report.clean(("skus", name)):
        report.add(
            path,
            "SKU not found in the catalogue or under `skus`.",
            suggest(name, skus, what="known SKUs"),
        )


def _group(
    report: Report,
    index: int,
    entry: NodeGroup,
    names: tuple[str, ...],
    defaults: Defaults,
    skus: dict[str, Sku],
) -> Group:
    path: DataPath = ("nodes", index)
    for key in ("roles", "os", "sku"):
        if getattr(entry, key) is None and getattr(defaults, key) is None and _clean(report, path, key):
            report.add(
                (*path, key),
                f"Neither the group nor `defaults` sets `{key}`.",
                f"add `{key}:` to the group or to `defaults`",
                key=True,
            )
    roles = entry.roles if entry.roles is not None else defaults.roles
    sku = skus.get(entry.sku or defaults.sku or "")
    layouts = mig.named(sku.gpus if sku is not None else None)
    return Group(
        index=index,
        entry=entry,
        names=names,
        roles=frozenset(roles or ()),
        os=entry.os or defaults.os,
        platform=entry.platform or defaults.platform or Platform.BARE_METAL,
        sku=sku,
        workload=entry.workload or (None if NodeRole.HEAD in (roles or ()) else defaults.workload),
        lab=entry.lab or defaults.lab,
        mig=layouts.get(entry.mig, {}) if isinstance(entry.mig, str) else entry.mig,
    )


def _clean(report: Report, path: DataPath, key: str) -> bool:
    return report.clean((*path, key)) and report.clean(("defaults", key))
