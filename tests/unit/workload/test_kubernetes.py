"""Kubernetes as a manager: which pods a drain waits for, what the API server refuses, several control planes, steps."""

from __future__ import annotations

import json

import pytest

from rackwright.errors import ConnectionFailed, WorkloadError
from rackwright.model.types import NodeRole
from rackwright.workload.kubernetes.control import Kubernetes
from rackwright.workload.kubernetes.traces import Unreadable, trace
from rackwright.workload.protocol import GpuRequest, JobStep
from rackwright.workload.states import DrainedBy
from tests.factories import RunsKube, make_cluster, make_gpu_sku, make_node
from tests.unit.workload.fake_kubernetes import BY, REASON, FakeKubernetes, pod

WORKERS = ("w1", "w2", "w3")
UID = "46d389d3-bbe6-4a7f-b624-89e5783a255d"


def cluster(**options):
    role = {"kubernetes": RunsKube(**options)}
    return make_cluster(
        make_node("head1", 10, NodeRole.HEAD, options=role),
        make_node("head2", 11, NodeRole.HEAD, options=role, primary=False),
        *(make_node(name, 20 + number, options=role) for number, name in enumerate(WORKERS)),
    )


@pytest.fixture
def api(monkeypatch):
    for place in ("draining.POLL_SECONDS", "draining.EVICT_SECONDS", "steps.POLL_SECONDS"):
        monkeypatch.setattr(f"rackwright.workload.kubernetes.{place}", 0.001)
    return FakeKubernetes(*WORKERS, planes=("head1", "head2"))


@pytest.fixture
def manager(api):
    return Kubernetes(cluster(), api)


@pytest.mark.parametrize(
    ("kind", "more", "job"),
    [
        ("Job", {}, True),
        (None, {}, True),
        ("RayCluster", {}, True),
        ("MPIJob", {}, True),
        ("ReplicaSet", {}, False),
        ("StatefulSet", {}, False),
        ("DaemonSet", {}, False),
        ("Node", {}, False),
        (None, {"metadata": {"annotations": {"kubernetes.io/config.mirror": "a"}}}, False),
        (None, {"namespace": "kube-system"}, False),
        ("Job", {"phase": "Succeeded"}, False),
        ("ReplicaSet", {"metadata": {"labels": {"rackwright.dev/drain": "wait"}}}, True),
        ("NodeSet", {"metadata": {"labels": {"rackwright.dev/drain": "evict"}}}, False),
        (None, {"metadata": {"labels": {"rackwright.dev/drain": "ignore"}}}, False),
        (None, {"metadata": {"labels": {"rackwright.dev/drain": "perhaps"}}}, True),
    ],
)
def test_which_pods_are_jobs(api, manager, kind, more, job):
    api.nodes["w1"].pods.append(pod("one", "w1", kind=kind, **more))
    assert manager.state("w1").busy is job
    assert bool(manager.jobs("w1")) is job
    assert ("w1" in manager.running()) is job


def test_services_are_evicted_once_the_jobs_are_gone_and_parts_of_the_node_stay(api, manager):
    api.nodes["w1"].jobs.append("train")
    api.nodes["w1"].pods += [
        pod("web", "w1", kind="ReplicaSet"),
        pod("dns", "w1", kind="ReplicaSet", namespace="kube-system"),
        pod("agent", "w1", kind="DaemonSet"),
        pod("old", "w1", kind="Job", phase="Failed"),
    ]
    api.nodes["w2"].pods.append(pod("other", "w2", kind="ReplicaSet"))
    seen = []
    api.on_look = lambda: seen.append((list(api.nodes["w1"].jobs), list(api.evicted)))
    api.polls_until_free = 4
    assert manager.drain(["w1"], "R1", 5) == {}
    assert sorted(api.evicted) == ["dns", "web"]
    assert (["train"], []) in seen
    assert not any(jobs and evicted for jobs, evicted in seen)
    assert [one["metadata"]["name"] for one in api.nodes["w1"].pods] == ["agent", "old"]


@pytest.mark.parametrize("version", ["v1.20.2", "v1.34.2"])
def test_evictions_are_of_the_version_that_the_server_has(api, manager, version):
    api.version = version  # the fake compares it with the object
    api.nodes["w1"].pods.append(pod("web", "w1", kind="ReplicaSet"))
    assert manager.drain(["w1"], "R1", 5) == {}
    assert manager.version() == version[1:]


def test_a_disruption_budget_refuses_the_node_which_goes_back(api, manager):
    api.nodes["w1"].pods.append(pod("web", "w1", kind="ReplicaSet"))
    api.budget_refuses.add("web")
    assert manager.drain(["w1", "w2"], "R1", 0.05) == {
        "w1": "ada/web did not leave within 0.05 s: Cannot evict pod as it would violate the pod's disruption budget."
    }
    assert (api.nodes["w1"].unschedulable, api.nodes["w2"].unschedulable) == (False, True)
    assert REASON not in api.nodes["w1"].annotations


