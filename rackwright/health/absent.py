"""What nvidia-smi does not report, by driver branch, mode and board: such a value is not UNKNOWN.

Each row is backed by recorded documents of healthy GPUs. A value that is missing anywhere else
stays UNKNOWN, and so does one that another GPU of the node in the same mode reports.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.gpu_records import Gpu
from rackwright.health.records import Unreadable
from rackwright.health.verdict import Finding, aside
from rackwright.status import Status

READ = "2026-11-23"
K8S = "NVIDIA k8s-test-infra, hardware captures"
EXPORTER = "nvidia_gpu_exporter, captures of 590.48.01"


@dataclass(frozen=True)
class Absence:
    """Fields that are not reported where every condition that is set holds."""

    fields: tuple[str, ...]
    """As in the probe's document, below one GPU; a section means all of its fields."""
    why: str
    source: str
    below: int | None = None
    """Driver branches older than this one."""
    architectures: tuple[str, ...] = ()
    switches: str | None = None
    """Where the NVSwitches are: on the node's board or in the rack."""
    mig: bool = False
    vm: bool = False
    closed_modules: bool = False
    """Kernel modules that are not known to be the open ones, which do not run without GSP firmware."""
    ecc_off: bool = False


TABLE: tuple[Absence, ...] = (
    Absence(
        ("fabric.clique", "fabric.cluster"), "driver {branch} reports no fabric clique",
        "recorded: 535.183.01 prints State and Status alone, 550.54.14 both more", below=550,
    ),
    Absence(
        ("fabric.bandwidth",), "driver {branch} reports no fabric bandwidth",
        "recorded: absent in 535.183.01, there from 550.54.14 on", below=550,
    ),
    Absence(
        ("fabric.bandwidth",), "only GPUs on the NVSwitches of a rack report a fabric bandwidth",
        f"{K8S}: N/A on HGX H100 and B200 (580.105.08), Full on GB200 and GB300 (580.173.02); {EXPORTER}: N/A on H100, H200",
        switches="node",
    ),
    Absence(
        ("fabric.summary",), "driver {branch} reports no summary of the fabric",
        f"{K8S}: absent in 570.148.08, there in 580.105.08", below=580,
    ),
    Absence(
        ("fabric.summary",), "Hopper reports no summary of the fabric",
        f"{K8S}: N/A on H100 (580.105.08); {EXPORTER}: N/A on H100 and H200", architectures=("hopper",),
    ),
    Absence(
        ("remapped",), "a GPU in MIG mode does not report its remapped rows",
        f"{EXPORTER}: H100 and H200; telegraf: A100, 535.54.03", mig=True,
    ),
    Absence(
        ("utilization",), "a GPU in MIG mode does not report how busy it is",
        f"{EXPORTER}: H100 and H200; telegraf: A100, 535.54.03; NVML documentation", mig=True,
    ),
    Absence(
        ("ecc.sram_threshold_exceeded",), "driver {branch} reports no threshold of SRAM errors",
        "recorded: absent in 535.54.03 (A100), 535.129.03 (A10), 515.105.01; there in 550.90.07 (L4), 555.42.02 (A100)",
        below=550, architectures=("ampere", "ada"),
    ),
    Absence(
        ("ecc.sram_threshold_exceeded",), "driver {branch} reports no threshold of SRAM errors",
        "recorded: absent in 515.105.01, there in 535.183.01 (H100)", below=535,
    ),
    Absence(
        ("ecc.channel_repair_pending", "ecc.tpc_repair_pending"), "driver {branch} reports no pending repair",
        f"{K8S}: absent in 570.148.08, there in 580.105.08", below=580,
    ),
    Absence(
        ("ecc.unrepairable_memory",), "driver {branch} need not report unrepairable memory",
        f"{K8S}: absent in 580.105.08, there in 580.173.02; {EXPORTER}", below=590,
    ),
    Absence(
        ("reset_required",), "driver {branch} reports neither a recovery action nor whether it needs a reset",
        "recorded: neither in 515.105.01 and 525.147.05; a reset status in 535.54.03, a recovery action in 570.148.08", below=535,
    ),
    Absence(
        ("gsp",), "the GPU runs without GSP firmware, as kernel modules that are not open allow",
        "NVIDIA driver README 580, GSP firmware: N/A where it is disabled; open-gpu-kernel-modules#820: the open ones need it",
        closed_modules=True,
    ),
    Absence(
        ("gsp",), "the GSP firmware of a virtual GPU runs on the host",
        "NVIDIA vGPU documentation; not confirmed by a recorded document", vm=True,
    ),
    Absence(
        ("ecc.volatile", "ecc.aggregate", "ecc.sram_threshold_exceeded", "ecc.channel_repair_pending",
         "ecc.tpc_repair_pending", "ecc.unrepairable_memory"),
        "ECC is off, so nothing is counted", "telegraf: RTX 4000 SFF Ada, 595.84; RTX 6000 Ada, 550.127.05", ecc_off=True,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Shown:
    """The properties that decide which fields a GPU reports; None: unknown."""

    branch: int
    architecture: str | None
    switches: str | None
    mig: bool
    vm: bool
    open_modules: bool | None
    ecc: bool | None


def excused(expected: Expected, document: Document, found: Finding) -> Finding:
    """The finding, or OUT_OF_SCOPE where it is of a value that this GPU does not report."""
    place = re.fullmatch(r"gpus\.gpus\[(\d+)\]\.(.+)", found.place)
    if found.status is not Status.UNKNOWN or place is None:
        return found
    try:
        gpus = document.gpus.gpus
        shown = [shown_by(expected, document, gpu) for gpu in gpus]
    except (Unreadable, ValueError):
        return found  # not a valid driver version
    index, field = int(place.group(1)), place.group(2)
    why = reason(field, shown[index])
    peers = (gpu for gpu, mode in zip(gpus, shown) if mode == shown[index])  # noqa: B905 - Python 3.9
    if why is None or any(value_of(gpu, field) is not None for gpu in peers):
        return found
    return aside(why)


def reason(field: str, shown: Shown) -> str | None:
    """Why a GPU does not report a field; None where it should."""
    for row in TABLE:
        named = any(field == one or field.startswith(one + ".") for one in row.fields)
        if named and holds(row, shown):
            return row.why.format(branch=shown.branch)
    return None


def holds(row: Absence, shown: Shown) -> bool:
    """Whether every condition that a row sets is met."""
    return (
        (row.below is None or shown.branch < row.below)
        and (not row.architectures or shown.architecture in row.architectures)
        and (row.switches is None or shown.switches == row.switches)
        and (not row.mig or shown.mig)
        and (not row.vm or shown.vm)
        and (not row.closed_modules or shown.open_modules is not True)
        and (not row.ecc_off or shown.ecc is False)
    )


def shown_by(expected: Expected, document: Document, gpu: Gpu) -> Shown:
    """What decides which fields a GPU reports, from its declaration and its document."""
    declared = expected.the_gpus()
    return Shown(
        branch=int(document.gpus.driver_version.partition(".")[0]),
        architecture=declared.architecture,
        switches=declared.nvswitch,
        mig=bool(maybe(gpu, "mig.current")),
        vm=expected.platform == "vm",
        open_modules=_open_modules(expected, document),
        ecc=maybe(gpu, "ecc.current"),
    )


def _open_modules(expected: Expected, document: Document) -> bool | None:
    try:
        loaded = document.driver.open
    except Unreadable:
        loaded = None
    return expected.driver_open if loaded is None else loaded


def maybe(gpu: Gpu, field: str) -> bool | None:
    """A flag of a GPU; None where it is not reported."""
    value = value_of(gpu, field)
    return value if isinstance(value, bool) else None


def value_of(gpu: Gpu, field: str) -> object:
    """The value of a field; None where it is not reported."""
    value: object = gpu
    try:
        for name in field.split("."):
            value = getattr(value, name)
    except Unreadable:
        return None
    return value
