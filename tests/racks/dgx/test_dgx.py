"""The DGX example on four lab nodes: applied whole, found as declared, and working as far as a container can.

What is real: systemd, apt with a signed repository, dpkg's holds, DKMS, docker, Slurm with accounting, all files and
units. What is not: every program of NVIDIA's, the GPUs, the fabrics.
"""

from __future__ import annotations

import pytest

from rackwright.status import Status
from rackwright.verify import verify
from tests.examples import DGX, DGX_ON_GPUS
from tests.gpu_repository import REVISION
from tests.racks.dgx.example import CLIENT, NODES, WORKERS
from tests.racks.dgx.mirror import OTHER_NSCQ
from tests.racks.gpu_companions.repository import build
from tests.racks.site import Site, operations

pytestmark = [pytest.mark.lab, pytest.mark.proof]

WARNED = {(node, "health", "the node acts on what its health check finds") for node in WORKERS}
"""The example's nodes only observe at first, and verify reports it."""
OUT_OF_SCOPE = {
    ("cuda", "the loaded driver can run the toolkit"),
    ("gdrcopy", "gdrdrv is loaded at the declared version"),
    ("gdrcopy", "every user can open /dev/gdrdrv"),
    ("gpudirect", "NICs can access GPU memory through dma-buf"),
    ("gpudirect", "nvidia-peermem is loaded only as declared"),
    ("nvidia_driver", "the loaded driver is the locked one"),
    ("nvidia_driver", "the driver's parameters are the declared ones"),
    ("nvidia_driver", "nouveau is not loaded"),
    ("nvidia_driver", "Secure Boot is as declared"),
    ("nvidia_driver", "the key that signs modules is enrolled"),
    ("persistence", "the persistence daemon is running"),
    ("persistence", "persistence mode is on for every GPU"),
}
"""What the roles of the GPU stack claim and no container can have; all else they claim passes."""

NOTHING_TO_DO = {"gpudirect", "integrity"}
"""Modules: a container has none. Nothing undeclared is on a new node."""
WITHOUT_GPUS = {"kernel"}
"""Without a locked kernel, whose headers a container gets, there is nothing of it in one."""


@pytest.mark.smoke
def test_every_role_of_the_example_is_applied_and_a_second_apply_is_empty(site: Site):
    expected = {
        node: (DGX["gpu001"] if node in WORKERS else DGX[node] - WITHOUT_GPUS) - NOTHING_TO_DO
        for node in NODES
    }
    finished: dict[str, set[str]] = {node: set() for node in NODES}
    for run in site.runs():
        for event in run.events:
            if event["event"] == "finish":
                finished[event["node"]].add(event["role"])
    assert finished == expected
    assert f"nothing to change on {len(NODES)} of {len(NODES)} nodes" in site.apply().out


@pytest.mark.smoke
def test_nothing_is_wrong_and_nothing_unknown(site: Site):
    with site.here():
        report = verify(site.cluster)
    found = {
        (result.node, result.role, result.check): result
        for result in report.results
        if result.status not in (Status.PASS, Status.OUT_OF_SCOPE)
    }
    assert set(found) == WARNED, found
    assert {result.status for result in found.values()} == {Status.WARN}
    stack = {
        (result.role, result.check)
        for result in report.results
        if result.role in DGX_ON_GPUS - {"docker"} and result.status is Status.OUT_OF_SCOPE
    }
    assert stack == OUT_OF_SCOPE


@pytest.mark.smoke
def test_slurm_has_the_gpus_and_a_job_gets_them(site: Site):
    """As a user from the login node, whose account may use them."""
    listed = site.on(CLIENT, 'sinfo --Node --noheader --partition train --Format "NodeHost:10,Gres:20"')
    assert listed.split() == [word for node in WORKERS for word in (node, "gpu:h100:8")]
    ran = site.on(
        CLIENT,
        f"cd /; runuser -u ada -- srun --nodes {len(WORKERS)} --gres=gpu:8 --time 5 "
        "sh -c 'echo $(hostname -s) $SLURM_JOB_ACCOUNT $SLURM_GPUS_ON_NODE'",
    )
    assert sorted(ran.splitlines()) == [f"{node} vision 8" for node in WORKERS]


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