def test_a_reason_that_outlived_kubectl_uncordon_is_not_that_of_a_later_cordon(api, manager):
    manager.drain(["w1"], "R1", 1)
    api.nodes["w1"].owned = False  # kubectl uncordon, then kubectl cordon
    state = manager.state("w1")
    assert (state.drained_by, state.reason, state.run) == (DrainedBy.PERSON, "", None)
    assert manager.resume(["w1"], "R1") == []
    manager.resume_by_hand("w1", "")
    assert manager.state("w1").in_service


def test_taints_of_the_control_plane_take_a_node_out_of_service(api, manager):
    api.nodes["w1"].taints = [
        {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"},
        {"key": "site/gpu", "effect": "NoSchedule"},
    ]
    api.nodes["w2"].taints = [{"key": "site/gpu", "effect": "NoExecute"}]
    api.nodes["w3"].down = True
    states = manager.states()
    assert (states["w1"].drained_by, states["w1"].reason) == (
        DrainedBy.MANAGER,
        "taint node.kubernetes.io/disk-pressure",
    )
    assert states["w2"].ready
    assert (states["w3"].text, states["w3"].reason) == ("NotReady", "KubeletNotReady")


def test_pods_that_are_given_up_on_a_silent_node_hold_nothing_up(api, manager):
    gone = {"metadata": {"deletionTimestamp": "2026-11-28T05:00:00Z"}}
    api.nodes["w1"].pods.append(pod("train", "w1", kind="Job", **gone))
    assert manager.state("w1").busy
    api.nodes["w1"].down = True
    assert not manager.state("w1").busy


def test_the_next_control_plane_is_asked(api, manager):
    api.unreachable = {"head1"}
    assert set(manager.states()) == set(WORKERS)
    api.silent = True
    with pytest.raises(ConnectionFailed):
        manager.drain(["w1"], "R1", 1)  # it may run on the one that is out of reach
    api.unreachable = set()
    assert manager.drain(["w1"], "R1", 1) == {}


@pytest.mark.parametrize(
    "error",
    [
        "error: You must be logged in to the server (Unauthorized)",
        "Unable to connect to the server: x509: certificate has expired or is not yet valid",
        'Error from server (Forbidden): nodes is forbidden: User "x" cannot list resource "nodes"',
    ],
)
def test_a_refusal_is_not_a_manager_that_does_not_run(api, manager, error):
    api.error = error
    with pytest.raises(WorkloadError, match="refused a request"):
        manager.drain(["w1"], "R1", 1)


def test_a_node_that_cannot_be_cordoned_gives_the_others_back(api, manager):
    api.nodes["w2"].patched = lambda operations, manager: "denied by a webhook"
    with pytest.raises(WorkloadError, match="did not cordon w2: The request is invalid: denied by a webhook"):
        manager.drain(["w1", "w2"], "R1", 1)
    assert not api.nodes["w1"].unschedulable


@pytest.mark.parametrize("error", ["<html>502 Bad Gateway</html>", ""])
def test_what_is_not_a_table_is_no_answer(api, manager, error, monkeypatch):
    monkeypatch.setattr(FakeKubernetes, "_get", lambda self, words, stdin: error)
    for question in (manager.states, manager.running, lambda: manager.state("w1"), manager.version):
        with pytest.raises(WorkloadError):
            question()


def test_an_annotation_cannot_forge_another_node(api, manager):
    api.nodes["w1"].annotations |= {BY: "x\nw2|true|True|||||{}|||rackwright: R1", REASON: "rackwright: R1"}
    states = manager.states()
    assert [states[name].in_service for name in WORKERS] == [True, True, True]


def test_steps_are_pods_before_indexed_jobs_and_one_job_after(api, manager):
    step = JobStep(("w1", "w2"), 2, ("sh", "-c", "echo 'a b'"), 60, environment={"A": "b c"})
    for version, kinds in (("v1.20.2", ["Pod", "Pod"]), ("v1.34.2", ["Job"])):
        api.version, api.made = version, []
        assert manager.run(step).problem is None
        assert [item["kind"] for item in api.made] == ["Namespace", "Secret", *kinds]
    secret, job = api.made[1:]
    assert (job["spec"]["completionMode"], job["spec"]["completions"]) == ("Indexed", 2)
    pod_spec = job["spec"]["template"]["spec"]
    assert pod_spec["hostNetwork"] is True
    assert pod_spec["containers"][0]["resources"] == {"requests": {"cpu": "1"}, "limits": {}}
    assert "export A='b c'" in secret["stringData"]["launch.sh"]
    assert "sh -c 'echo '\"'\"'a b'\"'\"''" in secret["stringData"]["launch.sh"]
    assert secret["stringData"]["hosts"] == "10.9.0.20 slots=2\n10.9.0.21 slots=2\n"
    assert not any("PRIVATE" in command for command in api.commands)


def test_a_step_asks_for_gpus_by_the_names_of_device_plugins(api):
    role = {"kubernetes": RunsKube()}
    head = make_node("head1", 10, NodeRole.HEAD, options=role)
    manager = Kubernetes(make_cluster(head, make_node("w1", 20, options=role, sku=make_gpu_sku())), api)
    manager.run(JobStep(("w1",), 1, ("true",), 60, gpus=(GpuRequest(8), GpuRequest(2, "1g.10gb+me"))))
    limits = api.made[-1]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"nvidia.com/gpu": "8", "nvidia.com/mig-1g.10gb.me": "2"}


