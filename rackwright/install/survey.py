"""Compares discovered hardware with the declaration, and generates a declaration that matches it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from rackwright.install.inventory import Inventory
from rackwright.install.serials import declarable
from rackwright.install.verdict import Chosen, choose
from rackwright.model.cluster import Node
from rackwright.model.disks import SERIAL

_GB = 10**9


@dataclass(frozen=True)
class Line:
    """One property of a node: declared, found, and whether they agree."""

    what: str
    declared: str | None
    """None: not declared."""
    found: str
    agrees: bool | None
    """None: nothing to compare."""


def compare(node: Node, found: Inventory) -> list[Line]:
    """Every property of a node, whether it agrees or not."""
    sku, gpus = node.sku, node.sku.gpus
    serial = found.dmi.product_serial or "not set"
    lines = [
        _line("serial number", node.serial, serial),
        Line(
            "management MAC",
            node.mac,
            ", ".join(sorted(found.macs)) or "no port",
            None if node.mac is None else node.mac in found.macs,
        ),
        _line("CPUs", str(sku.cpus), str(found.cpus)),
        _memory(node, found),
        _line(
            "GPUs", str(gpus.count if gpus is not None and not node.simulates_gpus else 0), str(found.gpus)
        ),
    ]
    if sku.cpu_model is not None and found.cpu_model is not None:
        lines.append(Line("CPU model", sku.cpu_model, found.cpu_model, sku.cpu_model in found.cpu_model))
    declared = sum(drives.count for drives in sku.nvme)
    nvme = [disk for disk in found.disks if "nvme" in disk.path]
    lines.append(Line("NVMe drives", str(declared), str(len(nvme)), len(nvme) >= declared))
    if node.install is not None:
        state = {True: "on", False: "off", None: "not known"}
        lines.append(_line("Secure Boot", state[node.install.secure_boot], state[found.secure_boot]))
        if not node.install.diskless:
            chosen, wrong = choose(node.install, found)
            disks = ", ".join(one.disk.label for one in chosen) or "none"
            lines.append(Line("system disk", "by rule", "; ".join(wrong) or disks, not wrong))
    lines += [
        Line(
            "disk",
            None,
            f"{disk.label}, {disk.size_bytes / _GB:.0f} GB, holds {_signs(disk.signatures)}",
            None,
        )
        for disk in found.disks
    ]
    lines += [
        Line("port", None, f"{nic.name} {nic.mac} at {nic.pci or '?'}, {_carrier(nic.carrier)}", None)
        for nic in found.nics
    ]
    return lines


def _line(what: str, declared: str | None, found: str) -> Line:
    return Line(what, declared, found, None if declared is None else declared == found)


def _memory(node: Node, found: Inventory) -> Line:
    declared, there = node.sku.memory_mib, found.memory_kib // 1024
    fits = declared * 0.93 <= there <= declared * 1.02 or declared - 256 <= there <= declared
    return Line("memory", f"{declared} MiB", f"{there} MiB", fits)


def _signs(signatures: Sequence[str]) -> str:
    return ", ".join(signatures) or "nothing"


def _carrier(carrier: bool | None) -> str:
    return {True: "cable plugged in", False: "no cable", None: "cable not known"}[carrier]


def machine_list(found: Sequence[tuple[Node, Inventory]]) -> str:
    """A machine list (`machines:` of the cluster file) that matches these nodes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    # keep what is declared: without its certificate, a BMC with a self-signed one would become unreachable
    certificates = {node.name: node.bmc.certificate for node, _ in found if node.bmc and node.bmc.certificate}
    more = ("bmc_certificate",) if certificates else ()
    writer.writerow(("node", "mac", "serial", "disk", "bmc", *more))
    for node, inventory in found:
        disks = ""
        if node.install is not None and not node.install.diskless:
            chosen, wrong = choose(node.install, inventory)
            # a disk whose serial number the list cannot express stays selected by its rule
            disks = "" if wrong or not _listable(chosen) else " ".join(one.serial for one in chosen)
        bmc = "" if node.bmc is None else str(node.bmc.address)
        serial = declarable(inventory.dmi.product_serial) or ""
        row = (node.name, _mac(node, inventory), serial, disks, bmc)
        writer.writerow((*row, certificates.get(node.name, "")) if certificates else row)
    return text.getvalue()


