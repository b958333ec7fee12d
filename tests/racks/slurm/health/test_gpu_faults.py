"""Faults of a GPU: slurmd's health check drains the node, `why` explains it, healing resumes it.

Three of the eight kinds are part of `make test`; `make proof SUITE=health` has all.
"""

from __future__ import annotations

import json

import pytest

from rackwright.lab import gpus
from rackwright.workload.states import HEALTH_PREFIX
from tests.racks.watch import Watch

pytestmark = pytest.mark.lab

CAUGHT = {
    "gpu:lost": ("gpu-count", "nvidia-smi lists 7 of 8 declared GPUs"),
    "gpu:ecc": ("gpu-ecc-uncorrected", "GPU 7 (0000:8b:00.0)"),
    "gpu:throttle": ("gpu-throttle", "GPU 7 (0000:8b:00.0)"),
    "gpu:nvlink-down": ("nvlink-up", "GPU 7"),
    "gpu:mig-mismatch": ("gpu-mig-mode", "MIG of GPU 7 (0000:8b:00.0) is on, declared off"),
    "gpu:pcie-width": ("gpu-pcie-width", "GPU 7 (0000:8b:00.0)"),
    "gpu:xid:79": ("xid-hardware", "XID 79 on 0000:8b:00"),
    "gpu:driver-mismatch": ("driver-mismatch-log", "NVRM: API mismatch"),
}
"""The check and the words with which each is caught."""
ALWAYS = ("gpu:lost", "gpu:ecc", "gpu:driver-mismatch")
"""Seen by counting, by a counter of nvidia-smi, and in the kernel's log."""


def test_no_fault_is_left_out():
    assert {kind.split(":")[1] for kind in CAUGHT} == {*gpus.KINDS, "xid"}


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.smoke if kind in ALWAYS else pytest.mark.proof) for kind in CAUGHT],
)
def test_a_fault_drains_with_its_reason_is_explained_and_heals(watch: Watch, kind: str):
    check, evidence = CAUGHT[kind]
    watch.fault("worker1", kind)
    row = watch.drained("worker1", check)
    assert row.reason.startswith(HEALTH_PREFIX)
    assert f"{check}" in row.reason.split(" FAIL ")[0]
    last = watch.last("worker1")
    assert any(one["check"] == check and evidence in one["evidence"] for one in last["results"])
    assert watch.metric("worker1", "drained") == 1
    found = watch.why("worker1")
    scheduler, health, _, _, kernel = found.parts
    assert scheduler.data["drained_by"] == "health"
    assert any(line.startswith(f"{check} FAIL: ") and evidence in line for line in health.lines), health.lines
    assert not found.unknown
    assert "The node then resumes by itself after 2 clean passes." in found.next_step
    assert ("NVRM" in kernel.lines[0]) is (kind in ("gpu:lost", "gpu:xid:79", "gpu:driver-mismatch"))
    assert watch.rows()["worker2"].state == "idle"
    watch.heal("worker1")
    watch.in_service("worker1")
    assert watch.metric("worker1", "drained") == 0


def test_an_xid_that_blames_the_job_drains_nothing(watch: Watch):
    watch.fault("worker1", "gpu:xid:31")
    last = watch.passes("worker1", 2)[-1]
    found = [one for one in last["results"] if one["check"] == "xid-application"]
    assert [one["status"] for one in found] == ["WARN"]
    assert watch.rows()["worker1"].state == "idle"


def test_why_from_the_command_line(watch: Watch):
    ran = watch.site.cli("why", str(watch.site.file), "worker1", "--json")
    reported = json.loads(ran.out)
    assert [part["part"] for part in reported["parts"]] == [
        "scheduler",
        "health",
        "declaration",
        "changes",
        "kernel",
    ]
    assert reported["parts"][2]["lines"] == ["nothing differs from the cluster file"]
    assert reported["parts"][3]["runs"][0]["operations"]
    assert "its GPUs are simulated" in reported["parts"][1]["lines"][0]
