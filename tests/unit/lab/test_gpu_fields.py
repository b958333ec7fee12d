"""What the lab says that DCGM would report: idle and healthy, and each fault on the last GPU alone."""

from __future__ import annotations

import pytest

from rackwright.catalog.read import catalogue
from rackwright.lab import gpus
from rackwright.lab.gpu_fields import report

H100 = catalogue()["lab-h100-node"].gpus
T4 = H100.model_copy(update={"nvlinks": 0, "power_watts": None})
HEALTHY = report(H100, [], 100.0)["gpus"]


def changed(*faults):
    """What differs from healthy GPUs: (GPU, field, value), and what grows."""
    found = report(H100, faults, 100.0)["gpus"]
    values = {
        (one["labels"]["gpu"], name, value)
        for one, well in zip(found, HEALTHY, strict=False)
        for name, value in one["values"].items()
        if value != well["values"][name]
    }
    rates = {
        (one["labels"]["gpu"], name, rate)
        for one, well in zip(found, HEALTHY, strict=False)
        for name, rate in one["rates"].items()
        if rate != well["rates"].get(name)
    }
    return values, rates


def test_they_are_what_nvidia_smi_lists():
    listed = gpus.documents(H100)["-L"]
    assert len(HEALTHY) == H100.count
    for one in HEALTHY:
        assert (
            f"GPU {one['labels']['gpu']}: {one['labels']['modelName']} (UUID: {one['labels']['UUID']})"
            in listed
        )
        assert (
            one["values"]["DCGM_FI_DEV_FB_FREE"] + one["values"]["DCGM_FI_DEV_FB_RESERVED"] == H100.memory_mib
        )


def test_an_idle_gpu_uses_energy():
    assert HEALTHY[0]["rates"] == {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": pytest.approx(68_920)}


def test_what_a_board_lacks_is_not_reported():
    values = report(T4, [], 0.0)["gpus"][0]["values"]
    assert not [name for name in values if "NVLINK" in name or "POWER_LIMIT" in name]


@pytest.mark.parametrize(
    ("fault", "values", "rates"),
    [
        ("ecc", {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 3, "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": 3}, {}),
        (
            "throttle",
            {"DCGM_FI_DEV_GPU_TEMP": 89, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0x40},
            {"DCGM_FI_DEV_THERMAL_VIOLATION": 1e9},
        ),
        ("pcie-width", {"DCGM_FI_DEV_PCIE_LINK_WIDTH": 8}, {}),
        (
            "nvlink-down",
            {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": 1},
            {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": 0.2},
        ),
        ("xid:79", {"DCGM_FI_DEV_XID_ERRORS": 79}, {}),
        ("mig-mismatch", {}, {}),
    ],
)
def test_a_fault_is_the_last_gpu_s(fault, values, rates):
    last = str(H100.count - 1)
    assert changed(fault) == (
        {(last, name, value) for name, value in values.items()},
        {(last, name, rate) for name, rate in rates.items()},
    )


def test_every_fault_of_the_lab_is_known():
    assert {"ecc", "throttle", "pcie-width", "nvlink-down", "mig-mismatch", "lost", "driver-mismatch"} == set(
        gpus.KINDS
    )


def test_gpus_that_are_gone():
    assert len(report(H100, ["lost"], 0.0)["gpus"]) == H100.count - 1
    assert report(H100, ["driver-mismatch"], 0.0)["gpus"] == []
    assert report(H100.model_copy(update={"count": 1}), ["lost", "ecc"], 0.0)["gpus"] == []


def test_a_board_without_nvlinks_cannot_lose_one():
    assert report(T4, ["nvlink-down"], 0.0)["gpus"][-1]["values"] == report(T4, [], 0.0)["gpus"][-1]["values"]
