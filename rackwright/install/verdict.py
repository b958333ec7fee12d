"""Decides whether a machine is the declared one, which disks to write, and what is on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rackwright.install.inventory import Disk, Inventory
from rackwright.install.serials import same_uuid
from rackwright.model.cluster import Node
from rackwright.model.install import DiskRule, Install
from rackwright.model.serials import names_a_machine

UNFINISHED = "rw-unfinished-"
"""Prefix of partition names of an unfinished installation."""
_MEMORY_SHARE = 0.93
"""Firmware, kernel and crash kernel reserve some of the installed memory; a missing module is more than that."""
_MEMORY_KEPT_KIB = 256 * 1024
"""What they reserve on a small machine."""
_SIZE_TOLERANCE = 0.05


@dataclass(frozen=True)
class Chosen:
    """A disk for the operating system."""

    disk: Disk
    serial: str

    @property
    def unfinished(self) -> bool:
        """Whether everything on it is from an unfinished rackwright installation."""
        return _only_unfinished(self.disk)


@dataclass(frozen=True)
class Verdict:
    """Result of comparing an inventory with the declaration."""

    contradictions: tuple[str, ...]
    """Why this is not the declared machine, or not in the declared state: the node is put on hold."""
    chosen: tuple[Chosen, ...]
    unconfirmed: Mapping[str, tuple[str, ...]]
    """Serial of each chosen disk that has contents to these contents."""

    @property
    def approved(self) -> bool:
        """Whether the disks may be written."""
        return not self.contradictions and not self.unconfirmed

    @property
    def reasons(self) -> list[str]:
        """Why the node is on hold."""
        held = [f"disk {serial} holds {', '.join(signs)}" for serial, signs in self.unconfirmed.items()]
        return [*self.contradictions, *held]


def judge(
    node: Node,
    found: Inventory,
    bmc_serial: str,
    confirmed: Mapping[str, tuple[str, ...]],
    bmc_uuid: str = "",
) -> Verdict:
    """Compare the agent's inventory with the declaration.

    + bmc_serial: serial number of the machine, as its BMC printed it before power-on; empty: the BMC had none
    + confirmed: serial of a disk to the signatures that the operator confirmed
    + bmc_uuid: likewise, used where the serial number is missing
    """
    wrong = [
        *another_machine(node, found, bmc_serial, bmc_uuid),
        *_firmware(node, found),
        *_size(node, found),
    ]
    chosen: tuple[Chosen, ...] = ()
    install = node.install
    if install is not None and not install.diskless:
        disks, mistakes = choose(install, found)
        wrong += mistakes
        chosen = disks if not mistakes else ()
    unconfirmed = {
        one.serial: one.disk.signatures
        for one in chosen
        if one.disk.signatures and not one.unfinished and confirmed.get(one.serial) != one.disk.signatures
    }
    return Verdict(tuple(wrong), chosen, unconfirmed)


def another_machine(node: Node, found: Inventory, bmc_serial: str, bmc_uuid: str) -> list[str]:
    """Why this is not the declared machine, without its state and parts."""
    wrong = [] if names_a_machine(bmc_serial or None) else _uuid(found, bmc_uuid)
    serial = found.dmi.product_serial or ""
    if node.serial is not None and serial != node.serial:
        wrong.append(f"its serial number is {serial or 'not set'}, but {node.serial} is declared")
    if bmc_serial and serial != bmc_serial:
        wrong.append(f"its serial number is {serial or 'not set'}, but its BMC's machine has {bmc_serial}")
    if node.mac is not None and node.mac not in found.macs:
        wrong.append(
            f"it has no port with the MAC {node.mac}: {', '.join(sorted(found.macs)) or 'none at all'}"
        )
    return wrong


def _firmware(node: Node, found: Inventory) -> list[str]:
    wrong = []
    if not found.efi:
        wrong.append("it was not booted with UEFI")
    install = node.install
    if install is not None and found.secure_boot is not install.secure_boot and found.efi:
        state = {True: "on", False: "off", None: "not known"}[found.secure_boot]
        wrong.append(f"Secure Boot is {state}, but {'on' if install.secure_boot else 'off'} is declared")
    return wrong


def _uuid(found: Inventory, bmc_uuid: str) -> list[str]:
    """Whether the booted machine is the BMC's, if only its UUID identifies it."""
    uuid = found.dmi.product_uuid
    if not bmc_uuid or same_uuid(uuid, bmc_uuid):
        return []
    return [f"its UUID is {uuid or 'not set'}, but its BMC's machine has {bmc_uuid}"]


