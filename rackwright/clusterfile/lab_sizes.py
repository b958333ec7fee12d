"""Whether the lab can boot a group with its declared size."""

from __future__ import annotations

from rackwright.clusterfile.groups import Group
from rackwright.clusterfile.report import Report
from rackwright.documents.document import DataPath
from rackwright.documents.nearest import suggest
from rackwright.model.sku import Architecture, Sku
from rackwright.model.types import Platform
from rackwright.osfamily.known import RELEASES

_EXAMPLE = "e.g. `lab: {cpus: 2, memory_mib: 2048}`"


def check_lab_sizes(report: Report, groups: list[Group]) -> None:
    """Report groups without a size in a file where others have one, and what the lab cannot boot or simulate."""
    sized = [group for group in groups if group.lab is not None]
    for group in groups:
        if group.lab is None and report.clean((*group.path, "lab")) and report.clean(("defaults", "lab")):
            _check_unsized(report, group, sized)
        _check_release(report, group)
        if group.platform is Platform.VM:
            _check_machine(report, group)
        else:
            _check_simulated(report, group)


def _check_unsized(report: Report, group: Group, sized: list[Group]) -> None:
    path = (*group.path, "lab")
    if group.platform is Platform.CONTAINER:
        report.add(path, "A container needs a lab size.", _EXAMPLE, key=True)
    elif sized:
        report.add(
            path,
            f"The group has no lab size, but {sized[0].first_name()} has one: the lab boots all nodes or none.",
            _EXAMPLE,
            key=True,
        )


def _check_release(report: Report, group: Group) -> None:
    machine = group.platform is Platform.VM and group.lab is not None
    if group.os is None or group.os.lab_image or not (machine or group.platform is Platform.CONTAINER):
        return
    kind = "virtual machines" if machine else "containers"
    known = [name for name, os in RELEASES.items() if os.lab_image]
    message = f"The lab cannot boot {kind} of {group.os}."
    report.add((*group.path, "os"), message, suggest(group.os.id, known, what="it can boot"))


def _check_simulated(report: Report, group: Group) -> None:
    own = group.entry.lab
    if own is None or own.gpus is None or group.sku is None:
        return
    gpus, path = group.sku.gpus, (*group.path, "lab", "gpus")
    if gpus is None:
        report.add(path, f"{group.sku.name} has no GPUs to simulate.", "e.g. `sku: lab-h100-node`")
    elif gpus.architecture is Architecture.CDNA3 or not gpus.pci_ids:
        report.add(
            path,
            f"The lab cannot simulate {gpus.model}: it simulates only NVIDIA GPUs with known PCI IDs.",
            None,
        )


def _check_machine(report: Report, group: Group) -> None:
    """Container options do not apply to virtual machines; their size must equal the SKU's, which checks compare."""
    lab = group.lab
    if lab is None:
        return
    path: DataPath = (*group.path, "lab") if group.entry.lab is not None else ("defaults", "lab")
    if lab.gpus is not None and report.clean((*path, "gpus")):
        report.add(
            (*path, "gpus"),
            f"The lab simulates GPUs only in containers, but {group.first_name()} is a virtual machine.",
            "remove `gpus: simulated`, or set `platform: container`",
        )
    for key, what in (("containers", "can always run containers"), ("kubelet", "can always run a kubelet")):
        if getattr(lab, key) and report.clean((*path, key)):
            report.add(
                (*path, key),
                f"`{key}` has no effect on a virtual machine, which {what}.",
                f"remove `{key}: true`",
            )
    if group.sku is not None:
        _check_as_sku(report, group, group.sku, path)


def _check_as_sku(report: Report, group: Group, sku: Sku, path: DataPath) -> None:
    lab = group.lab
    if lab is None or (lab.cpus, lab.memory_mib) == (sku.cpus, sku.memory_mib):
        return
    key = "cpus" if lab.cpus != sku.cpus else "memory_mib"
    if not report.clean((*path, key)):
        return
    has, wants = (f"{cpus} CPUs and {mib} MiB" for cpus, mib in ((sku.cpus, sku.memory_mib), _size(group)))
    report.add(
        (*path, key),
        f"{group.first_name()} is a virtual machine with {wants}, but {sku.name} has {has}.",
        "make them equal: declare a SKU of this size under `skus`, e.g. like `lab-vm-worker` in the catalogue",
    )


def _size(group: Group) -> tuple[int, int]:
    return (0, 0) if group.lab is None else (group.lab.cpus, group.lab.memory_mib)
