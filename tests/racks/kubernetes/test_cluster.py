"""From bare nodes to a cluster that verifies, and nothing to change afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.lab.kubelet_node import SYSCTLS
from rackwright.status import Status
from rackwright.verify import verify
from tests.racks.kubernetes.conftest import KUBECTL, WORKERS, kubectl, objects, ready
from tests.racks.patience import until
from tests.racks.site import Site, operations

pytestmark = [pytest.mark.lab, pytest.mark.proof]


def judged(site: Site) -> dict[str, list[str]]:
    """Names of checks by result, with what they found where they did not pass."""
    with site.here():
        report = verify(site.cluster)
    found: dict[str, list[str]] = {}
    for one in report.results:
        found.setdefault(str(one.status), []).append(f"{one.node}: {one.role}: {one.check}: {one.evidence}")
    return found


@pytest.mark.smoke
def test_the_machines_own_kernel_values_stay(machine_values: dict[str, str], rack: Site):
    """A kubelet finds what it asks for, and the machine keeps what it had before the rack."""
    assert rack.on("worker1", "cat /proc/sys/kernel/panic").strip() == "10"
    assert rack.on("worker1", "cat /proc/sys/vm/overcommit_memory").strip() == "1"
    assert {name: Path("/proc/sys", name).read_text() for name in SYSCTLS} == machine_values


@pytest.mark.smoke
def test_a_second_apply_is_empty(rack: Site):
    assert operations(rack.plan(0)) == set()


@pytest.mark.smoke
def test_every_check_passes(rack: Site):
    found = judged(rack)
    bad = [line for status in (Status.FAIL, Status.UNKNOWN) for line in found.get(str(status), [])]
    assert bad == []
    assert any("pods of every node reach each other" in line for line in found[str(Status.PASS)])


def test_a_pod_gets_simulated_gpus(rack: Site):
    """Two of eight, as the device plugin assigns them; nine do not fit on any node."""
    for name, number in (("two", 2), ("nine", 9)):
        container = {
            "name": "c",
            "image": "rack.lab/busybox:1.37",
            "command": ["sh", "-c", "echo got $NVIDIA_VISIBLE_DEVICES; sleep 600"],
            "resources": {"limits": {"nvidia.com/gpu": number}},
        }
        pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}
        objects(rack, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod})
    try:
        until(lambda: "got " in kubectl(rack, "logs two || :"), "log of the pod", 90, every=2)
        assert kubectl(rack, "logs two").split()[1].count(",") == 1
        assert kubectl(rack, "get pod nine -o jsonpath='{.status.phase}'") == "Pending"
        events = kubectl(rack, "get events --field-selector involvedObject.name=nine")
        assert "Insufficient nvidia.com/gpu" in events
    finally:
        kubectl(rack, "delete pod two nine --ignore-not-found --wait=true")


def test_quotas_and_preemption(rack: Site):
    """What exceeds the account's quota is refused; an urgent pod takes the place of a normal one."""
    space = kubectl(rack, "get namespaces -l rackwright.dev/role=kubernetes_scheduling -o name").split()
    name = next(one for one in space if "research" in one).removeprefix("namespace/")

    def pod(title: str, gpus: int, priority: str) -> dict[str, object]:
        container = {
            "name": "c",
            "image": "rack.lab/busybox:1.37",
            "command": ["sleep", "600"],
            "resources": {
                "requests": {"cpu": "50m", "memory": "16Mi", "nvidia.com/gpu": gpus},
                "limits": {"cpu": "50m", "memory": "16Mi", "nvidia.com/gpu": gpus},
            },
        }
        spec = {
            "priorityClassName": priority,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "kubernetes.io/hostname", "operator": "In", "values": ["worker1"]}
                                ]
                            }
                        ]
                    }
                }
            },
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": title, "namespace": name},
            "spec": spec,
        }

    classes = kubectl(rack, "get priorityclasses -o name").split()
    normal = next(one for one in classes if one.endswith("normal")).partition("/")[2]
    urgent = next(one for one in classes if one.endswith("urgent")).partition("/")[2]
    try:
        objects(rack, pod("normal", 8, normal))
        until(
            lambda: kubectl(rack, f"-n {name} get pod normal -o jsonpath='{{.status.phase}}'") == "Running",
            "running pod",
            90,
            every=2,
        )
        refused = rack.on(
            "cp1",
            f"{KUBECTL} -n {name} run more --image=rack.lab/busybox:1.37 --restart=Never "
            f"--requests=nvidia.com/gpu=8,cpu=50m,memory=16Mi --limits=nvidia.com/gpu=8,cpu=50m,memory=16Mi -- sleep 9 2>&1 || :",
        )
        assert "exceeded quota" in refused, refused
        objects(rack, pod("urgent", 4, urgent))
        until(
            lambda: kubectl(rack, f"-n {name} get pod urgent -o jsonpath='{{.status.phase}}'") == "Running",
            "the urgent pod to run",
            120,
            every=2,
        )
        assert kubectl(rack, f"-n {name} get pod normal --ignore-not-found") == ""
    finally:
        kubectl(rack, f"-n {name} delete pod --all --wait=true")


def test_burn_in_over_mpi_in_pods(rack: Site):
    ran = rack.cli("burnin", str(rack.file), expect=None, timeout=900)
    assert ran.status == 0, ran
    assert "all_reduce" in ran.out


@pytest.mark.parametrize("node", WORKERS)
def test_every_worker_is_ready(rack: Site, node):
    assert ready(rack, node)
