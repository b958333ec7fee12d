"""Every resolved value with its origin: a line of the file, a default, or the catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import BaseModel

from rackwright.catalog.read import catalogue
from rackwright.clusterfile.file import FabricSection
from rackwright.clusterfile.groups import Group
from rackwright.clusterfile.load import Loaded
from rackwright.clusterfile.report import show_path
from rackwright.clusterfile.storage_section import FilesystemSection
from rackwright.documents.document import DataPath
from rackwright.model.cluster import Node


class Kind(StrEnum):
    """What sets a value."""

    FILE = "file"
    DEFAULTS = "defaults"
    OVERRIDE = "override"
    DERIVED = "derived"
    CATALOGUE = "catalogue"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from; `line` is that of the cluster file, None for defaults and the catalogue."""

    kind: Kind
    text: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """One resolved value; `value` is JSON data."""

    path: str
    value: Any
    origin: Origin


_DEFAULT = Origin(Kind.DEFAULT, "default")


class Origins:
    """Looks up values and origins of one loaded file."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._document = loaded.document
        self._groups = {name: group for group in loaded.groups for name in group.names}

    def cluster_values(self) -> Iterator[Value]:
        """Cluster-wide settings: name, networks, fabrics, storage, ssh, mirrors, burn-in, roles."""
        cluster = self._loaded.cluster
        for field in ("name", "domain"):
            yield Value(field, getattr(cluster, field), self._origin(("cluster", field)))
        for name, network in cluster.networks.items():
            yield from self._section(("networks", name), network, without=("name",))
        yield from self._fabrics()
        for name in cluster.storage:
            path = ("storage", name)
            section = FilesystemSection.model_validate(self._document.value(path))
            yield from self._section(path, section)
        for key in ("ssh", "mirrors", "burnin", "waves"):
            yield from self._section((key,), getattr(cluster, key))
        if cluster.gpu_stack is not None:
            yield from self._section(("gpu_stack",), cluster.gpu_stack)
        for role, options in self._loaded.roles.items():
            yield from self._section(("roles", role), options)

    def _fabrics(self) -> Iterator[Value]:
        """Cabling rules; `rackwright fabric show` lists the resulting cables."""
        for name in self._loaded.cluster.fabrics:
            path = ("fabrics", name)
            entry = self._document.value(path)
            yield from self._section(path, FabricSection.model_validate(entry if entry is not None else {}))

    def node_values(self, node: Node) -> Iterator[Value]:
        """All settings of one node, including its roles' options."""
        group = self._groups[node.name]
        yield from self._node_fields(node, group)
        yield from self._sku(node, group)
        for role, options in node.options.items():
            base = ("roles", role)
            override: DataPath = (*group.path, "options", role)
            for path, value in _leaves((), options):
                shown = show_path(("options", role, *path))
                if role in group.entry.options and self._document.holds(override + path):
                    yield Value(shown, value, self._at(override + path, Kind.OVERRIDE, "group override, "))
                else:
                    yield Value(shown, value, self._origin(base + path))

    def _node_fields(self, node: Node, group: Group) -> Iterator[Value]:
        path = group.path
        yield Value("name", node.name, self._at((*path, "nodes")))
        yield Value("fqdn", node.fqdn, self._at(("cluster", "domain"), Kind.DERIVED, "name and domain, "))
        yield Value("roles", sorted(node.roles), self._own_or_default(group, "roles"))
        yield Value("primary", node.primary, self._primary(node, group))
        yield Value("platform", node.platform, self._own_or_default(group, "platform"))
        yield Value("os", node.os.id, self._own_or_default(group, "os"))
        for entry in node.addresses:
            rail = f"[{entry.rail}]" if self._loaded.cluster.networks[entry.network].rails > 1 else ""
            where: DataPath = (*path, "addresses", entry.network)
            yield Value(f"addresses.{entry.network}{rail}", str(entry.address), self._counted(group, where))
        switches = list(node.switches) if len(node.switches) > 1 else node.switch
        for key, source, value in (
            ("mac", "macs", node.mac),
            ("rack", "rack", node.rack),
            ("position", "position", node.position),
            ("switch", "switch", switches),
        ):
            yield Value(key, value, self._counted(group, (*path, source)))
        lab = self._own_or_default(group, "lab")
        yield Value("lab", None if node.lab is None else node.lab.model_dump(), lab)
        note = f"{group.entry.mig}, " if isinstance(group.entry.mig, str) else ""
        mig = self._at((*path, "mig"), note=note) if self._document.holds((*path, "mig")) else _DEFAULT
        if node.workload is not None:
            yield Value("workload", node.workload, self._own_or_default(group, "workload"))
        yield Value("mig", node.mig or "off", mig)

    def _sku(self, node: Node, group: Group) -> Iterator[Value]:
        sku = node.sku
        yield Value("sku.name", sku.name, self._own_or_default(group, "sku"))
        path: DataPath = ("skus", sku.name)
        own = self._document.holds(path)
        note = "overrides the catalogue, " if own and sku.name in catalogue() else ""
        for below, value in _leaves((), sku, without=("name", "sources", "published")):
            if own:
                declared = self._document.holds(path + below)
                origin = self._at(path + below, Kind.FILE, note) if declared else _DEFAULT
            else:
                origin = Origin(Kind.CATALOGUE, f"catalogue entry {sku.name}")
            yield Value(show_path(("sku", *below)), value, origin)

    def _section(self, path: DataPath, model: BaseModel, without: tuple[str, ...] = ()) -> Iterator[Value]:
        for below, value in _leaves((), model, without=without):
            yield Value(show_path(path + below), value, self._origin(path + below))

    def _origin(self, path: DataPath) -> Origin:
        if path[-1] == "first" and isinstance(self._document.value(path[:-1]), int | str):
            return self._at(path[:-1])  # the short form of a rule sets `first`
        return self._at(path) if self._document.holds(path) else _DEFAULT

    def _at(self, path: DataPath, kind: Kind = Kind.FILE, note: str = "") -> Origin:
        line, _ = self._document.position(path)
        return Origin(kind, f"{note}{self._document.file}:{line}", line)

    def _own_or_default(self, group: Group, key: str) -> Origin:
        if self._document.holds((*group.path, key)):
            return self._at((*group.path, key))
        if self._document.holds(("defaults", key)):
            return self._at(("defaults", key), Kind.DEFAULTS, "defaults, ")
        return _DEFAULT

    def _counted(self, group: Group, path: DataPath) -> Origin:
        """Origin of a value computed from the group's rule and the node's index in the range."""
        if not self._document.holds(path):
            return _DEFAULT
        if len(group.names) == 1:
            return self._at(path)
        return self._at(path, Kind.DERIVED, f"counted over {group.entry.nodes}, ")

    def _primary(self, node: Node, group: Group) -> Origin:
        if self._document.holds((*group.path, "primary")):
            return self._at((*group.path, "primary"))
        return Origin(Kind.DERIVED, "the only head") if node.primary else _DEFAULT


def _leaves(path: DataPath, value: Any, without: tuple[str, ...] = ()) -> Iterator[tuple[DataPath, Any]]:  # noqa: ANN401
    """Leaf values below a model as JSON data, each with its path."""
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            if name not in without:
                yield from _leaves((*path, name), getattr(value, name))
    elif isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves((*path, str(key)), inner)
    elif isinstance(value, tuple | list) and any(isinstance(inner, BaseModel) for inner in value):
        for index, inner in enumerate(value):
            yield from _leaves((*path, index), inner)
    else:
        yield path, _plain(value)


def _plain(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, frozenset | set):
        return sorted(_plain(inner) for inner in value)
    if isinstance(value, tuple | list):
        return [_plain(inner) for inner in value]
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    return value if value is None or isinstance(value, bool | int | float) else str(value)