def _listable(chosen: Sequence[Chosen]) -> bool:
    return all(SERIAL.fullmatch(one.serial) and " " not in one.serial for one in chosen)


def _mac(node: Node, found: Inventory) -> str:
    """The declared port if the machine has it, else the first with a link."""
    if node.mac is not None and node.mac in found.macs:
        return node.mac
    plugged = [nic.mac.lower() for nic in found.nics if nic.carrier] or [
        nic.mac.lower() for nic in found.nics
    ]
    return plugged[0] if plugged else ""


def fragment(found: Sequence[tuple[Node, Inventory]], list_name: str, day: date) -> str:
    """A cluster file fragment that declares these machines: a SKU per kind, and groups of nodes."""
    kinds: dict[tuple[object, ...], Inventory] = {}
    groups: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for node, inventory in found:
        kind = _kind(inventory)
        kinds.setdefault(kind, inventory)
        roles = tuple(sorted(role.value for role in node.roles))
        groups.setdefault((list(kinds).index(kind) + 1, roles), []).append(node.name)
    lines = ["# found by `rackwright discover`: check it, then move it into the cluster file", "skus:"]
    for number, inventory in enumerate(kinds.values(), 1):
        lines += _sku(f"found-{number}", inventory, day)
    lines += ["nodes:"]
    for (number, roles), names in groups.items():
        lines += [
            f"  - nodes: {','.join(names)}",
            f"    roles: [{', '.join(roles)}]",
            f"    sku: found-{number}",
        ]
        lines += [f"    machines: {list_name}"]
    return "\n".join(lines) + "\n"


def _kind(found: Inventory) -> tuple[object, ...]:
    drives = tuple(sorted(round(disk.size_bytes / _GB) for disk in found.disks if "nvme" in disk.path))
    memory = round(found.memory_kib / 2**20)
    return found.dmi.sys_vendor, found.dmi.product_name, found.cpus, memory, found.gpus, drives


def _sku(name: str, found: Inventory, day: date) -> list[str]:
    sockets = found.sockets or 1
    vendor, product = found.dmi.sys_vendor or "unknown", found.dmi.product_name or "unknown"
    lines = [
        f"  {name}:",
        f"    vendor: {_quoted(vendor)}",
        f"    description: {_quoted(f'{vendor} {product}, as found')}",
        f"    product: {_quoted(product)}",
        f"    sockets: {sockets}",
        f"    cores_per_socket: {max(1, found.cpus // sockets)} # CPUs: whether threads are among them was not read",
        "    threads_per_core: 1",
        f"    memory_mib: {-(-found.memory_kib // 2**20) * 1024} # {found.memory_kib // 1024} MiB are usable",
    ]
    drives: dict[int, list[str]] = {}
    for disk in found.disks:
        if "nvme" in disk.path:
            drives.setdefault(round(disk.size_bytes / _GB), []).append(disk.pci or "")
    if drives:
        lines.append("    nvme:")
    for size, slots in sorted(drives.items()):
        slots_text = ", ".join(f'"{slot}"' for slot in slots)
        known = f", slots: [{slots_text}]" if all(slots) else ""
        lines.append(f"      - {{count: {len(slots)}, size_gb: {max(1, size)}{known}}}")
    if found.gpus:
        lines.append(
            f"    # {found.gpus} NVIDIA GPUs were found: name a SKU of `rackwright catalog`, or add `gpus:`"
        )
    return [
        *lines,
        "    sources:",
        f"      - {{text: read from the machine by rackwright discover, read: {day}}}",
    ]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
