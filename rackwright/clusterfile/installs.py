"""What to install on the nodes of a group; the disk rule must match exactly one set of disks."""

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
    """The group's settings merged over `defaults`; None if neither declares any, or they contradict."""
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
    """Path in the file of the group's machine list."""
    return ("defaults", "machines") if group.entry.machines is None else (*group.path, "machines")


def check_install(
    report: Report, group: Group, defaults: Defaults, listed: Mapping[str, Machine], *, has_bmc: bool
) -> None:
    """Report what prevents the group's installation, or could select a wrong disk.

    + has_bmc: whether any node of the group has a BMC; without one, `defaults` does not apply to the group
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
        report.add(path, "A container cannot be installed.", "remove `install:`")
        return
    if merged.image is None and merged.installer is None:
        report.add(
            path,
            "The group declares neither an image nor an installer.",
            "e.g. `image: images/worker`, which `rackwright image build --format root` builds",
        )
    if merged.installer is not None and group.os is not None:
        _check_installer(report, path, merged, merged.installer, group.os)
    if merged.bond and len(group.names) > 1:
        report.add(
            (*path, "bond"),
            f"A bond port has one MAC address, but the group has {len(group.names)} nodes.",
            "declare the bond in a separate group per node",
        )
    if not merged.diskless:
        _check_disks(report, group, merged, listed)


def check_installable(report: Report, cluster: Cluster, groups: list[Group]) -> None:
    """Report what an installation needs besides the section itself."""
    for group in groups:
        nodes = [cluster.by_name[name] for name in group.names]
        path: DataPath = (*group.path, "install")
        complete = report.clean(list_path(group)) and report.clean((*group.path, "bmc"))
        without = next((node.name for node in nodes if node.bmc is None), None)
        if group.entry.install is not None and complete and without is not None:
            report.add(
                path,
                f"{without} has no BMC to boot the installer with.",
                "declare one, e.g. `bmc: {address: 10.20.0.11}`, or remove `install:`",
            )
        installed = [node for node in nodes if node.install is not None]
        if not installed:
            continue
        if cluster.boot_network is None and report.clean(("boot_network",)):
            report.add(
                path,
                "`boot_network` is missing: machines without an operating system need it to reach this control node.",
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
            report.add(path, "IPMI supports neither virtual media nor HTTP boot.", "set `boot: pxe`")


def _check_installer(
    report: Report, path: DataPath, install: InstallSection, installer: Installer, os: OsRelease
) -> None:
    fitting = os.installer
    if fitting != installer.value:
        report.add(
            (*path, "installer"),
            f"{os} has no installer that supports {installer}.",
            f"set `installer: {fitting}`" if fitting is not None else "declare an image instead",
        )
        return
    if install.installer_files is None:
        report.add(
            (*path, "installer"),
            "`installer_files` is missing: the installer's kernel and boot loaders are needed.",
            f"set `installer_files:` to {_FILES[installer]}",
        )
    if installer is Installer.AUTOINSTALL and install.installer_media is None:
        report.add(
            (*path, "installer"),
            "`installer_media` is missing: the installer downloads its system from there.",
            "set `installer_media:` to the URL of the live-server ISO",
        )
    if installer is Installer.PRESEED and install.installer_media is not None:
        report.add(
            (*path, "installer_media"),
            "Debian's installer ignores `installer_media`: it downloads its packages from the archive or a mirror.",
            "set `mirrors: {apt: ...}`, or remove `installer_media`",
        )
    if install.boot is BootWay.HTTP:
        report.add(
            (*path, "boot"),
            "An installer boots from virtual media or PXE only.",
            "set `boot: virtual-media`",
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
                f"No disk is declared for the operating system of {without[0]}.",
                "declare a rule with `by_path`, `model` or `serials`, or fill the column disk of `machines`",
                key=True,
            )
        return
    if rule.serials and len(group.names) > 1:
        report.add(
            (*path, "serials"),
            f"A disk has one serial number, but the group has {len(group.names)} nodes.",
            "list the serial numbers in `machines`, in the column disk",
        )
    if (rule.serials or rule.by_path) and len({*rule.serials, *rule.by_path}) != wanted:
        report.add(path, _count(len({*rule.serials, *rule.by_path}), wanted), _mirror_hint(wanted))
    if group.sku is not None:
        _check_against_sku(report, path, rule, wanted, group.sku)


def _count(found: int, wanted: int) -> str:
    disks = "1 disk is" if found == 1 else f"{found} disks are"
    return f"{disks} declared, but the operating system needs {wanted}."


def _mirror_hint(wanted: int) -> str:
    return (
        "declare two different disks, or remove `mirror`"
        if wanted == 2
        else "declare one disk, or set `mirror: true` for both"
    )


def _check_against_sku(report: Report, path: DataPath, rule: DiskRule, wanted: int, sku: Sku) -> None:
    """Report a rule that matches the SKU's data drives, or more drives than needed."""
    for name in rule.by_path:
        slot = _PCI.match(name)
        owner = next((drives for drives in sku.nvme if slot is not None and slot[1] in drives.slots), None)
        if owner is not None and owner.use == "scratch":
            report.add(
                (*path, "by_path"),
                f"{name} is one of the {owner.count} drives that {sku.name} uses for {owner.use}.",
                "name the slot of the boot drive; `ls -l /dev/disk/by-path` lists the slots",
            )
    if rule.size_gb is None:
        return
    matching = [drives for drives in sku.nvme if _same_size(drives, rule.size_gb)]
    count = sum(drives.count for drives in matching)
    if any(drives.use == "scratch" for drives in matching):
        report.add(
            (*path, "size_gb"),
            f"The rule also matches the {count} scratch drives of {matching[0].size_gb} GB in {sku.name}.",
            "declare the slot with `by_path`",
        )
    elif count > wanted:
        report.add(
            (*path, "size_gb"),
            f"The rule needs {wanted}, but matches {count} drives of {matching[0].size_gb} GB in {sku.name}.",
            "declare the slot with `by_path`",
        )


def _same_size(drives: Nvme, size_gb: int) -> bool:
    return abs(drives.size_gb - size_gb) <= size_gb * _SIZE_TOLERANCE
