"""The DGX example on four lab nodes: applied whole, found as declared, and working as far as a container can.

What is real: systemd, apt with a signed repository, dpkg's holds, DKMS, docker, Slurm with accounting, all files and
units. What is not: every program of NVIDIA's, the GPUs, the fabrics.
"""

from __future__ import annotations

import pytest

from rackwright.status import Status
from rackwright.verify import verify
from tests.examples import DGX
from tests.gpu_repository import REVISION
from tests.racks.dgx.example import NODES, WORKERS
from tests.racks.dgx.mirror import OTHER_NSCQ
from tests.racks.gpu_companions.repository import build
from tests.racks.site import Site, operations

pytestmark = [pytest.mark.lab, pytest.mark.proof]

WARNED = {("health", "the node acts on what it finds")}
"""The example's nodes only observe at first, and verify says so."""


@pytest.mark.smoke
def test_every_role_of_the_example_is_applied_and_a_second_apply_is_empty(site: Site):
    expected = {"head1": DGX["head1"], "login1": DGX["login1"], **dict.fromkeys(WORKERS, DGX["gpu001"])}
    finished = {node: set() for node in NODES}
    for run in site.runs():
        for event in run.events:
            if event["event"] == "finish":
                finished[event["node"]].add(event["role"])
    assert finished == expected
    assert "nothing to change on 4 of 4 nodes" in site.apply().out


@pytest.mark.smoke
def test_slurm_has_the_gpus_and_a_job_gets_them(site: Site):
    """As a user from the login node, whose account may use them."""
    listed = site.on("login1", 'sinfo --Node --noheader --partition train --Format "NodeHost:10,Gres:20"')
    assert listed.split() == ["gpu001", "gpu:h100:8", "gpu002", "gpu:h100:8"]
    ran = site.on(
        "login1",
        "cd /; runuser -u ada -- srun --nodes 2 --gres=gpu:8 --time 5 "
        "sh -c 'echo $(hostname -s) $SLURM_JOB_ACCOUNT $SLURM_GPUS_ON_NODE'",
    )
    assert sorted(ran.splitlines()) == ["gpu001 vision 8", "gpu002 vision 8"]


def test_a_package_of_another_version_is_found_and_repaired(site: Site):
    build(site.folder / "older", OTHER_NSCQ)
    site.send("gpu001", site.folder / "older", ".", to="/srv/older")
    site.on("gpu001", "dpkg -i --force-downgrade /srv/older/*.deb >/dev/null 2>&1")
    (older,) = OTHER_NSCQ.values()
    with site.here():
        report = verify(site.cluster, roles=frozenset({"fabricmanager"}))
    failed = [result for result in report.results if result.status is Status.FAIL]
    assert [(result.node, result.evidence) for result in failed] == [
        ("gpu001", f"libnvidia-nscq is {older}, not {REVISION}")
    ]
    planned = site.apply().out
    assert f"~ package libnvidia-nscq ({older}, " in planned
    assert operations(site.plan(0)) == set()
