"""Drains, deaths, drift and renewals on the rack."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from rackwright.ssh import Pool
from rackwright.workload.lookup import manager_of
from rackwright.workload.protocol import Manager
from tests.racks.kubernetes.conftest import KUBECTL, kubectl, objects, ready
from tests.racks.kubernetes.test_cluster import judged
from tests.racks.patience import until
from tests.racks.site import Site, operations

pytestmark = [pytest.mark.lab, pytest.mark.proof]


def deployment(name: str, replicas: int, script: str, spread: str = "ScheduleAnyway") -> dict[str, object]:
    container = {
        "name": "c",
        "image": "rack.lab/busybox:1.37",
        "command": ["sh", "-c", script],
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "20m", "memory": "8Mi"}},
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
    }
    constraint = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": spread,
        "labelSelector": {"matchLabels": {"app": name}},
    }
    # a node that is silent loses its pods at once
    away = [
        {
            "key": f"node.kubernetes.io/{why}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 5,
        }
        for why in ("not-ready", "unreachable")
    ]
    pod = {
        "terminationGracePeriodSeconds": 0,
        "topologySpreadConstraints": [constraint],
        "tolerations": away,
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    }


WEB = "mkdir -p /tmp/w && hostname >/tmp/w/index.html && exec httpd -f -p 8080 -h /tmp/w"


def _by_hand(site: Site, act: Callable[[Manager], None]) -> None:
    with site.here():
        cluster = site.cluster
        with Pool(cluster) as shell:
            manager = manager_of(cluster, shell)
            assert manager is not None
            act(manager)


@pytest.mark.smoke
def test_drain_and_resume_of_a_node_with_pods(rack: Site):
    """A drain by hand, as `rackwright top` makes it, cordons with its reason; its end takes back only that."""
    objects(rack, deployment("stay", 2, WEB))
    try:
        kubectl(rack, "rollout status deployment/stay --timeout=90s")
        _by_hand(rack, lambda manager: manager.drain_by_hand("worker1", "disk replaced"))
        node = json.loads(kubectl(rack, "get node worker1 -o json"))
        assert node["spec"]["unschedulable"] is True
        assert node["metadata"]["annotations"]["rackwright.dev/drain-reason"] == "disk replaced"
        why = rack.cli("why", str(rack.file), "worker1", expect=None)
        assert "disk replaced" in why.out
        _by_hand(rack, lambda manager: manager.resume_by_hand("worker1", "disk replaced"))
        assert "unschedulable" not in json.loads(kubectl(rack, "get node worker1 -o json"))["spec"]
    finally:
        kubectl(rack, "delete deployment stay")


def test_drift_of_a_manifest_and_of_the_kubelet_is_named_and_repaired(rack: Site):
    rack.on(
        "cp1", "sed -i s/--profiling=false/--profiling=true/ /etc/kubernetes/manifests/kube-scheduler.yaml"
    )
    rack.on("worker1", "sed -i 's/maxPods: 110/maxPods: 500/' /etc/kubernetes/kubelet.yaml")
    kubectl(rack, "delete clusterrolebinding rackwright-nodes")
    kubectl(rack, "taint node cp1 node-role.kubernetes.io/master-")
    failed = "\n".join(judged(rack)["FAIL"])
    for part in (
        "kube-scheduler.yaml was changed",
        "/etc/kubernetes/kubelet.yaml",
        "rackwright-nodes differs",
        "missing taints: node-role.kubernetes.io/master:NoSchedule",
    ):
        assert part in failed
    planned = {(node, name) for node, _, name in operations(rack.plan(2))}
    assert ("cp1", "Write the manifests of the control plane") in planned
    assert ("worker1", "Write /etc/kubernetes/kubelet.yaml") in planned
    assert ("cp1", "Apply the objects of kubernetes") in planned
    assert ("cp1", "Taint the nodes") in planned
    rack.converge()
    assert judged(rack).get("FAIL") is None


def _balance(declared: dict[str, Any]) -> None:
    web = {
        "port": 8080,
        "node_port": 30080,
        "workload": "kubernetes",
        "networks": ["management"],
        "tls": False,
    }
    # a container may open few files
    declared["roles"]["load_balancer"] = {"services": {"web": web}, "connections_max": 1000}


def test_a_worker_that_was_killed_comes_back(rack: Site):
    """Meanwhile the other one answers behind the head's load balancer."""
    with rack.declaring(_balance):
        rack.apply()
        _kill_a_worker(rack)
    rack.on("cp1", "systemctl disable --now rackwright-load-balancer")


