"""What is installed on the nodes of a group: declared so that it can mean one set of disks only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from rackwright.clusterfile.boot_network import check_on_boot_network
from rackwright.clusterfile.file import Defaults
from rackwright.clusterfile.groups import Group
from rackwright.clusterfile.machine_list import Machine
from rackwright.clusterfile.machine_sections import InstallSection
from rackwright.clusterfile.report import Report
from rackwright.clusterfile.sections import note_errors
from rackwright.documents.document import DataPath
from rackwright.model.bmc import BmcProtocol
from rackwright.model.cluster import Cluster
from rackwright.model.install import BootWay, DiskRule, Install, Installer
from rackwright.model.sku import Nvme, Sku
from rackwright.model.types import Platform
from rackwright.osfamily.known import OsRelease

_SIZE_TOLERANCE = 0.05
_FILES = {
    Installer.AUTOINSTALL: "the mounted live-server ISO",
    Installer.KICKSTART: "the mounted ISO",
    Installer.PRESEED: "debian-installer/amd64 of netboot.tar.gz",
}
_PCI = re.compile(r"^pci-([0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7])-")


def resolve_install(group: Group, defaults: InstallSection | None, folder: Path) -> Install | None:
    """The settings of a group over those of `defaults`; None where neither declares any, or they contradict."""
    if (group.entry.install is None and defaults is None) or group.platform is Platform.CONTAINER:
        return None
    try:
        merged = _merged(group.entry.install, defaults)
    except ValidationError:
        return None
    image = None if merged.image is None else folder / merged.image.expanduser()
    files = None if merged.installer_files is None else folder / merged.installer_files.expanduser()
    return Install.model_validate(dict(merged) | {"image": image, "installer_files": files})


def _merged(given: InstallSection | None, defaults: InstallSection | None) -> InstallSection:
    values = {
        key: getattr(section, key)
        for section in (defaults, given)
        if section is not None
        for key in section.model_fields_set
    }
    return InstallSection.model_validate(values)


def list_path(group: Group) -> DataPath:
    """Where the group's machine list is named."""
    return ("defaults", "machines") if group.entry.machines is None else (*group.path, "machines")


def check_install(
    report: Report, group: Group, defaults: Defaults, listed: Mapping[str, Machine], *, has_bmc: bool
) -> None:
    """Note what keeps the nodes of a group from being installed, or could mean another disk.

    + has_bmc: whether any of its nodes has a BMC, without which what `defaults` declares does not concern it
    """
    path: DataPath = (*group.path, "install")
    if group.entry.install is None and (defaults.install is None or not has_bmc):
        return
    try:
        merged = _merged(group.entry.install, defaults.install)
    except ValidationError as error:
        if report.clean(path) and report.clean(("defaults", "install")):
            note_errors(report, InstallSection, {}, path, error.errors(include_url=False))
        return
    if group.platform is Platform.CONTAINER:
        report.add(path, "A container is not installed.", "remove `install:`")
        return
    if merged.image is None and merged.installer is None:
        report.add(
            path,
            "Neither an image nor an installer is declared.",
            "e.g. `image: images/worker`, which `rackwright image build --format root` makes",
        )
    if merged.installer is not None and group.os is not None:
        _check_installer(report, path, merged, merged.installer, group.os)
    if merged.bond and len(group.names) > 1:
        report.add(
            (*path, "bond"),
            f"A port has one MAC address, and the group has {len(group.names)} nodes.",
            "declare the bond in a group for each node",
        )
    if not merged.diskless:
        _check_disks(report, group, merged, listed)


def check_installable(report: Report, cluster: Cluster, groups: list[Group]) -> None:
    """Note what an installation needs of its nodes beside the section itself."""
    for group in groups:
        nodes = [cluster.by_name[name] for name in group.names]
        path: DataPath = (*group.path, "install")
        complete = report.clean(list_path(group)) and report.clean((*group.path, "bmc"))
        without = next((node.name for node in nodes if node.bmc is None), None)
        if group.entry.install is not None and complete and without is not None:
            report.add(
                path,
                f"{without} has no BMC, which boots the installer.",
                "e.g. `bmc: {address: 10.20.0.11}`, or remove `install:`",
            )
        installed = [node for node in nodes if node.install is not None]
        if not installed:
            continue
        if cluster.boot_network is None and report.clean(("boot_network",)):
            report.add(
                path,
                "It is not declared where machines without an operating system reach this control node.",
                "e.g. `boot_network: {server: 10.1.0.5}`",
            )
        check_on_boot_network(report, cluster, installed, path)
        unnamed = next((node.name for node in installed if node.mac is None), None)
        if unnamed is not None and complete and report.clean((*group.path, "macs")):
            report.add(path, f"The MAC address of {unnamed} is not declared.", "add `macs:` or `machines:`")
        if any(
            node.bmc is not None
            and node.bmc.protocol is BmcProtocol.IPMI
            and node.install.boot is not BootWay.PXE
            for node in installed
            if node.install is not None
        ):
            report.add(path, "IPMI has neither virtual media nor HTTP boot.", "`boot: pxe`")


