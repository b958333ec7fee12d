"""All roles of the lab's file hold on virtual machines, and next to nothing is out of scope there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.racks.program import Ran
from tests.racks.site import Site, operations
from tests.racks.verified import named, results
from tests.racks.vm.conftest import WORKERS, Times

pytestmark = [pytest.mark.lab, pytest.mark.proof]
NODES = ("head1", *WORKERS)
OUT_OF_SCOPE = {
    # hardware of the host
    **{
        (node, "tuning", "every CPU has the declared frequency governor"): "set by its host" for node in NODES
    },
    # nothing declared that they could be of
    ("head1", "slurm", "a job that requests a GPU gets one"): "no worker has declared GPUs",
}
"""And the reason of each."""


def test_every_role_is_applied_at_once(rack: Site, first_apply: list[Ran]) -> None:
    assert "3 of 3 nodes are as declared" in first_apply[0].out


def test_a_second_apply_is_empty(rack: Site) -> None:
    assert operations(rack.plan(0, full=True)) == set()


def test_verify_is_green_and_leaves_out_hardware_alone(rack: Site, times: Times) -> None:
    times.note("until verify")
    found = results(rack, 0)
    times.note("verify")
    assert set(found) == {"PASS", "OUT OF SCOPE"}, {
        status: [f"{one['node']}: {one['check']}: {one['evidence']}" for one in results_]
        for status, results_ in found.items()
        if status not in ("PASS", "OUT OF SCOPE")
    }
    assert {result["node"] for result in found["PASS"]} == set(NODES)
    assert named(found["OUT OF SCOPE"]) == set(OUT_OF_SCOPE)
    for one in found["OUT OF SCOPE"]:
        assert OUT_OF_SCOPE[(one["node"], one["role"], one["check"])] in one["evidence"]


def test_slurm_found_the_declared_hardware(rack: Site) -> None:
    said = rack.on("head1", "sinfo -h -N -o '%N %X %Y %Z %m'", 120).split("\n")
    workers = sorted(line for line in said if line)
    assert workers == ["worker1 2 1 1 1881", "worker2 2 1 1 1881"]
    numa = rack.on("worker1", "cat /sys/devices/system/node/node*/cpulist").split()
    assert numa == ["0", "1"]


def test_memory_and_times_for_the_ledger(
    rack: Site, times: Times, record_property: Callable[[str, object], None]
) -> None:
    for node in NODES:
        total, available = rack.on(
            node, "awk '/^(MemTotal|MemAvailable):/ {print int($2 / 1024)}' /proc/meminfo"
        ).split()
        record_property(f"memory of {node}", f"{total} MiB, {available} MiB available at rest")
        assert int(total) > 1881, "slurmd would refuse the node"
    record_property("times", times)