def _kill_a_worker(rack: Site) -> None:
    objects(rack, deployment("web", 2, WEB, spread="DoNotSchedule"))
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {
            "type": "NodePort",
            "externalTrafficPolicy": "Local",  # a node answers with its own pods, not with those of a dead one
            "selector": {"app": "web"},
            "ports": [{"port": 80, "targetPort": 8080, "nodePort": 30080, "protocol": "TCP"}],
        },
    }
    objects(rack, service)
    ask = "curl --silent --fail --max-time 20 http://127.0.0.1:8080/"
    try:
        kubectl(rack, "rollout status deployment/web --timeout=120s")
        until(
            lambda: rack.on("cp1", f"{ask} || :").strip(), "an answer through the load balancer", 60, every=2
        )
        rack.fault("worker2", "kill")
        failed = sum(not rack.on("cp1", f"{ask} || :").strip() for _ in range(60))
        assert failed <= 3, f"{failed} of 60 requests failed after a worker was killed"
        until(lambda: not ready(rack, "worker2"), "NotReady worker2", 120)
        rack.heal("worker2")
        until(lambda: ready(rack, "worker2"), "Ready worker2", 180)
        until(lambda: operations(rack.plan(0)) == set(), "nothing to change", 60)
    finally:
        kubectl(rack, "delete deployment/web service/web")


def test_a_node_that_was_deleted_registers_again(rack: Site):
    kubectl(rack, "delete node worker2")
    assert ("worker2", "kubernetes", "Join the cluster") in operations(rack.plan(2))
    rack.converge()
    until(lambda: ready(rack, "worker2"), "Ready worker2", 120)


@pytest.mark.parametrize("node", ["worker1", "cp1"])
def test_a_kubelet_that_lost_its_credentials_gets_new_ones(rack: Site, node: str):
    """What runs on the node goes on: neither its pods nor etcd's data is removed."""
    running = "ctr -n k8s.io tasks ls -q | sort"
    objects(rack, deployment("stay", 2, WEB, spread="DoNotSchedule"))
    try:
        kubectl(rack, "rollout status deployment/stay --timeout=90s")
        before = rack.on(node, running)
        rack.on(node, ": >/etc/kubernetes/kubelet.conf; systemctl restart kubelet", 60)
        assert (node, "kubernetes", "Join the cluster") in operations(rack.plan(2))
        rack.converge()
        until(lambda: ready(rack, node), f"Ready {node}", 120)
        assert rack.on(node, running) == before
        assert operations(rack.plan(0)) == set()
    finally:
        kubectl(rack, "delete deployment stay")


def test_the_health_check_cordons_and_takes_back_only_its_own(rack: Site):
    rack.fault("worker1", "gpu:ecc")
    reason = "get node worker1 -o jsonpath='{.metadata.annotations.rackwright\\.dev/drain-reason}'"
    try:
        until(lambda: kubectl(rack, reason).startswith("rackwright-health: "), "a cordon by health", 240)
    finally:
        rack.heal("worker1")
    unschedulable = "get node worker1 -o jsonpath='{.spec.unschedulable}'"
    until(lambda: kubectl(rack, unschedulable) != "true", "the health check to take it back", 300)
    kubectl(rack, "cordon worker1")
    time.sleep(130)  # two passes
    assert kubectl(rack, unschedulable) == "true"
    kubectl(rack, "uncordon worker1")


def test_certificates_are_renewed_and_etcd_restored(rack: Site):
    before = rack.on("cp1", "openssl x509 -noout -serial -in /etc/kubernetes/pki/apiserver.crt")
    rack.on("cp1", "rackwright-kube-certificates --now", 120)
    assert rack.on("cp1", "openssl x509 -noout -serial -in /etc/kubernetes/pki/apiserver.crt") != before
    until(lambda: "cp1" in rack.on("cp1", f"{KUBECTL} get nodes || :"), "the API after the renewal", 240)
    kubectl(rack, "create configmap kept --from-literal=a=b")
    rack.on("cp1", "rackwright-etcd-snapshot", 120)
    kubectl(rack, "delete configmap kept")
    rack.on("cp1", "rackwright-etcd-restore $(ls -1 /var/backups/etcd/*.db | tail -n 1)", 420)
    assert "kept" in kubectl(rack, "get configmap kept -o name")
    until(lambda: ready(rack, "worker1") and ready(rack, "worker2"), "Ready workers", 180)
    kubectl(rack, "delete configmap kept")
