"""The machine list: a CSV file with per-machine values such as serial numbers, one row per node."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from rackwright.clusterfile.csv_table import Columns, ListMistake, Wrong, open_table
from rackwright.documents.nearest import nearest, short
from rackwright.model.install import DiskSerial, MachineSerial
from rackwright.model.serials import placeholder_mistake
from rackwright.model.text import Address, Mac

ValueT = TypeVar("ValueT")

COLUMNS = Columns(("node",), ("mac", "serial", "disk", "bmc", "bmc_certificate"))
_DIGEST = re.compile(r"([0-9a-f]{2}:?){32}")
_MAC: TypeAdapter[str] = TypeAdapter(Mac)
_SERIAL: TypeAdapter[str] = TypeAdapter(MachineSerial)
_DISK: TypeAdapter[str] = TypeAdapter(DiskSerial)
_ADDRESS: TypeAdapter[IPv4Address] = TypeAdapter(Address)


@dataclass(frozen=True, slots=True)
class Machine:
    """Values that are unique to one machine; None or empty: not declared."""

    where: str = ""
    """File and line for messages."""
    mac: str | None = None
    serial: str | None = None
    disks: tuple[str, ...] = ()
    bmc: IPv4Address | None = None
    certificate: str | None = None


@dataclass
class MachineList:
    """The valid rows, and the mistakes in the others."""

    machines: dict[str, Machine] = field(default_factory=dict)
    mistakes: list[ListMistake] = field(default_factory=list)


def read_machine_list(path: Path, nodes: Collection[str]) -> MachineList:
    """The machines of a list, and every mistake in it; `nodes`: all nodes of the cluster."""
    found = MachineList()
    try:
        table = open_table(path, COLUMNS)
    except Wrong as wrong:
        found.mistakes.append(ListMistake(wrong.message, wrong.hint))
        return found
    for number, line in table.lines:
        where = f"{path.name}:{number}"
        try:
            row = table.row(line)
            if not any(row.values()):
                continue
            name = row["node"]
            if not name:
                raise Wrong(
                    "The row has no node name.", "put a node name in the column node, or remove the row"
                )
            if name not in nodes:
                raise Wrong(f"Unknown node {short(name)}.", partial(nearest, name, nodes))
            if name in found.machines:
                first = found.machines[name].where.rpartition(":")[2]
                raise Wrong(f"{name} is already on line {first}.", "remove one of the rows")
            found.machines[name] = _machine(row, where)
        except Wrong as wrong:
            found.mistakes.append(ListMistake(f"{where}: {wrong.message}", wrong.hint))
    return found


def _machine(row: dict[str, str], where: str) -> Machine:
    digest = row["bmc_certificate"].lower()
    if digest and not _DIGEST.fullmatch(digest):
        raise Wrong(
            f"{short(digest)} is not the SHA-256 of a certificate.",
            "`openssl x509 -in bmc.pem -noout -fingerprint -sha256` prints it",
        )
    disks = row["disk"].split()
    if len(disks) > 2 or len(set(disks)) < len(disks):
        raise Wrong(
            "The column disk takes one serial number, or two different ones.", "e.g. `S4YNNX0R1 S4YNNX0R2`"
        )
    if row["serial"][:1].isalnum() and (placeholder := placeholder_mistake(row["serial"])) is not None:
        raise Wrong(*placeholder)
    return Machine(
        where=where,
        mac=_checked(_MAC, row["mac"], "MAC address"),
        serial=_checked(_SERIAL, row["serial"], "machine serial number"),
        disks=tuple(disk for text in disks if (disk := _checked(_DISK, text, "disk serial number"))),
        bmc=_checked(_ADDRESS, row["bmc"], "IPv4 address"),
        certificate=digest.replace(":", "") or None,
    )


def _checked(adapter: TypeAdapter[ValueT], text: str, what: str) -> ValueT | None:
    if not text:
        return None
    try:
        return adapter.validate_python(text)
    except ValidationError:
        raise Wrong(f"{short(text)} is not a valid {what}.") from None
