"""Kubernetes as one node sees it: cordons with the kubelet's credential, shares by group, who gives way."""

from __future__ import annotations

import subprocess

import pytest

from rackwright.workload.kubernetes.on_node import (
    KubernetesOnNode,
    gives_way,
    job_question,
    shares_of,
    shows_job,
)
from rackwright.workload.kubernetes.output import parse_nodes, parse_pods
from rackwright.workload.on_node import manager_on
from rackwright.workload.slurm.on_node import SlurmOnNode
from rackwright.workload.states import HEALTH_PREFIX, DrainedBy, DrainShare, NoAnswer
from tests.unit.workload.fake_kubernetes import BY, REASON, FakeKubernetes, pod

SHIM = "/usr/bin/containerd-shim-runc-v2 -namespace k8s.io -id 0123 -address /run/containerd/containerd.sock"


class Api(FakeKubernetes):
    """Answers argument vectors, as a node runs them."""

    def __call__(self, arguments):
        assert arguments[1] == "--kubeconfig=/etc/kubernetes/kubelet.conf"
        text, said, status = self._kubectl(
            ["kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", *arguments[2:]], None
        )
        if status:
            raise NoAnswer(said)
        return text


@pytest.fixture
def api():
    return Api(*(f"w{number}" for number in range(1, 11)))


@pytest.fixture
def node(api):
    return KubernetesOnNode("w1", api)


def health(api, name, at):
    found = api.nodes[name]
    found.unschedulable = found.owned = True
    found.annotations |= {REASON: f"{HEALTH_PREFIX}gpu-count", BY: f"root@{at}"}


def rows(api):
    return KubernetesOnNode("w1", api)._rows()


def test_a_drain_and_its_end(api, node):
    node.drain(f"{HEALTH_PREFIX}gpu-count FAIL reboot: 7 of 8")
    state = node.state()
    assert (state.drained_by, state.drained_by_health, state.busy) == (DrainedBy.HEALTH, True, False)
    assert state.by.startswith("root@2")
    node.explain(f"{HEALTH_PREFIX}other")
    assert node.state().reason == f"{HEALTH_PREFIX}other"
    node.resume()
    assert node.state().in_service
    assert REASON not in api.nodes["w1"].annotations


def test_a_node_that_a_person_cordoned_meanwhile_is_not_drained_over(api, node):
    api.nodes["w1"].unschedulable = True
    with pytest.raises(NoAnswer):
        node.drain(f"{HEALTH_PREFIX}x")
    assert REASON not in api.nodes["w1"].annotations


def test_shares_are_counted_by_sku_or_by_the_sites_own_label(api):
    health(api, "w1", "a")
    health(api, "w2", "a")
    api.nodes["w3"].labels["rackwright.dev/sku"] = "other"
    for name in ("w4", "w5"):
        api.nodes[name].labels["rackwright.dev/group"] = "inference"
    assert shares_of(rows(api), "w1") == [DrainShare("test-node", 7, 1)]
    assert shares_of(rows(api), "w4") == [DrainShare("inference", 2, 0)]
    assert shares_of(rows(api), "w99") == []
    api.nodes["w2"].owned = False
    assert shares_of(rows(api), "w1") == [DrainShare("test-node", 7, 0)], "another's cordon"


def test_of_nodes_that_drain_at_once_the_later_give_way(api):
    for name, at in (
        ("w2", "2026-11-28T05:00:01Z"),
        ("w1", "2026-11-28T05:00:01Z"),
        ("w3", "2026-11-28T05:00:00Z"),
    ):
        health(api, name, at)
    assert [name for name in ("w1", "w2", "w3") if gives_way(rows(api), name, 20)] == ["w2"]
    assert [name for name in ("w1", "w2", "w3") if gives_way(rows(api), name, 5)] == ["w1", "w2"]


def test_jobs_are_looked_for_only_where_pods_run_and_unknown_ones_may_be_jobs(api, node):
    assert not node.job_among(["sshd", "containerd-shim-runc-v2 -namespace moby -id 1"])
    assert node.jobs_among([]) == frozenset()
    assert not node.job_among([SHIM])
    api.nodes["w1"].pods.append(pod("agent", "w1", kind="DaemonSet"))
    assert not node.job_among([SHIM])
    api.nodes["w1"].jobs.append("train")
    assert node.job_among([SHIM])
    assert node.jobs() == {"uid-train": 0}
    assert node.jobs_among([SHIM]) == {"uid-train"}
    api.silent = True
    assert node.job_among([SHIM])
    with pytest.raises(NoAnswer):
        node.jobs()
    with pytest.raises(NoAnswer):
        node.state()


def test_a_node_that_kubernetes_does_not_know(api):
    with pytest.raises(NoAnswer, match="does not know w99"):
        KubernetesOnNode("w99", api).state()


def test_the_question_from_the_control_node(tmp_path):
    def answered(ps, kubectl):
        for name, text in (("ps", f"echo '{ps}'"), ("kubectl", kubectl)):
            (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / name).chmod(0o755)
        path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        done = subprocess.run(
            ["sh", "-c", job_question("w1")], capture_output=True, text=True, env=path, check=True
        )
        return done.stdout

    mark = "rackwright-pods "
    assert answered("sshd", "echo asked") == ""
    assert shows_job(answered(SHIM, "exit 1"))
    assert not shows_job(answered(SHIM, f"echo '{mark}begin'; echo '{mark}end'"))
    assert not shows_job("")
    for kind, busy in (("Job", True), ("DaemonSet", False)):
        row = f"{mark}|ada|train|uid|w1|Running|||{kind}|train|"
        table = f"echo '{mark}begin'; echo '{row}'; echo '{mark}end'"
        assert shows_job(answered(SHIM, table)) is busy


@pytest.mark.parametrize(
    "text", ["", "<html>", "Mbegin\nM|w1|true\nMend", "Mbegin\nM|w1|||||||||", "Mend\nMbegin"]
)
def test_what_is_not_a_whole_table_is_no_answer(text):
    for parse in (parse_nodes, parse_pods):
        with pytest.raises(NoAnswer):
            parse(text, "M")


@pytest.mark.parametrize(
    "row", ["M|W1|||||||||", "M|w1|perhaps||||||||", "M|w1||Perhaps|||||||", "M|../x|||||||||", "M|w1"]
)
def test_a_row_that_cannot_be_one(row):
    with pytest.raises(NoAnswer):
        parse_nodes(f"Mbegin\n{row}\nMend\n", "M")


def test_a_node_without_conditions_and_labels_is_read():
    row = parse_nodes("Mbegin\nM|w1||||||||||\nMend\n", "M")["w1"]
    state = row.state(())
    assert (row.group, state.text, state.down, state.drained_by) == (
        "all nodes",
        "Unknown",
        True,
        DrainedBy.MANAGER,
    )


def test_the_manager_is_the_one_in_the_nodes_files():
    assert isinstance(manager_on("w1", "kubernetes"), KubernetesOnNode)
    assert isinstance(manager_on("w1", None), SlurmOnNode)
    with pytest.raises(ValueError, match="'ray' is not a workload manager"):
        manager_on("w1", "ray")
