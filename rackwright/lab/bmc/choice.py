"""What a machine boots when it is switched on: the override of its BMC, then its disks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rackwright.lab.bmc.settings import Override

CD, DISK, NETWORK = "cd", "disk", "network"
TARGETS = {"None": None, "Cd": CD, "Hdd": DISK, "Pxe": NETWORK, "UefiHttp": NETWORK}
"""Redfish's boot target -> the device. The firmware asks DHCP whether the network means PXE or HTTP."""
ONCE, CONTINUOUS, DISABLED = "Once", "Continuous", "Disabled"


@dataclass(frozen=True, slots=True)
class Choice:
    """The devices in their order, the order of later boots, and what is left of the override."""

    order: tuple[str, ...]
    later: tuple[str, ...]
    left: Override


def choose(override: Override) -> Choice:
    """What this boot uses, and the boots after it."""
    device = TARGETS[override.target] if override.enabled != DISABLED else None
    order = tuple(dict.fromkeys((device, DISK))) if device is not None else (DISK,)
    if override.enabled == ONCE:
        return Choice(order, (DISK,), replace(override, target="None", enabled=DISABLED, http_uri=""))
    return Choice(order, order, override)
