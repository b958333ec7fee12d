"""What a machine boots when it is switched on: the override of its BMC, then its disks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rackwright.lab.bmc.settings import Override

CD, DISK, NETWORK = "cd", "disk", "network"
HTTP = "UefiHttp"
TARGETS = {"None": None, "Cd": CD, "Hdd": DISK, "Pxe": NETWORK, HTTP: NETWORK}
"""Redfish's boot target -> the device."""
ONCE, CONTINUOUS, DISABLED = "Once", "Continuous", "Disabled"


@dataclass(frozen=True, slots=True)
class Choice:
    """The devices in their order, the order of later boots, and what is left of the override."""

    order: tuple[str, ...]
    later: tuple[str, ...]
    left: Override
    by_http: bool = False
    """Whether the firmware boots from the network by HTTP, and not by PXE."""


def choose(override: Override) -> Choice:
    """What this boot uses, and the boots after it."""
    device = TARGETS[override.target] if override.enabled != DISABLED else None
    order = tuple(dict.fromkeys((device, DISK))) if device is not None else (DISK,)
    by_http = override.target == HTTP and device is not None
    if override.enabled == ONCE:
        left = replace(override, target="None", enabled=DISABLED, http_uri="")
        return Choice(order, (DISK,), left, by_http)
    return Choice(order, order, override, by_http)
