"""The driver as the kernel knows it, modules, DKMS builds and packages."""

from __future__ import annotations

import re
from typing import Any

from rackwright.health.probe.source import Source, Unavailable, pairs

WATCHED = (
    r"^(?:lib)?(?:nvidia|cuda|nccl|nvsdm|nvlsm|datacenter-gpu|doca|mlnx|mft|rdma|ibverbs|opensm|mstflint)"
    r"|^(?:linux-image|linux-headers|kernel|slurm|slurmd|munge|docker|containerd|podman|enroot|chrony|gdrcopy|dkms)"
)
PARAMETERS = ("EnableGpuFirmware", "RmProfilingAdminOnly", "RestrictProfilingToAdminUsers")


def driver(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """The loaded NVIDIA kernel driver, and all loaded modules."""
    modules = sorted(line.split(" ", 1)[0] for line in source.text("/proc/modules").splitlines() if line)
    text = source.maybe("/proc/driver/nvidia/version")
    version, is_open = parse_version(text) if text is not None else (None, None)
    parameters = source.maybe("/proc/driver/nvidia/params")
    return {
        "version": version,
        "open": is_open,
        "modules": modules,
        "parameters": pairs(parameters, ":") if parameters is not None else None,
        "dkms": dkms(source),
    }


def parse_version(text: str) -> tuple[str | None, bool]:
    """Read /proc/driver/nvidia/version: the version, and whether these are the open modules."""
    line = text.split("\n", 1)[0]
    found = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", line)
    return (found.group(1) if found else None), "Open Kernel Module" in line


def dkms(source: Source) -> list[dict[str, Any]]:
    """DKMS builds, from its tree: `dkms status` takes half a second."""
    found = []
    top = "/var/lib/dkms"
    for module in source.names(top):
        if module.startswith(".") or module == "mok.key" or module == "mok.pub":
            continue
        for version in source.names(f"{top}/{module}"):
            at = f"{top}/{module}/{version}"
            if version.startswith("kernel-"):
                continue  # a link to the installed build
            kernels = [
                name
                for name in source.names(at)
                if name not in ("build", "source") and source.exists(f"{at}/{name}")
            ]
            built = [
                k
                for k in kernels
                if any(source.names(f"{at}/{k}/{a}/module") for a in source.names(f"{at}/{k}"))
            ]
            found.append({"module": module, "version": version, "kernels": built})
    return found


def packages(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """Versions and holds of the relevant packages, and packages left half installed."""
    if source.exists("/var/lib/dpkg/status"):
        return from_dpkg(source)
    return from_rpm(source)


def from_dpkg(source: Source) -> dict[str, Any]:
    watched, broken = [], []
    for record in source.text("/var/lib/dpkg/status").split("\n\n"):
        if not record.startswith("Package: "):
            continue
        name = record[9 : record.index("\n")]
        fields = dict(re.findall(r"^(Status|Version): (.*)$", record, re.MULTILINE))
        want, error, state = (fields.get("Status", "") + " ? ? ?").split()[:3]
        if error == "reinstreq" or state not in ("installed", "config-files", "not-installed"):
            broken.append(f"{name} ({state})")
        if state == "installed" and re.match(WATCHED, name):
            watched.append({"name": name, "version": fields.get("Version"), "held": want == "hold"})
    if not watched and "Status: " not in source.text("/var/lib/dpkg/status"):
        raise Unavailable("/var/lib/dpkg/status: not a package list")
    return {"tool": "dpkg", "packages": watched, "broken": broken}


def from_rpm(source: Source) -> dict[str, Any]:
    text = source.run(["rpm", "-qa", "--qf", "%{NAME} %{EPOCH}:%{VERSION}-%{RELEASE}\\n"], 5.0)
    locks = source.maybe("/etc/dnf/plugins/versionlock.list") or ""
    locked = {
        re.sub(r"-\d+:.*|-[^-]+-[^-]+$", "", line.strip())
        for line in locks.splitlines()
        if line[:1] not in "#!"
    }
    watched = []
    for line in text.splitlines():
        name, _, version = line.partition(" ")
        if re.match(WATCHED, name):
            watched.append({"name": name, "version": version.replace("(none):", ""), "held": name in locked})
    return {"tool": "rpm", "packages": watched, "broken": []}
