"""Slurm in pods: applied, used, its controller killed, its files changed behind its back, a pod replaced."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rackwright.errors import ExitCode
from rackwright.ssh import Pool
from rackwright.workload.lookup import manager_of
from rackwright.workload.slurm_in_pods.control import SlurmInPods
from tests.racks.patience import until
from tests.racks.site import Site, operations
from tests.racks.slurm_on_kubernetes.conftest import HEAD, WORKERS, in_login, kubectl
from tests.racks.verified import results

pytestmark = [pytest.mark.lab, pytest.mark.proof]

ROLE = "slurm_on_kubernetes"
FILES = "Slurm's files in the pods are as declared"
OBJECTS = "Slurm's objects in Kubernetes are as declared"


def failed(site: Site, expect: int | None) -> dict[str, str]:
    """Evidence of the role's failed checks, by name."""
    found = results(site, expect, "--role", ROLE)
    return {one["check"]: one["evidence"] for one in found.get("FAIL", [])}


def accounted(site: Site, job: str) -> list[str]:
    """State, account and nodes of a job, as sacct has them."""
    printed = in_login(site, f"sacct -X -n -P -j {job} --format=State,Account,NodeList")
    return printed.strip().split("|")


@pytest.mark.smoke
def test_a_second_apply_is_empty_and_all_claims_hold(rack: Site):
    assert operations(rack.plan(0)) == set()
    assert failed(rack, ExitCode.CLEAN) == {}


@pytest.mark.smoke
def test_a_job_spans_two_pods_and_is_accounted_for(rack: Site):
    printed = in_login(
        rack, "srun -A burnin -N 2 --mem=64 sh -c 'echo $SLURM_JOB_ID $SLURMD_NODENAME $(hostname)'"
    )
    rows = [line.split() for line in printed.splitlines()]
    assert sorted(row[1:] for row in rows) == [[name, name] for name in WORKERS]
    (job,) = {row[0] for row in rows}
    until(lambda: accounted(rack, job) == ["COMPLETED", "burnin", "worker[1-2]"], "its record", 60)


def test_a_job_gets_the_gpus_that_it_asks_for(rack: Site):
    printed = in_login(rack, "srun -A burnin -N 1 --mem=64 --gres=gpu:2 sh -c 'echo $CUDA_VISIBLE_DEVICES'")
    assert printed == "0,1\n"


def test_slurmctld_that_is_killed_comes_back_with_its_state(rack: Site):
    """A job that waits, and one that runs, are in its state."""
    running = in_login(
        rack, "sbatch --parsable -A burnin -N 2 --exclusive --mem=64 --wrap 'sleep 120'"
    ).strip()
    waiting = in_login(rack, "sbatch --parsable -A burnin -N 2 --exclusive --mem=64 --wrap true").strip()
    until(lambda: in_login(rack, f"squeue -h -j {running} -o %T").strip() == "RUNNING", "a running job", 120)
    before = kubectl(rack, "get pod slurmctld-0 -o 'jsonpath={.metadata.uid}'")
    kubectl(rack, "delete pod slurmctld-0 --grace-period=0 --force")
    until(lambda: "UP" in in_login(rack, "sh -c 'scontrol ping || :'"), "slurmctld", 300)
    assert kubectl(rack, "get pod slurmctld-0 -o 'jsonpath={.metadata.uid}'") != before
    queue = in_login(rack, "squeue -h -o '%i %T'").splitlines()
    assert sorted(queue) == sorted([f"{running} RUNNING", f"{waiting} PENDING"])
    in_login(rack, f"scancel {running}")
    until(lambda: accounted(rack, waiting)[0] == "COMPLETED", "the job that waited", 180)
    until(lambda: failed(rack, None) == {}, "all claims", 240)


def _slurm_state(site: Site, node: str) -> list[str]:
    """State and reason, as sinfo has them."""
    return in_login(site, f"sinfo -h -N -p main -n {node} -o '%T|%E'").strip().split("|")


def _settles(site: Site, node: str, wanted: list[str], seconds: float = 120) -> None:
    """A node that comes back is `idle*` until slurmd has answered slurmctld."""
    until(lambda: _slurm_state(site, node) == wanted, f"{node} {wanted[0]} in Slurm", seconds)


def _cordoned(site: Site, node: str) -> bool:
    return kubectl(site, f"get node {node} -o 'jsonpath={{.spec.unschedulable}}'").strip() == "true"


