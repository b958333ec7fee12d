"""What NVIDIA's repositories would carry for the tests: names and versions, without a file of theirs.

tests/unit/roles solve their locks against it; tests/racks/gpu_companions builds tiny packages of the same names.
"""

from __future__ import annotations

from rackwright.lock.index import Entry, Index

DRIVER = "580.173.02"
REVISION = f"{DRIVER}-1"
DCGM = "4.6.0"
TOOLKIT = "1.20.0"
GDRCOPY = "2.5.1-1"
MIG_PARTED = "0.12.1-1"

DRIVER_PACKAGES = {
    f"nvidia-driver-pinning-{DRIVER}": REVISION,
    "nvidia-open": REVISION,
    f"nvidia-dkms-{DRIVER.split('.')[0]}-open": REVISION,
    f"nvidia-driver-{DRIVER.split('.')[0]}-open": REVISION,
    "nvidia-modprobe": REVISION,
    "nvidia-persistenced": REVISION,
}
COMPANIONS = {
    "nvidia-fabricmanager": REVISION,
    "libnvidia-nscq": REVISION,
    "nvlsm": "2025.06.6-1",
    "libnvsdm": REVISION,
    "nvidia-imex": REVISION,
    "datacenter-gpu-manager-4-core": f"1:{DCGM}-1",
    "datacenter-gpu-manager-4-cuda13": f"1:{DCGM}-1",
    "datacenter-gpu-manager-4-proprietary": f"1:{DCGM}-1",
    "datacenter-gpu-manager-4-proprietary-cuda13": f"1:{DCGM}-1",
    "nvidia-container-toolkit": f"{TOOLKIT}-1",
    "nvidia-container-toolkit-base": f"{TOOLKIT}-1",
    "libnvidia-container-tools": f"{TOOLKIT}-1",
    "libnvidia-container1": f"{TOOLKIT}-1",
    "gdrdrv-dkms": GDRCOPY,
    "libgdrapi": GDRCOPY,
    "nvidia-mig-manager": MIG_PARTED,
}


def index() -> Index:
    """As if its `Packages` file had been read."""
    packages = {**DRIVER_PACKAGES, **COMPANIONS}
    return Index(("Packages",), {name: (Entry(name, version, None),) for name, version in packages.items()})