def _size(node: Node, found: Inventory) -> list[str]:
    wrong = []
    sku = node.sku
    if found.cpus != sku.cpus:
        wrong.append(f"it has {found.cpus} CPUs, but {sku.name} has {sku.cpus}")
    least = min(sku.memory_mib * 1024 * _MEMORY_SHARE, sku.memory_mib * 1024 - _MEMORY_KEPT_KIB)
    if found.memory_kib < least:
        wrong.append(
            f"it has {found.memory_kib // 1024} MiB of memory, but {sku.name} has {sku.memory_mib} MiB"
        )
    gpus = sku.gpus.count if sku.gpus is not None and not node.simulates_gpus else 0
    if found.gpus != gpus and not (sku.gpus is not None and sku.gpus.display_pci_id is not None):
        wrong.append(f"it has {found.gpus} NVIDIA GPUs, but {sku.name} has {gpus}")
    return wrong


def choose(install: Install, found: Inventory) -> tuple[tuple[Chosen, ...], list[str]]:
    """The disks that the rule selects, and why they are unusable; without reasons, their number is as declared."""
    rule, wrong = install.disk, []
    matching = _matching(rule, found)
    if len(matching) != install.disks:
        there = ", ".join(disk.label for disk in found.disks) or "none"
        wrong.append(
            f"{_named(rule)} matches {len(matching)} disks, but {install.disks} are needed; found: {there}"
        )
    for disk in matching:
        if disk.error is not None:
            wrong.append(f"the contents of {disk.label} are unknown: {disk.error}")
        if disk.read_only:
            wrong.append(f"{disk.label} is read-only")
        if not disk.serial:
            wrong.append(f"{disk.path} has no serial number to confirm it with")
        elif [one.serial for one in found.disks].count(disk.serial) > 1:
            wrong.append(f"several disks have the serial number {disk.serial}")
    return tuple(Chosen(disk, disk.serial or "") for disk in matching), wrong


def _matching(rule: DiskRule, found: Inventory) -> list[Disk]:
    if rule.serials:
        return [disk for disk in found.disks if disk.serial in rule.serials]
    if rule.by_path:
        return [disk for disk in found.disks if not set(rule.by_path).isdisjoint(disk.by_path)]
    return [
        disk
        for disk in found.disks
        if disk.model is not None and disk.model == rule.model and _fits(disk, rule.size_gb)
    ]


def _fits(disk: Disk, size_gb: int | None) -> bool:
    return size_gb is None or abs(disk.size_bytes - size_gb * 10**9) <= size_gb * 10**9 * _SIZE_TOLERANCE


def _named(rule: DiskRule) -> str:
    if rule.serials:
        return f"the serial number {' or '.join(rule.serials)}"
    if rule.by_path:
        return f"the path {' or '.join(rule.by_path)}"
    return f"the model {rule.model}" + (f" of {rule.size_gb} GB" if rule.size_gb is not None else "")


def _only_unfinished(disk: Disk) -> bool:
    """Whether each partition has an unfinished name; its contents were written after it got that name.

    Signatures are `DEVICE:TYPE:LABEL`, and a label may contain colons: a type inside a label does not count.
    """
    parts = [(*sign.split(":", 2), "", "")[:3] for sign in disk.signatures]
    names = [(device, name) for device, kind, name in parts if kind == "partlabel"]
    partitions = {device for device, _ in names}
    return (
        bool(names)
        and all(name.startswith(UNFINISHED) for _, name in names)
        # signatures of the disk itself: only the partition table that holds these partitions
        and all(
            device in partitions or (device == disk.path and kind in ("gpt", "PMBR", "dos"))
            for device, kind, _ in parts
        )
        and disk.path not in partitions
    )
