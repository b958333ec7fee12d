"""Every SKU against systems, sources, drivers, CUDA and companions: what is refused, and what is locked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.catalog.read import catalogue
from rackwright.clusterfile.load import load_cluster
from rackwright.lock.content import GroupLock
from rackwright.lock.index import Index
from rackwright.lock.request import StackRequest, shipped_tables
from rackwright.lock.solve import Solution, solve
from rackwright.lock.source import offer_for
from rackwright.lock.versions import at_least
from rackwright.model.gpu_stack import GpuStack
from rackwright.model.sku import Architecture, NvSwitch
from rackwright.osfamily.known import RELEASES, os_release
from tests.unit.lock.clusters import write_cluster

TABLE = yaml.safe_load((Path(__file__).parent / "combinations.yaml").read_text())
NVIDIA = sorted(
    name
    for name, sku in catalogue().items()
    if sku.gpus is not None and sku.gpus.architecture is not Architecture.CDNA3
)


def _name(row: dict[str, Any]) -> str:
    return f"{row['sku']} {row['os']} {row['gpu_stack']}"


def _solution(folder: Path, row: dict[str, Any]) -> Solution:
    stack = yaml.safe_dump(row["gpu_stack"], default_flow_style=True).strip()
    cluster = load_cluster(write_cluster(folder, {row["sku"]: row["os"]}, stack))
    return solve(cluster, shipped_tables(), Index())


@pytest.mark.parametrize("row", TABLE["impossible"], ids=_name)
def test_impossible(tmp_path, row):
    solution = _solution(tmp_path, row)
    (refused,) = solution.refused
    assert [reason.message for reason in refused.reasons] == row["because"]
    assert solution.lock.groups == ()


@pytest.mark.parametrize("row", TABLE["possible"], ids=_name)
def test_possible(tmp_path, row):
    solution = _solution(tmp_path, row)
    assert solution.refused == ()
    (group,) = solution.lock.groups
    found = {
        "driver": group.driver_version,
        "modules": "open" if group.open_modules else "proprietary",
        "cuda": group.cuda,
        "kernel": group.kernel,
    }
    assert found == row["locked"]
    assert list(_companions(group)) == row["companions"]


def _companions(group: GroupLock) -> Iterator[str]:
    yield from (part for part in ("fabricmanager", "nvlsm", "imex") if group.components.get(part))
    if group.ofed == "doca":
        yield "doca"
    for name in group.packages:
        if name.startswith("datacenter-gpu-manager-4-cuda"):
            yield f"dcgm-{name.rpartition('-')[2]}"


def test_the_table_has_every_sku_and_enough_rows():
    assert len(TABLE["impossible"]) >= 16
    assert len(TABLE["possible"]) >= 24
    for kind in ("impossible", "possible"):
        names = [_name(row) for row in TABLE[kind]]
        assert len(names) == len(set(names))
    assert (
        {row["sku"] for row in TABLE["impossible"]}
        == {row["sku"] for row in TABLE["possible"]}
        == set(NVIDIA)
    )


@pytest.mark.parametrize(("sku", "os"), [(sku, os) for sku in NVIDIA for os in RELEASES])
def test_whatever_is_locked_by_default_fits_the_board_and_itself(tmp_path, sku, os):
    for stack in ({}, {"source": "distribution"}, {"security": "enforce"}):
        solution = _solution(tmp_path, {"sku": sku, "os": os, "gpu_stack": stack})
        assert len(solution.refused) + len(solution.lock.groups) == 1
        for refused in solution.refused:
            assert refused.reasons
        for group in solution.lock.groups:
            _holds(sku, group, GpuStack.model_validate(stack))


def _holds(name: str, group: GroupLock, wanted: GpuStack) -> None:
    """What has to be true of any lock of any SKU."""
    tables, sku = shipped_tables(), catalogue()[name]
    assert sku.gpus is not None
    os = os_release(str(group.os))
    offer = offer_for(tables.offers, wanted, os, Index())
    request = StackRequest(sku, sku.gpus, os, wanted, tables, Index(), offer)
    assert request.minimum_driver is None or at_least(group.driver_version, request.minimum_driver)
    assert request.rule is not None
    assert ("open" if group.open_modules else "proprietary") in request.rule.modules
    assert int(group.driver_branch) <= int(request.rule.last_branch or 999)
    _holds_cuda(request, group)
    _holds_security(request, group)
    at_driver = {
        group.packages[name] for part in ("fabricmanager", "imex") for name in group.components.get(part, ())
    }
    assert all(version.startswith(group.driver_version) for version in at_driver)
    assert bool(group.components.get("fabricmanager")) == (sku.gpus.nvswitch is NvSwitch.NODE)
    assert bool(group.components.get("imex")) == (sku.gpus.nvswitch is NvSwitch.RACK)
    assert group.exact == (
        not group.needs_index or group.needs_index == (os.indexes(sku.cpu_architecture)[1],)
    )
    if group.kernel is None:
        assert "kernel" not in group.components
        assert any(note.startswith("The kernel is not locked") for note in group.notes)
    else:
        assert group.kernel == os.family.kernel_release(group.kernel, sku.cpu_architecture)


def _holds_cuda(request: StackRequest, group: GroupLock) -> None:
    majors = {row.branch: row.cuda for row in request.tables.drivers.rows}
    driver_major = (majors[group.driver_branch] or "0").partition(".")[0]
    dcgm = [name for name in group.packages if name.startswith("datacenter-gpu-manager-4-cuda")]
    assert dcgm in ([], [f"datacenter-gpu-manager-4-cuda{driver_major}"])
    if group.cuda is None:
        return
    assert request.minimum_cuda is None or at_least(group.cuda, request.minimum_cuda)
    assert int(group.cuda.partition(".")[0]) <= int(driver_major)


def _holds_security(request: StackRequest, group: GroupLock) -> None:
    """Below the minimum only where the source has nothing better for the board, and then with a note."""
    minimums = {
        row.branch: row.version for row in request.tables.security.rows if row.component == "nvidia-driver"
    }
    minimum = minimums.get(group.driver_branch)
    if minimum is not None and at_least(group.driver_version, minimum):
        return
    assert request.wanted.security != "enforce"
    assert any("minimum-security" in note for note in group.notes)
    assert request.offer is not None
    kind = "open" if group.open_modules else "proprietary"
    better = [
        driver.version
        for driver in request.offer.drivers
        if driver.default
        and kind in driver.modules
        and driver.branch in minimums
        and at_least(driver.version, minimums[driver.branch])
        and (request.minimum_driver is None or at_least(driver.version, request.minimum_driver))
    ]
    assert better == []
