"""Simulated GPUs of the SKU: output of nvidia-smi and dcgmi on a lab node, healthy and broken.

There is no GPU. Every text is made from the declared SKU in the layout of the real tools (recorded
documents are in the tests) and states that it is simulated. Tools serve the texts verbatim, so
that the probe runs on a lab node as it runs on a real one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rackwright.lab import smi_xml
from rackwright.model.sku import Architecture, Gpus, NvSwitch

XML = "-q -x"
MISMATCH_EXIT = 18
"""NVML_ERROR_LIB_RM_VERSION_MISMATCH, which nvidia-smi exits with."""
Documents = dict[str, str]
"""What `nvidia-smi` prints by its arguments."""


NVLINK_4 = {"Replay Errors": "0", "Recovery Errors": "0", "CRC Errors": "0"}
NVLINK_5 = {
    **dict.fromkeys(
        (
            "Malformed packet Errors", "Buffer overrun Errors", "Rx Errors", "Rx remote Errors", "Rx General Errors",
            "Local link integrity Errors", "Tx discards", "Link recovery successful events",
            "Link recovery failed events", "Total link recovery events", "Effective Errors",
        ),
        "0",
    ),
    "Effective BER": "15e-255", "Symbol Errors": "0", "Symbol BER": "15e-255",
    "FEC Errors - 0": "36140749276", **{f"FEC Errors - {number}": "0" for number in range(1, 16)},
    "Raw BER Lane 0": "2061", "Raw BER Lane 1": "1038", "Raw BER Total": "1037",
    "Raw Errors Lane 0": "82", "Raw Errors Lane 1": "4",
}  # fmt: skip
"""Counters of `nvlink -e` by generation; those of NVLink 5 as recorded of a healthy B300 (driver 595.91.07)."""


def documents(gpus: Gpus, mig: tuple[str, ...] = (), nics: int = 0) -> Documents:
    """What nvidia-smi prints of healthy, idle GPUs; `mig`: the profiles each is divided into."""
    outputs = {
        XML: smi_xml.document(gpus, mig),
        "-L": "".join(_listed(index, gpus, mig) for index in range(gpus.count)),
        "topo -m": topology(gpus.count, nics, gpus.nvlinks or 0, gpus.nvswitch),
    }
    if gpus.nvlinks:
        # Data rates are shown with their coding: nominal 25 GB/s appear as 26.562.
        speed = (gpus.nvlink_gbs or 0) / gpus.nvlinks / 2 * 1.0625
        rows = "".join(f"\t Link {link}: {speed:.3f} GB/s\n" for link in range(gpus.nvlinks))
        counters = NVLINK_5 if gpus.architecture is Architecture.BLACKWELL else NVLINK_4
        errors = "".join(
            f"\t Link {link}: {name}: {count}\n"
            for link in range(gpus.nvlinks)
            for name, count in counters.items()
        )
        heads = [_head(index, gpus) for index in range(gpus.count)]
        outputs["nvlink -s"] = "".join(head + rows for head in heads)
        outputs["nvlink -e"] = "".join(head + errors for head in heads)
    return outputs


def discovery(gpus: Gpus, listing: str) -> str:
    """`dcgmi discovery -l`, of the GPUs that `nvidia-smi -L` lists."""
    rule = f"+--------+{'-' * 70}+\n"
    rows = ""
    for index, uuid in re.findall(r"^GPU (\d+): .*\(UUID: (\S+)\)", listing, re.MULTILINE):
        for number, text in enumerate(
            (f"Name: {smi_xml.name(gpus)}", f"PCI Bus ID: {smi_xml.bus(int(index))}", f"Device UUID: {uuid}")
        ):
            rows += f"| {index if number == 0 else '':<6} | {text:<68} |\n"
        rows += rule
    count = listing.count("(UUID: GPU-")
    return f"{count} GPUs found.\n{rule}| GPU ID | {'Device Information':<68} |\n{rule}{rows}"


def topology(gpus: int, nics: int, nvlinks: int, nvswitch: NvSwitch | None) -> str:
    """`nvidia-smi topo -m` of a board with one NIC beside every GPU."""
    names = [f"GPU{index}" for index in range(gpus)] + [f"NIC{index}" for index in range(nics)]
    pair = f"NV{nvlinks}" if nvlinks and nvswitch is not NvSwitch.NONE else "SYS"

    def cell(one: str, other: str) -> str:
        if one == other:
            return " X "
        if one[:3] == other[:3] == "GPU":
            return pair
        return "PIX" if one[3:] == other[3:] else "NODE"

    rows = "".join(
        "\t".join([one, *(cell(one, other) for other in names), "0-47", "0", "N/A"]) + "\n" for one in names
    )
    legend = "".join(f"  NIC{index}: mlx5_{index}\n" for index in range(nics))
    head = "\t\x1b[4m" + "\t".join(names) + "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    return f"{head}{rows}\nLegend:\n\n  X    = Self\n\nNIC Legend:\n\n{legend}"


def _head(index: int, gpus: Gpus) -> str:
    return f"GPU {index}: {smi_xml.name(gpus)} (UUID: {smi_xml.uuid(index)})\n"


def _listed(index: int, gpus: Gpus, mig: tuple[str, ...]) -> str:
    rows = (f"  MIG {one}     Device  {at}: (UUID: MIG-{at})\n" for at, one in enumerate(mig))
    return _head(index, gpus) + "".join(rows)


@dataclass(frozen=True)
class Tools:
    """What the tools of a node do: print these documents, or fail with these words."""

    documents: Documents
    fails: str = ""


_EDITS = {
    "ecc": (XML, "<dram_uncorrectable>0<", "<dram_uncorrectable>3<"),
    "throttle": (XML, "hw_thermal_slowdown>Not Active<", "hw_thermal_slowdown>Active<"),
    "pcie-width": (XML, "<current_link_width>16x<", "<current_link_width>8x<"),
    "mig-mismatch": (XML, "<current_mig>Disabled<", "<current_mig>Enabled<"),
    "nvlink-down": ("nvlink -s", r"Link 5: 26.562 GB/s", "Link 5: <inactive>"),
}
"""Words that change, in the part of the last GPU."""
_LAST = {XML: "<gpu id=", "nvlink -s": "GPU "}
_LIBRARY = "580.105.08"
_MISMATCH = f"NVRM: API mismatch: the client has the version {_LIBRARY}, but this kernel module has the version {smi_xml.DRIVER}."
_KERNEL = {
    "lost": (
        "NVRM: GPU at PCI:{pci}: {uuid}",
        "NVRM: GPU {pci}.0: GPU has fallen off the bus.",
        "NVRM: Xid (PCI:{pci}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    ),
    "driver-mismatch": (_MISMATCH,),
}
KINDS = (*_EDITS, *_KERNEL)
"""Faults by name; besides them `xid:NUMBER`."""
BOOT = f"NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {smi_xml.DRIVER}  (simulated: no GPU here)"


def tools(gpus: Gpus, mig: tuple[str, ...], faults: Iterable[str]) -> Tools:
    """What the tools do while a node has these faults; the last GPU is the one that has them."""
    faults = tuple(faults)
    if "driver-mismatch" in faults:
        return Tools(
            {},
            f"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: {_LIBRARY}\n",
        )
    if "lost" in faults:
        if gpus.count == 1:
            return Tools({}, "No devices were found\n")
        gpus = gpus.model_copy(update={"count": gpus.count - 1})
    found = documents(gpus, mig)
    for kind in faults:
        if kind in _EDITS:
            name, old, new = _EDITS[kind]
            head, mark, last = found.get(name, "").rpartition(_LAST[name])
            if old not in last:
                raise ValueError(f"{gpus.model} cannot have the fault {kind}: its {name} does not report it")
            found[name] = head + mark + last.replace(old, new, 1)
    return Tools(found)


def kernel_lines(gpus: Gpus, kind: str) -> tuple[str, ...]:
    """The driver's message in the kernel log when a fault happens; ValueError for an unknown fault."""
    last = gpus.count - 1
    pci = smi_xml.bus(last)[4:].lower().rpartition(".")[0]
    name, _, number = kind.partition(":")
    if name == "xid" and number.isdigit() and 0 < int(number) < 1000:
        why = ", GPU has fallen off the bus." if number == "79" else ", simulated by rackwright lab"
        return (f"NVRM: Xid (PCI:{pci}): {int(number)}, pid=4711, name=python3{why}",)
    if kind not in KINDS:
        raise ValueError(f"unknown fault gpu:{kind}")
    return tuple(
        line.replace("{pci}", pci).replace("{uuid}", smi_xml.uuid(last)) for line in _KERNEL.get(kind, ())
    )
