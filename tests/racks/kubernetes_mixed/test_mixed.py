"""One inventory, two workloads: Slurm and Kubernetes side by side, and a node that moves from one to the other and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.racks.kubernetes.conftest import KUBECTL, kubectl, ready
from tests.racks.patience import until
from tests.racks.site import REPO, Site, operations

pytestmark = [pytest.mark.lab, pytest.mark.proof]
HEAD, MOVES = "cp1", "worker2"


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two workers of Slurm and one of Kubernetes, applied once from bare nodes; one head serves both."""
    declared = yaml.safe_load((REPO / "inventory" / "kubernetes.yaml").read_text())
    _, workers = declared["nodes"]
    workers["nodes"] = "worker3"
    workers["addresses"] = {"management": "10.79.0.13"}
    slurm = workers | {
        "nodes": "worker[1-2]",
        "workload": "slurm",
        "addresses": {"management": "10.79.0.11"},
        "rack": "r2",
    }
    declared["nodes"].append(slurm)
    roles = declared["roles"]
    for name in ("gpu_stack_k8s", "health", "kubernetes_scheduling"):
        del roles[name]
    roles |= {
        "munge": {},
        "mariadb": {},
        "slurm": {
            "partitions": {"main": {"default": True}},
            "accounts": {"research": {}},
            "users": {"ada": {"default_account": "research"}},
            "mpi_default": "none",
        },
    }
    site = Site(tmp_path_factory.mktemp("kubernetes_mixed"), "k8smix", declared)
    with site.booted():
        site.apply()
        yield site


def _moved(content: dict[str, Any]) -> None:
    """worker2 is a worker of Kubernetes."""
    content["nodes"][2]["nodes"] = "worker1"
    content["nodes"].append(
        content["nodes"][1]
        | {"nodes": MOVES, "addresses": {"management": "10.79.0.12"}, "rack": "r2", "position": 3}
    )


def _slurm_nodes(site: Site) -> dict[str, str]:
    """State of each node that slurmctld knows."""
    lines = site.on(HEAD, "sinfo -h -N -o '%N %T'").splitlines()
    return dict(line.split() for line in lines)


def _kubernetes_nodes(site: Site) -> set[str]:
    return set(kubectl(site, "get nodes -o 'jsonpath={.items[*].metadata.name}'").split())


def _runs_a_job(site: Site, node: str) -> None:
    command = f"srun -A burnin -N 1 -w {node} --mem=64 hostname"
    assert site.on(HEAD, command, 120).strip() == node


def _runs_a_pod(site: Site, node: str) -> None:
    name = f"on-{node}"
    site.on(
        HEAD,
        f"{KUBECTL} run {name} --image=rack.lab/busybox:1.37 --restart=Never "
        f'--overrides=\'{{"spec":{{"nodeName":"{node}"}}}}\' -- hostname',
    )
    try:
        phase = f"get pod {name} -o 'jsonpath={{.status.phase}}'"
        until(lambda: kubectl(site, phase).strip() == "Succeeded", f"a finished pod on {node}", 120)
    finally:
        kubectl(site, f"delete pod {name} --wait=false")


def test_both_run_their_own_nodes(rack: Site):
    assert operations(rack.plan(0)) == set()
    assert set(_slurm_nodes(rack)) == {"worker1", MOVES}
    assert _kubernetes_nodes(rack) == {HEAD, "worker3"}
    _runs_a_job(rack, MOVES)
    _runs_a_pod(rack, "worker3")
    rack.cli("verify", str(rack.file), expect=0)


def test_a_node_moves_once_its_job_has_ended_and_back(rack: Site):
    """It is drained where it was, leaves, and joins the other: one plan, one apply."""
    job = rack.on(HEAD, f"sbatch --parsable -A burnin -w {MOVES} --mem=64 --wrap 'sleep 45'").strip()
    with rack.declaring(_moved):
        changes = {(role, name) for node, role, name in operations(rack.plan(2)) if node == MOVES}
        assert ("slurm", "Stop slurmd, which has no node here") in changes
        assert {role for role, _ in changes} >= {"slurm", "kubernetes"}
        rack.apply()
        state = rack.on(HEAD, f"sacct -X -n -P -j {job} --format=State").strip()
        assert state == "COMPLETED", "the move waits for the node's job"
        assert set(_slurm_nodes(rack)) == {"worker1"}
        until(lambda: ready(rack, MOVES), f"Ready {MOVES}", 120)
        _runs_a_pod(rack, MOVES)
        assert operations(rack.plan(0)) == set()
        rack.cli("verify", str(rack.file), expect=0)
    rack.apply()
    assert _kubernetes_nodes(rack) == {HEAD, "worker3"}
    assert rack.on(MOVES, "systemctl is-active kubelet || :").strip() != "active"
    until(lambda: _slurm_nodes(rack).get(MOVES) == "idle", f"{MOVES} in Slurm", 60)
    _runs_a_job(rack, MOVES)
    assert operations(rack.plan(0)) == set()
    rack.cli("verify", str(rack.file), expect=0)
