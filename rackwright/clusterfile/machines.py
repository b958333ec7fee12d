"""Declared hardware values of each node: serial number, MAC, BMC, and the disks to install on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address
from pathlib import Path

from rackwright.clusterfile.bmcs import bmc_addresses, check_defaults, resolve_bmc
from rackwright.clusterfile.file import Defaults
from rackwright.clusterfile.groups import Group
from rackwright.clusterfile.installs import check_install, list_path, resolve_install
from rackwright.clusterfile.machine_list import Machine, MachineList, read_machine_list
from rackwright.clusterfile.placement import Location
from rackwright.clusterfile.report import Report
from rackwright.documents.document import DataPath
from rackwright.model.bmc import Bmc
from rackwright.model.cluster import Network
from rackwright.model.install import DiskRule, Install

MAX_MISTAKES = 20


@dataclass(frozen=True, slots=True)
class Declared:
    """Declared hardware values of one node."""

    mac: str | None = None
    serial: str | None = None
    bmc: Bmc | None = None
    install: Install | None = None


@dataclass
class Machines:
    """Reads the machines of all groups; reports values that two nodes share."""

    report: Report
    folder: Path
    """Machine values of the cluster file."""
    defaults: Defaults
    networks: Mapping[str, Network]
    _lists: dict[Path, MachineList] = field(default_factory=dict)
    _taken: dict[tuple[str, str], tuple[str, str, str]] = field(default_factory=dict)

    def read(self, groups: list[Group], locations: Mapping[str, Location]) -> dict[str, Declared]:
        """By node name."""
        check_defaults(self.report, self.defaults.bmc)
        nodes = [name for group in groups for name in group.names]
        found: dict[str, Declared] = {}
        for group in groups:
            listed = self._listed(group, nodes)
            serials = self._serials(group)
            addresses = bmc_addresses(self.report, group, self.networks, listed)
            has_bmc = any(address is not None for address in addresses)
            check_install(self.report, group, self.defaults, listed, has_bmc=has_bmc)
            for index, name in enumerate(group.names):
                row = listed.get(name, Machine())
                mac = self._either(group, name, "macs", locations[name].mac, row.mac, row.where)
                serial = self._either(group, name, "serials", serials[index], row.serial, row.where)
                found[name] = made = self._declared(group, mac, serial, row, addresses[index])
                self._claim(group, name, replace(row, mac=mac, serial=serial, bmc=addresses[index]))
                if made.install is not None and not row.disks and len(group.names) == 1:
                    for disk in made.install.disk.serials:
                        self._claim_one(group, name, "disk", disk, "")
        return found

    def _declared(
        self, group: Group, mac: str | None, serial: str | None, row: Machine, address: IPv4Address | None
    ) -> Declared:
        bmc = resolve_bmc(group.entry.bmc, self.defaults.bmc, address, row.certificate, self.folder)
        install = resolve_install(group, self.defaults.install, self.folder) if bmc is not None else None
        if install is not None and row.disks:
            install = install.model_copy(update={"disk": DiskRule(serials=row.disks)})
        return Declared(mac, serial, bmc, install)

    def _listed(self, group: Group, nodes: list[str]) -> Mapping[str, Machine]:
        """The rows of the group's machine list; mistakes are reported once."""
        given, path = group.entry.machines or self.defaults.machines, list_path(group)
        if given is None:
            return {}
        file = self.folder / given.expanduser()
        if file not in self._lists and not self.report.clean(path):
            return {}
        if file not in self._lists:
            self._lists[file] = found = read_machine_list(file, frozenset(nodes))
            for wrong in found.mistakes[:MAX_MISTAKES]:
                self.report.add(path, wrong.message, wrong.hint)
            more = len(found.mistakes) - MAX_MISTAKES
            if more > 0:
                self.report.add(path, f"The machine list has {more} more mistake{'' if more == 1 else 's'}.")
        return self._lists[file].machines

    def _serials(self, group: Group) -> list[str | None]:
        serials, count, path = group.entry.serials, len(group.names), (*group.path, "serials")
        if serials is None or not self.report.clean(path):
            return [None] * count
        if count and len(serials) != count:
            nodes = "1 node" if count == 1 else f"{count} nodes"
            self.report.add(
                path,
                f"The group has {nodes}, but {len(serials)} serial numbers.",
                "list one per node, in NodeSet order",
            )
            return [None] * count
        return list(serials)

    def _either(
        self, group: Group, name: str, key: str, given: str | None, listed: str | None, where: str
    ) -> str | None:
        """The value from the file or the machine list; two different values are a mistake."""
        if given is not None and listed is not None and given != listed:
            self.report.add(
                (*group.path, key), f"{name} has {given} here, but {listed} in {where}.", "remove one of them"
            )
        return given or listed

    def _claim(self, group: Group, name: str, machine: Machine) -> None:
        """Report a value that another node already has; MACs within the file are compared elsewhere."""
        values = {
            "serial number": machine.serial,
            "BMC address": None if machine.bmc is None else str(machine.bmc),
            "MAC address": machine.mac,
            "BMC certificate": machine.certificate,
        }
        for what, value in values.items():
            self._claim_one(group, name, what, value, machine.where)
        for disk in machine.disks:
            self._claim_one(group, name, "disk", disk, machine.where)

    def _claim_one(self, group: Group, name: str, what: str, value: str | None, where: str) -> None:
        if value is None:
            return
        # serial numbers that differ only in case: one was mistyped
        key = value.casefold() if what == "serial number" else value
        other, other_where, taken = self._taken.setdefault((what, key), (name, where, value))
        keys: dict[str, DataPath] = {
            "serial number": ("serials",),
            "BMC address": ("bmc", "address"),
            "MAC address": ("macs",),
            "disk": ("machines",) if where else ("install", "disk", "serials"),
        }
        path = (*group.path, *keys.get(what, ("machines",)))
        if other != name and not (what == "MAC address" and not (where or other_where)):
            at = (f" as {taken}" if taken != value else "") + (f" in {other_where}" if other_where else "")
            self.report.add(path, f"{name} would have the {what} {value}, which {other} has{at}.")