def _check_installer(
    report: Report, path: DataPath, install: InstallSection, installer: Installer, os: OsRelease
) -> None:
    fitting = os.installer
    if fitting != installer.value:
        report.add(
            (*path, "installer"),
            f"{os} has no installer that reads {installer}.",
            f"`installer: {fitting}`" if fitting is not None else "declare an image",
        )
        return
    if install.installer_files is None:
        report.add(
            (*path, "installer"),
            "It is not declared where the installer's kernel and boot loaders are.",
            f"`installer_files:` with {_FILES[installer]}",
        )
    if installer is Installer.AUTOINSTALL and install.installer_media is None:
        report.add(
            (*path, "installer"),
            "It is not declared where the installer fetches its system.",
            "`installer_media:` with the URL of the live-server ISO",
        )
    if installer is Installer.PRESEED and install.installer_media is not None:
        report.add(
            (*path, "installer_media"),
            "Debian's installer fetches its parts from the archive or its mirror.",
            "`mirrors: {apt: ...}`, or remove it",
        )
    if install.boot is BootWay.HTTP:
        report.add(
            (*path, "boot"),
            "An installer is booted by virtual media or PXE.",
            "`boot: virtual-media`",
        )


def _check_disks(
    report: Report, group: Group, install: InstallSection, listed: Mapping[str, Machine]
) -> None:
    wanted, path = (2 if install.mirror else 1), (*group.path, "install", "disk")
    without = [name for name in group.names if not listed.get(name, Machine()).disks]
    for name in group.names:
        disks = listed.get(name, Machine()).disks
        if disks and len(disks) != wanted:
            where = listed[name].where
            report.add(
                (*group.path, "machines"), f"{where}: {_count(len(disks), wanted)}", _mirror_hint(wanted)
            )
    rule = install.disk
    if not rule.declared:
        if without and report.clean(list_path(group)) and report.clean(path):
            report.add(
                path,
                f"It is not declared on which disk {without[0]} gets its operating system.",
                "a rule by `by_path`, `model` or `serials`, or the column disk of `machines`",
                key=True,
            )
        return
    if rule.serials and len(group.names) > 1:
        report.add(
            (*path, "serials"),
            f"A disk has one serial number, and the group has {len(group.names)} nodes.",
            "list them in `machines`, in the column disk",
        )
    if (rule.serials or rule.by_path) and len({*rule.serials, *rule.by_path}) != wanted:
        report.add(path, _count(len({*rule.serials, *rule.by_path}), wanted), _mirror_hint(wanted))
    if group.sku is not None:
        _check_against_sku(report, path, rule, wanted, group.sku)


def _count(found: int, wanted: int) -> str:
    disks = "1 disk is" if found == 1 else f"{found} disks are"
    return f"{disks} declared, and the operating system takes {wanted}."


def _mirror_hint(wanted: int) -> str:
    return (
        "two different disks, or remove `mirror`" if wanted == 2 else "one disk, or `mirror: true` for both"
    )


def _check_against_sku(report: Report, path: DataPath, rule: DiskRule, wanted: int, sku: Sku) -> None:
    """Note a rule that matches drives which the SKU has for data, or more drives than are wanted."""
    for name in rule.by_path:
        slot = _PCI.match(name)
        owner = next((drives for drives in sku.nvme if slot is not None and slot[1] in drives.slots), None)
        if owner is not None and owner.use == "scratch":
            report.add(
                (*path, "by_path"),
                f"{name} is one of the {owner.count} drives that {sku.name} has for {owner.use}.",
                "the slot of the boot drive; `ls -l /dev/disk/by-path` prints them",
            )
    if rule.size_gb is None:
        return
    matching = [drives for drives in sku.nvme if _same_size(drives, rule.size_gb)]
    count = sum(drives.count for drives in matching)
    if any(drives.use == "scratch" for drives in matching):
        report.add(
            (*path, "size_gb"),
            f"{sku.name} has {count} drives of {matching[0].size_gb} GB for scratch, which the rule matches too.",
            "declare the slot: `by_path`",
        )
    elif count > wanted:
        report.add(
            (*path, "size_gb"),
            f"{sku.name} has {count} drives of {matching[0].size_gb} GB, and the rule is for {wanted}.",
            "declare the slot: `by_path`",
        )


def _same_size(drives: Nvme, size_gb: int) -> bool:
    return abs(drives.size_gb - size_gb) <= size_gb * _SIZE_TOLERANCE