@pytest.mark.smoke
def test_a_drain_waits_for_slurms_jobs(rack: Site):
    """As `apply`, `reboot` and `firmware` do: in Slurm, whose pods Kubernetes does not count as jobs, and in Kubernetes."""
    job = in_login(rack, "sbatch --parsable -A burnin -w worker1 --mem=64 --wrap 'sleep 600'").strip()
    state = f"squeue -h -j {job} -o %T"
    try:
        until(lambda: in_login(rack, state).strip() == "RUNNING", "a running job", 120)
        with rack.here(), Pool(rack.cluster) as shell:
            manager = manager_of(rack.cluster, shell)
            assert manager is not None
            assert [one.id for one in manager.jobs("worker1")] == [job]
            question = SlurmInPods.job_question("worker1")
            assert SlurmInPods.shows_job(shell.run("worker1", question, timeout=60).stdout)
            assert not SlurmInPods.shows_job(shell.run("worker2", question, timeout=60).stdout)

            assert manager.drain(["worker1"], "R1", 5) == {"worker1": "its jobs did not end within 5 s"}
            _settles(rack, "worker1", ["mixed", "none"])
            assert not _cordoned(rack, "worker1")
            assert in_login(rack, state).strip() == "RUNNING"

            in_login(rack, f"scancel {job}")
            assert manager.drain(["worker1"], "R1", 120) == {}
            assert _slurm_state(rack, "worker1") == ["drained", "rackwright: R1"]
            assert _cordoned(rack, "worker1")
            assert manager.resume(["worker1"], "R1") == ["worker1"]
            _settles(rack, "worker1", ["idle", "none"])
            assert not _cordoned(rack, "worker1")
    finally:
        in_login(rack, f"scancel {job}")


def test_a_node_that_an_interrupted_run_drained_for_its_pod_comes_back(rack: Site):
    kubectl(rack, "exec slurmctld-0 --container slurmctld -- scontrol update nodename=worker2 state=drain "
                  "reason='rackwright: new pod'")  # fmt: skip
    assert operations(rack.plan(2)) == {
        (HEAD, ROLE, "Bring the pods to their declared template, key and files")
    }
    rack.converge()
    _settles(rack, "worker2", ["idle", "none"])


def test_a_sick_node_is_drained_in_slurm_and_comes_back(rack: Site):
    rack.fault("worker1", "gpu:ecc")
    try:
        until(lambda: _slurm_state(rack, "worker1")[1].startswith("rackwright-health: "), "a drain", 300)
        assert _slurm_state(rack, "worker2") == ["idle", "none"]
    finally:
        rack.heal("worker1")
    _settles(rack, "worker1", ["idle", "none"], 300)


def test_drift_of_a_file_is_named_and_repaired(rack: Site):
    text = kubectl(rack, "get configmap slurm-config -o json")
    config: dict[str, Any] = json.loads(text)
    changed = config["data"]["slurm.conf"].replace("MaxJobCount=100000", "MaxJobCount=2000")
    patch = json.dumps({"data": {"slurm.conf": changed}})
    rack.on(HEAD, f"cat >/root/patch.json <<'PATCH'\n{patch}\nPATCH")
    kubectl(rack, 'patch configmap slurm-config --type merge --patch "$(cat /root/patch.json)"')
    assert "slurm-config" in failed(rack, ExitCode.CHECK_FAILED)[OBJECTS]
    until(lambda: FILES in failed(rack, None), "the kubelet's copy", 240)
    rack.converge()
    assert failed(rack, ExitCode.CLEAN) == {}
    assert "100000" in in_login(rack, "sh -c 'scontrol show config | grep MaxJobCount'")


def test_a_changed_setting_is_reconfigured_while_a_job_runs(rack: Site):
    job = in_login(rack, "sbatch --parsable -A burnin -N 2 --mem=64 --wrap 'sleep 300'").strip()
    pods = kubectl(rack, "get pods -o 'jsonpath={.items[*].metadata.uid}'")
    try:
        with rack.declaring(lambda content: content["roles"]["slurm"].update(max_job_count=5000)):
            rack.apply()
            assert "5000" in in_login(rack, "sh -c 'scontrol show config | grep MaxJobCount'")
            assert in_login(rack, f"squeue -h -j {job} -o %T").strip() == "RUNNING"
            assert kubectl(rack, "get pods -o 'jsonpath={.items[*].metadata.uid}'") == pods
    finally:
        in_login(rack, f"scancel {job}")
    rack.apply()


def test_a_new_user_needs_no_new_pod(rack: Site):
    pods = kubectl(rack, "get pods -o 'jsonpath={.items[*].metadata.uid}'")

    def declare(content: dict[str, Any]) -> None:
        content["roles"]["access"]["users"].append({"name": "bob", "uid": 3001})
        content["roles"]["slurm"]["users"]["bob"] = {"default_account": "research"}

    with rack.declaring(declare):
        rack.apply()
        until(lambda: "3001" in in_login(rack, "sh -c 'getent passwd bob || :'"), "bob in the login pod", 180)
        until(lambda: "3001" in kubectl(rack, "exec daemonset/slurmd-worker1 --container slurmd -- sh -c "
                                        "'getent passwd bob || :'"), "bob in slurmd's pod", 180)  # fmt: skip
        printed = in_login(
            rack, "setpriv --reuid 3001 --regid 3001 --clear-groups srun -A research -N 1 --mem=64 id -un"
        )
        assert printed == "bob\n"
        assert kubectl(rack, "get pods -o 'jsonpath={.items[*].metadata.uid}'") == pods
    rack.apply()


def test_no_secret_is_in_a_file_of_the_head(rack: Site):
    key = kubectl(rack, "get secret munge -o 'jsonpath={.data.munge\\.key}'").strip()
    assert len(key) > 1000
    rack.on(
        HEAD, f"! grep -rlF {key[:60]} /etc/kubernetes/rackwright /var/lib/rackwright* /var/log 2>/dev/null"
    )
