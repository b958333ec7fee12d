"""GPUs: all present, of the declared model, set up as declared."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.health.checks import scope
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.gpu_records import Gpu
from rackwright.health.records import Unreadable
from rackwright.health.registry import check, each
from rackwright.health.verdict import Action, Finding, fail, good, unknown
from rackwright.health.xid import recovery_action

LOST = ("GPU is lost", "Unable to determine the device handle", "No devices were found")
"""nvidia-smi prints this instead of its document when one or all GPUs are gone."""
RESEAT = "Reboot once. If it stays missing, open an RMA for the GPU or its baseboard."


@check(
    "gpu", "nvidia-smi lists every declared GPU", reads=("gpus",), applies=scope.gpus, action=Action.REBOOT,
    remedy=RESEAT,
)  # fmt: skip
def gpu_count(expected: Expected, document: Document) -> Iterator[Finding]:
    declared = expected.the_gpus().count
    try:
        section = document.gpus
    except Unreadable as error:
        if any(words in str(error) for words in LOST):
            yield fail(str(error))
        raise
    found = len(section.gpus)
    if found != declared:
        yield fail(f"nvidia-smi lists {found} of {declared} declared GPUs")
    elif section.attached < found:
        yield fail(f"the driver has {section.attached} GPUs attached, nvidia-smi lists {found}")
    for gpu in section.gpus:
        if gpu.lost:
            yield fail(f"{gpu.label}: GPU is lost")
    if section.said is not None and any(words in section.said for words in LOST):
        yield fail("nvidia-smi: " + section.said)
    yield good(f"{found} GPUs")


@check(
    "gpu", "Every declared GPU is on the PCI bus", reads=("pci",), applies=scope.any_gpus, needs=("hardware",),
    action=Action.REBOOT, remedy=RESEAT,
)  # fmt: skip
def gpu_on_bus(expected: Expected, document: Document) -> Iterator[Finding]:
    declared = expected.the_gpus().count
    found = [device.address for device in document.pci.devices if device.is_gpu]
    if len(found) != declared:
        yield fail(f"{len(found)} of {declared} declared GPUs are on the bus: {' '.join(found) or 'none'}")
    yield good(f"{len(found)} GPUs on the bus")


@check(
    "gpu", "Every GPU on the bus is bound to its vendor's driver", reads=("pci",), applies=scope.any_gpus,
    needs=("hardware",), action=Action.REBOOT,
    remedy="Find the driver that holds it (`lspci -k`) and unbind it, or reboot.",
)  # fmt: skip
def gpu_bound(expected: Expected, document: Document) -> Iterator[Finding]:
    section, nvidia = document.pci, scope.gpus(expected)
    module = "nvidia" if nvidia else "amdgpu"
    devices = [device for device in section.devices if device.is_gpu]
    for device in devices:
        if device.driver != module:
            yield fail(f"{device.address} is bound to {device.driver or 'no driver'}")
    if nvidia and section.nvidia_gpus < expected.the_gpus().count:
        yield fail(f"the nvidia module has taken {section.nvidia_gpus} of {expected.the_gpus().count} GPUs")
    yield good(f"{module} drives {len(devices)} GPUs")


@check(
    "gpu", "Every GPU is the declared model", reads=("gpus",), applies=scope.gpus,
    remedy="Compare the declared SKU with what was delivered.",
)  # fmt: skip
def gpu_model(expected: Expected, document: Document) -> Iterator[Finding]:
    ids = {one.split(":")[-1] for one in expected.the_gpus().pci_ids}
    if not ids:
        raise Unreadable(f"the SKU declares no PCI ids for {expected.the_gpus().model}")

    def judge(gpu: Gpu) -> Finding | None:
        if gpu.pci_id in ids:
            return None
        return fail(f"{gpu.label} is {gpu.name} (10de:{gpu.pci_id}), declared {expected.the_gpus().model}")

    yield from each(document.gpus.some(), judge, f"all are {expected.the_gpus().model}")


@check(
    "gpu", "Every GPU has a unique identity", reads=("gpus",), applies=scope.gpus,
    remedy="Two GPUs share a UUID: reboot, then contact the vendor.",
)  # fmt: skip
def gpu_identity(expected: Expected, document: Document) -> Iterator[Finding]:
    gpus = document.gpus.some()
    for name, values in (("UUID", [gpu.uuid for gpu in gpus]), ("address", [gpu.address for gpu in gpus])):
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            yield fail(f"more than one GPU has the {name} {', '.join(twice)}")
    yield good(f"{len(gpus)} different GPUs")


@check(
    "gpu", "Persistence mode is on", reads=("gpus",), applies=scope.gpus, action=Action.NONE,
    remedy="Start nvidia-persistenced.", source="NVIDIA driver persistence documentation; Azure azure_gpu_persistence",
)  # fmt: skip
def gpu_persistence(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: Gpu) -> Finding | None:
        return None if gpu.persistence else fail(f"persistence mode of {gpu.label} is off")

    yield from each(document.gpus.some(), judge, "on")


@check(
    "gpu", "The compute mode is as declared", reads=("gpus",), applies=scope.gpus,
    remedy="Run nvidia-smi -c 0 (Default), unless the site declares another mode.", source="the site's options",
)  # fmt: skip
def gpu_compute_mode(expected: Expected, document: Document) -> Iterator[Finding]:
    wanted = expected.the_gpus().compute_mode

    def judge(gpu: Gpu) -> Finding | None:
        if gpu.compute_mode == wanted:
            return None
        # A setting that differs from the declaration is drift; in this mode no job can run.
        action = Action.DRAIN if gpu.compute_mode == "Prohibited" else Action.NONE
        return fail(f"{gpu.label} is in mode {gpu.compute_mode}, declared {wanted}", action)

    yield from each(document.gpus.some(), judge, wanted)


def can_mig(expected: Expected) -> bool:
    return scope.row_remapping(expected) and bool(expected.the_gpus().nvlinks or expected.the_gpus().mig)


@check(
    "gpu", "MIG is on or off as declared, and nothing is pending", reads=("gpus",), applies=can_mig,
    action=Action.RESET_GPU, remedy="Apply the declared MIG layout again; the change needs an idle GPU.",
    source="the site's options",
)  # fmt: skip
def gpu_mig_mode(expected: Expected, document: Document) -> Iterator[Finding]:
    wanted = bool(expected.the_gpus().mig)

    def judge(gpu: Gpu) -> Finding | None:
        if gpu.mig.current != wanted:
            return fail(f"MIG of {gpu.label} is {on(gpu.mig.current)}, declared {on(wanted)}")
        if gpu.mig.pending != wanted:
            return fail(f"MIG of {gpu.label} turns {on(gpu.mig.pending)} at the next reset", Action.NONE)
        return None

    yield from each(document.gpus.some(), judge, on(wanted))


def on(value: bool) -> str:
    return "on" if value else "off"


@check(
    "gpu", "Every GPU has the declared MIG instances", reads=("gpus",), applies=scope.mig,
    remedy="nvidia-mig-parted apply with the declared layout.", source="the site's options",
)  # fmt: skip
def gpu_mig_layout(expected: Expected, document: Document) -> Iterator[Finding]:
    wanted = sorted(expected.the_gpus().mig)

    def judge(gpu: Gpu) -> Finding | None:
        if sorted(gpu.mig.profiles) == wanted:
            return None
        there = " ".join(sorted(gpu.mig.profiles)) or "nothing"
        return fail(f"{gpu.label} has MIG instances {there}, declared {' '.join(wanted)}")

    yield from each(document.gpus.some(), judge, " ".join(wanted))


@check(
    "gpu", "All GPUs run one VBIOS version, the declared one if the site declares it", reads=("gpus",), applies=scope.gpus, action=Action.NONE,
    remedy="Update the GPUs' firmware to one version.", source="imbue cluster-health: exact VBIOS compare",
)  # fmt: skip
def gpu_vbios(expected: Expected, document: Document) -> Iterator[Finding]:
    gpus = document.gpus.some()
    versions = sorted({gpu.vbios for gpu in gpus})
    wanted = expected.gpu_vbios
    if wanted is not None and versions != [wanted]:
        yield fail(f"VBIOS {' '.join(versions)}, declared {wanted}")
    elif len(versions) > 1:
        odd = {version: [gpu.index for gpu in gpus if gpu.vbios == version] for version in versions}
        yield fail(
            "mixed VBIOS versions: " + "; ".join(f"{version} on GPU {at}" for version, at in odd.items())
        )
    yield good(" ".join(versions))


@check(
    "gpu", "No GPU has a corrupted InfoROM", reads=("gpus",), applies=scope.gpus, action=Action.RMA,
    remedy="A corrupted InfoROM loses the error history: reset the GPU once, then open an RMA.",
    source="nvidia-smi prints `infoROM is corrupted at gpu ...` after the document",
)  # fmt: skip
def gpu_inforom(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: Gpu) -> Finding | None:
        if gpu.inforom_corrupted:
            return fail(f"{gpu.label}: nvidia-smi reports a corrupted InfoROM")
        return unknown(f"{gpu.label} shows no InfoROM version") if gpu.inforom is None else None

    yield from each(document.gpus.some(), judge, "not corrupted")


@check(
    "gpu", "The GSP firmware matches the driver version", reads=("gpus",), applies=scope.gsp,
    action=Action.REBOOT, remedy="Reload the driver or reboot: an incomplete driver update left a different firmware.",
    source="NVIDIA open-gpu-kernel-modules: GSP firmware and driver must match",
)  # fmt: skip
def gpu_firmware(expected: Expected, document: Document) -> Iterator[Finding]:
    section = document.gpus
    wanted = section.driver_version

    def judge(gpu: Gpu) -> Finding | None:
        if gpu.gsp == wanted:
            return None
        return fail(f"{gpu.label} runs GSP firmware {gpu.gsp} under driver {wanted}")

    yield from each(section.some(), judge, wanted)


@check(
    "gpu", "The driver requests no recovery action for any GPU", reads=("gpus",), applies=scope.recovery_action,
    action=Action.RESET_GPU, remedy="Do what the driver requests: reset the GPU or reboot the node.",
    source="nvidia-smi gpu_recovery_action (driver 570 and later), reset_required before",
)  # fmt: skip
def gpu_recovery(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: Gpu) -> Finding | None:
        if gpu.recovery_action is not None:
            action = recovery_action(gpu.recovery_action)
            if action is None:
                return unknown(f"{gpu.label} requests an unknown recovery action: {gpu.recovery_action}")
            return None if action is Action.NONE else fail(f"{gpu.label}: {gpu.recovery_action}", action)
        return fail(f"{gpu.label} needs a reset") if gpu.reset_required else None

    yield from each(document.gpus.some(), judge, "none")
