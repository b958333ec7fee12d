"""Paths in a BMC's resource tree: the system, its manager, its chassis, its event log.

Names differ by vendor, and one BMC may show several systems: NVIDIA's HGX baseboard has a separate tree next to the
host's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rackwright.bmc.documents import Document, document, last_part, link, links, sub, text
from rackwright.bmc.redfish_session import RedfishSession
from rackwright.bmc.target import NoAnswer, ResourceBroken, ResourceMissing
from rackwright.errors import BmcError

MEMBERS_MAX = 64
"""Most members that are read of one collection."""
_SYSTEMS_MAX = 8
_CHASSIS_MAX = 8
_BASEBOARD = re.compile(r"(?i)(^|_)(hgx|gpu|baseboard|erot|irot)(_|\d|$)")
_USUAL = ("System.Embedded.1", "1", "system", "Self")
"""Ids of the host in iDRAC; iLO, Supermicro and XCC; OpenBMC; AMI."""


class Tree:
    """The resources of one BMC that belong to its node; each is looked up once."""

    def __init__(self, session: RedfishSession, *, lenient: bool = False) -> None:
        """`lenient`: record in `unread` what the BMC fails to read, and continue."""
        self.session = session
        self.unread: list[str] = []
        self._lenient = lenient
        self._system: str | None = None

    def lenient(self) -> Tree:
        """The same tree, but a part that the BMC fails to read is only skipped."""
        tree = Tree(self.session, lenient=True)
        tree._system = self._system
        return tree

    def system_path(self) -> str:
        """The node's own system."""
        if self._system is None:
            self._system = self._find_system()
        return self._system

    def system(self) -> Document:
        """The system's document as it is now."""
        return self.session.get(self.system_path())

    def optional(self, path: str | None) -> Document:
        """The document at a path; empty if the BMC has none."""
        if path is None:
            return {}
        try:
            return self.session.get(path)
        except ResourceBroken:
            if not self._lenient:
                raise
            self.unread.append(path)
        except ResourceMissing:
            pass
        return {}

    def members(self, path: str | None, limit: int = MEMBERS_MAX) -> Iterator[Document]:
        """The documents of a collection's members, read one by one unless the BMC expands them."""
        if path is None:
            return
        collection = self._expanded(path) or self.optional(path)
        members = collection.get("Members")
        for one in members[:limit] if isinstance(members, list) else ():
            if len(document(one)) > 1:
                yield one
            elif (there := document(one).get("@odata.id")) and isinstance(there, str):
                yield self.optional(there)

    def managers(self, system: Document) -> list[Document]:
        """The BMC's manager; prefers the one that the system names."""
        named = links(sub(system, "Links"), "ManagedBy")
        if not named:
            collection = self.optional(link(self.session.root(), "Managers"))
            named = [one for one in links(collection, "Members") if not is_baseboard(last_part(one))]
        return [found for one in named[:2] if (found := self.optional(one))]

    def chassis(self, system: Document) -> list[Document]:
        """The system's chassis and its enclosing chassis: NVIDIA's sensors are in the outer one."""
        named = links(sub(system, "Links"), "Chassis")
        if not named:
            collection = self.optional(link(self.session.root(), "Chassis"))
            named = [one for one in links(collection, "Members") if not is_baseboard(last_part(one))]
        found: dict[str, Document] = {}
        for path in named[:_CHASSIS_MAX]:
            found.setdefault(path, self.optional(path))
            outer = link(sub(found[path], "Links"), "ContainedBy")
            if outer is not None and not is_baseboard(last_part(outer)) and len(found) < _CHASSIS_MAX:
                found.setdefault(outer, self.optional(outer))
        return [one for one in found.values() if one]

    def _expanded(self, path: str) -> Document:
        """The collection with its members expanded, if the BMC supports that."""
        features = sub(self.session.root(), "ProtocolFeaturesSupported", "ExpandQuery")
        if features.get("NoLinks") is not True:
            return {}
        try:
            return self.session.get(f"{path}?$expand=.($levels=1)")
        except NoAnswer:
            raise
        except BmcError:  # some advertise it but fail
            return {}

    def _find_system(self) -> str:
        root = self.session.root()
        collection = self.session.get(link(root, "Systems") or "/redfish/v1/Systems")
        paths = links(collection, "Members")[:_SYSTEMS_MAX]
        if not paths:
            raise BmcError(
                f"{self.session.target} lists no system.",
                hint="a chassis manager is not a BMC: declare the address of the node's BMC",
            )
        if len(paths) > 1:
            paths = choose_system({path: self.optional(path) for path in paths})
        if len(paths) != 1:
            names = ", ".join(sorted(map(last_part, paths)))
            raise BmcError(
                f"{self.session.target} lists several systems: {names}.",
                hint="a chassis manager is not a BMC: declare the address of the node's BMC",
            )
        return paths[0]


def choose_system(documents: dict[str, Document]) -> list[str]:
    """Paths of systems that may be the host; exactly one if that is certain."""
    hosts = [
        path
        for path, doc in documents.items()
        if not is_baseboard(last_part(path)) and text(doc, "SystemType") in (None, "Physical", "OS")
    ] or list(documents)
    for usual in _USUAL:
        if same := [path for path in hosts if last_part(path) == usual]:
            return same
    return hosts


def is_baseboard(name: str) -> bool:
    """Whether the Id belongs to a GPU baseboard's tree, e.g. HGX_Baseboard_0, HGX_BMC_0."""
    return _BASEBOARD.search(name) is not None
