"""GPUs as nvidia-smi reports them; one XML document for all of them."""

from __future__ import annotations

import re
from typing import Any

from rackwright.health.probe.source import NVIDIA_SMI_SECONDS, Source, Unavailable, number

LOST = "GPU is lost"
"""Printed in place of a value when the driver can no longer reach the GPU."""
NOTHING = ("", "N/A", "[N/A]", "Requested functionality has been deprecated", "Unknown Error", LOST)
REPAIRS = ("channel_repair_pending", "tpc_repair_pending", "unrepairable_memory")
END = "</nvidia_smi_log>"
CORRUPTED_INFOROM = r"(?i)infoROM is corrupted at gpu ([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])"
THROTTLES = ("clocks_event_reasons", "clocks_throttle_reasons")


def gpus(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """Every GPU that nvidia-smi lists, and the driver."""
    found = parse(query(source))
    if any(gpu["mig"]["current"] for gpu in found["gpus"]):
        profiles = parse_mig_list(source.run(["nvidia-smi", "-L"], NVIDIA_SMI_SECONDS))
        for gpu in found["gpus"]:
            gpu["mig"]["profiles"] = profiles.get(gpu["uuid"])
    return found


def query(source: Source) -> str:
    """What `nvidia-smi -q -x` prints.

    If one GPU is lost or has a corrupted InfoROM, it exits with an error; the document then covers the others.
    """
    arguments = ["nvidia-smi", "-q", "-x"]
    status, out, err = source.start(arguments, NVIDIA_SMI_SECONDS)
    if status == 0 or END in out:
        return out + err
    printed = (err.strip() or out.strip() or "nothing").splitlines()[-1][:300]
    raise Unavailable(f"`{' '.join(arguments)}` exited {status}: {printed}")


def parse(text: str) -> dict[str, Any]:
    """Read `nvidia-smi -q -x` and the text around the document; raises Unavailable for other output."""
    try:
        from xml.etree import ElementTree  # missing from Debian's python3-minimal
    except ImportError:
        raise Unavailable("this Python cannot read XML: install python3, not python3-minimal") from None
    document, end, tail = text.partition(END)
    head, mark, document = document.partition("<?xml") if "<?xml" in document else ("", "", document)
    try:
        root = ElementTree.fromstring(mark + document + end)
    except ElementTree.ParseError as error:
        raise Unavailable(f"`nvidia-smi -q -x` did not print XML: {error}") from None
    if root.tag != "nvidia_smi_log":
        raise Unavailable(f"`nvidia-smi -q -x` printed <{root.tag}>, not <nvidia_smi_log>")
    return from_root(root, head + tail)


def from_root(root: Any, tail: str = "") -> dict[str, Any]:  # noqa: ANN401 - an Element
    """Read the document's element, and the warnings that nvidia-smi prints before or after it."""
    corrupted = {pci_address(bus) for bus in re.findall(CORRUPTED_INFOROM, tail)}
    gpus = [one_gpu(index, node) for index, node in enumerate(root.findall("gpu"))]
    for gpu in gpus:
        gpu["inforom_corrupted"] = gpu["address"] in corrupted
    return {
        "driver_version": words(root, "driver_version"),
        "cuda_version": words(root, "cuda_version"),
        "attached": number(words(root, "attached_gpus")),
        "gpus": gpus,
        "said": tail.strip()[:300] or None,
    }


def words(node: Any, path: str) -> str | None:  # noqa: ANN401 - an Element
    """The text at a path; None if it is absent or the driver reports no value."""
    found = node.find(path)
    text = (found.text or "").strip() if found is not None else ""
    return None if text in NOTHING or text.startswith("[Unknown") else text


def yes(node: Any, path: str, true: str, false: str) -> bool | None:  # noqa: ANN401
    """A two-valued word as true or false; None for any other."""
    text = words(node, path)
    return {true: True, false: False}.get(text) if text is not None else None


def figure(node: Any, *paths: str) -> Any:  # noqa: ANN401 - a number or None
    """The number at the first path that has a number."""
    for path in paths:
        value = number(words(node, path))
        if value is not None:
            return value
    return None


def one_gpu(index: int, node: Any) -> dict[str, Any]:  # noqa: ANN401
    """One <gpu> element."""
    bus = node.get("id") or words(node, "pci/pci_bus_id")
    return {
        "index": index,
        "address": pci_address(bus) if bus else None,
        "minor": figure(node, "minor_number"),
        "name": words(node, "product_name"),
        "architecture": words(node, "product_architecture"),
        "pci_id": (words(node, "pci/pci_device_id") or "")[:4].lower() or None,
        "lost": any(LOST in (one.text or "") for one in node.iter()),
        "uuid": words(node, "uuid"),
        "serial": words(node, "serial"),
        "vbios": words(node, "vbios_version"),
        "inforom": words(node, "inforom_version/img_version"),
        "gsp": words(node, "gsp_firmware_version"),
        "persistence": yes(node, "persistence_mode", "Enabled", "Disabled"),
        "compute_mode": words(node, "compute_mode"),
        "pstate": words(node, "performance_state"),
        "recovery_action": words(node, "gpu_recovery_action"),
        "reset_required": yes(node, "gpu_reset_status/reset_required", "Yes", "No"),
        "memory": memory(node),
        "ecc": ecc(node),
        "remapped": remapped(node),
        "retired": retired(node),
        "pcie": pcie(node),
        "temperature": temperature(node),
        "power": power(node),
        "clocks": clocks(node),
        "throttle": throttle(node),
        "mig": mig(node),
        "fabric": fabric(node),
        "utilization": figure(node, "utilization/gpu_util"),
        "processes": processes(node),
    }


def processes(node: Any) -> list[dict[str, Any]] | None:  # noqa: ANN401
    """Processes that use the GPU; None where the driver does not report them."""
    if node.find("processes") is None or (node.findtext("processes") or "").strip() == "N/A":
        return None
    return [
        {"pid": figure(entry, "pid"), "used_mib": figure(entry, "used_memory")}
        for entry in node.findall("processes/process_info")
    ]


def pci_address(bus: str) -> str:
    """`00000000:1B:00.0` as the kernel writes it, `0000:1b:00.0`."""
    domain, _, rest = bus.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def memory(node: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "total_mib": figure(node, "fb_memory_usage/total"),
        "used_mib": figure(node, "fb_memory_usage/used"),
        "bar1_mib": figure(node, "bar1_memory_usage/total"),
    }


def ecc(node: Any) -> dict[str, Any]:  # noqa: ANN401
    def counts(kind: str) -> dict[str, Any]:
        at = f"ecc_errors/{kind}/"
        split = [figure(node, at + "sram_uncorrectable_" + part) for part in ("parity", "secded")]
        whole = figure(node, at + "sram_uncorrectable")
        if whole is None and None not in split:
            whole = sum(split)
        figures = {
            "sram_uncorrectable": whole,
            "dram_uncorrectable": figure(node, at + "dram_uncorrectable"),
            "sram_correctable": figure(node, at + "sram_correctable"),
            "dram_correctable": figure(node, at + "dram_correctable"),
        }
        for bits, name in (("double_bit", "uncorrectable"), ("single_bit", "correctable")):
            dram, total = (figure(node, f"{at}{bits}/{part}") for part in ("device_memory", "total"))
            if dram is not None and total is not None:  # Volta and older list each memory separately
                figures.update({"dram_" + name: dram, "sram_" + name: total - dram})
        return figures

    return {
        "current": yes(node, "ecc_mode/current_ecc", "Enabled", "Disabled"),
        "pending": yes(node, "ecc_mode/pending_ecc", "Enabled", "Disabled"),
        "volatile": counts("volatile"),
        "aggregate": counts("aggregate"),
        "sram_threshold_exceeded": yes(node, "ecc_errors/aggregate/sram_threshold_exceeded", "Yes", "No"),
        **{name: yes(node, "ecc_errors/" + name, "Yes", "No") for name in REPAIRS},
    }


def remapped(node: Any) -> dict[str, Any] | None:  # noqa: ANN401
    if node.find("remapped_rows/remapped_row_pending") is None:
        return None
    return {
        "correctable": figure(node, "remapped_rows/remapped_row_corr"),
        "uncorrectable": figure(node, "remapped_rows/remapped_row_unc"),
        "pending": yes(node, "remapped_rows/remapped_row_pending", "Yes", "No"),
        "failure": yes(node, "remapped_rows/remapped_row_failure", "Yes", "No"),
    }


def retired(node: Any) -> dict[str, Any]:  # noqa: ANN401
    at = "retired_pages/"
    return {
        "single_bit": figure(node, at + "multiple_single_bit_retirement/retired_count"),
        "double_bit": figure(node, at + "double_bit_retirement/retired_count"),
        "pending": yes(node, at + "pending_retirement", "Yes", "No"),
    }


def pcie(node: Any) -> dict[str, Any]:  # noqa: ANN401
    at = "pci/pci_gpu_link_info/"
    return {
        "gen": figure(node, at + "pcie_gen/current_link_gen"),
        "gen_max": figure(node, at + "pcie_gen/max_link_gen"),
        "width": figure(node, at + "link_widths/current_link_width"),
        "width_max": figure(node, at + "link_widths/max_link_width"),
        "replays": figure(node, "pci/replay_counter"),
    }


def temperature(node: Any) -> dict[str, Any]:  # noqa: ANN401
    """Older boards report their slowdown temperature, newer ones the margin to it."""
    return {
        "gpu_c": figure(node, "temperature/gpu_temp"),
        "slowdown_c": figure(node, "temperature/gpu_temp_slow_threshold"),
        "margin_c": figure(node, "temperature/gpu_temp_tlimit"),
        "slowdown_margin_c": figure(node, "temperature/gpu_temp_slow_tlimit_threshold"),
        "memory_c": figure(node, "temperature/memory_temp"),
        "memory_max_c": figure(node, "temperature/gpu_temp_max_mem_threshold"),
    }


def power(node: Any) -> dict[str, Any]:  # noqa: ANN401
    new, old = "gpu_power_readings/", "power_readings/"
    draw = (
        "average_power_draw",
        "power_draw",
        "instant_power_draw",
    )  # an instantaneous value may exceed the limit
    return {
        "draw_w": figure(node, *(new + name for name in draw), old + "power_draw"),
        "limit_w": figure(
            node, new + "current_power_limit", old + "enforced_power_limit", old + "power_limit"
        ),
        "default_w": figure(node, new + "default_power_limit", old + "default_power_limit"),
    }


def clocks(node: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "sm_mhz": figure(node, "clocks/sm_clock"),
        "sm_max_mhz": figure(node, "max_clocks/sm_clock"),
        "memory_mhz": figure(node, "clocks/mem_clock"),
        "memory_max_mhz": figure(node, "max_clocks/mem_clock"),
    }


def throttle(node: Any) -> dict[str, bool | None]:  # noqa: ANN401
    """Whether each reason holds the clocks down now; None for a reason that the driver does not report."""
    found: dict[str, bool | None] = {}
    for group in THROTTLES:
        for entry in node.findall(group + "/*"):
            name = re.sub("clocks_(event|throttle)_reason_", "", entry.tag)
            found[name] = {"Active": True, "Not Active": False}.get((entry.text or "").strip())
    return found


def mig(node: Any) -> dict[str, Any]:  # noqa: ANN401
    """`profiles` of a GPU in MIG mode come from another list, which `gpus` reads."""
    current = yes(node, "mig_mode/current_mig", "Enabled", "Disabled")
    return {
        "current": current,
        "pending": yes(node, "mig_mode/pending_mig", "Enabled", "Disabled"),
        "instances": len(node.findall("mig_devices/mig_device")),
        "profiles": [] if current is False else None,
    }


def fabric(node: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "state": words(node, "fabric/state"),
        "status": words(node, "fabric/status"),
        "clique": words(node, "fabric/cliqueId"),
        "cluster": words(node, "fabric/clusterUuid"),
        "bandwidth": words(node, "fabric/health/bandwidth"),
        "summary": words(node, "fabric/health/summary"),
    }


def parse_mig_list(text: str) -> dict[str, list[str]]:
    """Read `nvidia-smi -L`: the MIG profiles of each GPU, by its UUID."""
    found: dict[str, list[str]] = {}
    profiles: list[str] = []
    for line in text.splitlines():
        gpu = re.match(r"GPU \d+: .*\(UUID: (GPU-[^)]+)\)", line)
        instance = re.match(r"\s+MIG (\S+)\s+Device\s+\d+:", line)
        if gpu:
            profiles = found.setdefault(gpu.group(1), [])
        elif instance:
            profiles.append(instance.group(1))
    return found