def test_a_step_waits_for_the_pods_of_an_earlier_one_to_end(api, manager):
    gone = {"metadata": {"deletionTimestamp": "2026-11-28T05:00:00Z"}, "namespace": "rackwright-jobs"}
    api.nodes["w1"].pods.append(pod("rackwright-burnin-1-0", "w1", **gone))
    looks = []
    api.on_look = lambda: looks.append(1) or (len(looks) == 3 and api.nodes["w1"].pods.clear())
    assert manager.run(JobStep(("w1",), 1, ("true",), 60)).problem is None


def test_a_step_does_not_begin_on_nodes_that_are_not_free(api, manager):
    api.nodes["w2"].jobs.append("train")
    output = manager.run(JobStep(("w1", "w2"), 1, ("true",), 60))
    assert output.problem == "the step exited 1: error: w2 is busy with other jobs"
    assert api.made == []


def test_a_step_needs_a_declared_image(api):
    with pytest.raises(WorkloadError, match="none is declared") as caught:
        Kubernetes(cluster(burnin=None), api).run(JobStep(("w1",), 1, ("true",), 60))
    assert "images.burnin" in caught.value.hint


def test_a_log_that_ends_early_is_not_a_success(api, manager, monkeypatch):
    api.reply = ("hello\n", None)
    ended = iter(["Running", "Failed"])
    pods = manager._steps()._pods

    def seen(name):
        return [one.__class__(**{**vars(one), "phase": next(ended, "Failed")}) for one in pods(name)]

    monkeypatch.setattr(manager._steps(), "_pods", seen)
    output = manager.run(JobStep(("w1",), 1, ("true",), 60))
    assert output.exit_status is None
    assert output.problem == "the job's output is truncated: error: the first pod ended: Failed"


def item(name, **more):
    metadata = {"namespace": "ada", "name": name, "uid": UID, "creationTimestamp": "2026-11-28T04:00:00Z"}
    return {"metadata": metadata, "spec": {"nodeName": "w1"}, "status": more}


def test_where_a_pod_leaves_lines():
    ran = {"state": {"terminated": {"finishedAt": "2026-11-28T04:10:00Z"}}}
    status = {"phase": "Succeeded", "startTime": "2026-11-28T04:01:00Z", "containerStatuses": [ran]}
    found = trace("ada/train-7", {"items": [item("train-7", **status)]}, WORKERS, ["head1"])
    assert (found.nodes, found.strangers, found.servers) == (("w1",), (), ("head1",))
    assert (found.ended - found.started, found.started - found.submitted) == (540, 60)
    import re

    slice_ = (
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice/cri-1"
    )
    assert re.search(found.cgroup, slice_)
    assert re.search(found.cgroup, f"/kubepods/burstable/pod{UID}/abc")
    assert re.search(found.named, 'SyncLoop UPDATE pod="ada/train-7" x')
    assert re.search(found.named, '"train-7_ada(46d389d3)"')
    assert not re.search(found.named, 'pod="ada/train-71"')


@pytest.mark.parametrize(
    "answer", [[], {}, {"items": [1]}, {"items": [{}]}, {"items": [{"metadata": {"uid": "x"}}]}]
)
def test_what_is_not_a_list_of_pods_has_no_trace(answer):
    with pytest.raises(Unreadable):
        trace("ada/x", answer, WORKERS, ["head1"])


def test_a_trace_is_asked_for_by_pod_and_by_job(api, manager):
    api.nodes["w1"].pods.append(json.loads(json.dumps(item("train-7", phase="Running"))))
    assert manager.trace("ada/train-7").nodes == ("w1",)
    api.nodes["w2"].pods.append(item("train-x", phase="Running"))
    api.nodes["w2"].pods[0]["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "big"}]
    assert manager.trace("ada/big").id == "ada/big"
    for job, said in (
        ("train-7", "not a pod or Job"),
        ("ada/../x", "not a pod or Job"),
        ("ada/z", "does not know"),
    ):
        with pytest.raises(WorkloadError, match=said):
            manager.trace(job)
