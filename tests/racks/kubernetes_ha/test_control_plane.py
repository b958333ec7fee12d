"""A control plane of three: its leader dies, the address moves, and a node that lost its disk is replaced."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import yaml

from tests.racks.kubernetes.conftest import KUBECTL, ready
from tests.racks.patience import until
from tests.racks.site import REPO, Site, operations

pytestmark = [pytest.mark.lab, pytest.mark.proof]
ADDRESS = "10.79.0.100"
PLANES = ("cp1", "cp2", "cp3")
_ETCDCTL = (
    "ETCDCTL_API=3 etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/kubernetes/pki/etcd/ca.crt "
    "--cert=/etc/kubernetes/pki/etcd/healthcheck-client.crt --key=/etc/kubernetes/pki/etcd/healthcheck-client.key"
)


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Three heads and a worker, applied from bare nodes by two runs: the first is killed while kubeadm works."""
    declared = yaml.safe_load((REPO / "inventory" / "kubernetes.yaml").read_text())
    heads, workers = declared["nodes"]
    heads |= {"nodes": "cp[1-3]", "primary": "cp1", "rack": "rack[1-3]", "switch": "leaf[1-3]"}
    workers |= {
        "nodes": "worker1",
        "addresses": {"management": "10.79.0.20"},
        "rack": "rack4",
        "switch": "leaf4",
    }
    roles = declared["roles"]
    for name in ("gpu_stack_k8s", "health", "kubernetes_scheduling"):
        del roles[name]
    # a container may open few files
    roles["kubernetes"]["control_plane"] = {"address": ADDRESS, "interface": "eth0", "connections_max": 1000}
    site = Site(tmp_path_factory.mktemp("kubernetes_ha"), "k8sha", declared)
    with site.booted():
        _is_killed(site)
        site.apply()
        yield site


def _is_killed(site: Site) -> None:
    """kubeadm goes on without the run that started it, and the next run must not disturb it."""
    run = site.start("apply", str(site.file), "--yes")
    try:
        busy = "pgrep -x kubeadm >/dev/null && ls /etc/kubernetes/manifests/etcd.yaml 2>/dev/null || :"
        until(lambda: "etcd.yaml" in site.on("cp1", busy), "kubeadm init on cp1", 600)
    finally:
        run.kill(workers=True)
        run.wait(60)


def _has_address(site: Site, node: str) -> bool:
    return ADDRESS in site.on(node, "ip -o -4 addr show")


def _members(site: Site, node: str) -> dict[str, bool]:
    """Members of etcd by name, and whether each has started."""
    lines = site.on(node, f"{_ETCDCTL} member list").splitlines()
    fields = [line.split(", ") for line in lines]
    return {one[2]: one[1] == "started" for one in fields}


def test_three_nodes_from_bare_ones(rack: Site):
    assert operations(rack.plan(0)) == set()
    assert _members(rack, "cp2") == dict.fromkeys(PLANES, True)
    assert [node for node in PLANES if _has_address(rack, node)] == ["cp1"]
    rack.cli("verify", str(rack.file), "--role", "kubernetes", expect=0)


def test_the_leader_dies_and_the_address_moves(rack: Site):
    rack.rack.fault("cp1", "kill")
    began = time.monotonic()
    write = f"{KUBECTL} create configmap after --dry-run=client -o yaml | {KUBECTL} apply -f - >/dev/null 2>&1 && echo ok || :"
    until(lambda: "ok" in rack.on("cp2", write, 60), "a write without cp1", 60, every=0.5)
    took = time.monotonic() - began
    assert [node for node in ("cp2", "cp3") if _has_address(rack, node)] == ["cp2"]
    assert took < 30, f"a write took {took:.1f} s after the leader had died"
    rack.rack.heal("cp1")
    until(lambda: ready(rack, "cp1", head="cp2"), "Ready cp1", 240)
    until(lambda: _has_address(rack, "cp1"), "the address on cp1 again", 120)
    assert operations(rack.plan(0)) == set()


def _loses_its_disk(site: Site, node: str) -> None:
    """A new machine under the same name and address, with nothing of Kubernetes on it."""
    stop = "systemctl disable --now kubelet; ctr -n k8s.io tasks ls -q | xargs -r -n 1 ctr -n k8s.io tasks kill -s KILL"
    site.on(node, f"{stop}; sleep 3; rm -rf /etc/kubernetes /var/lib/etcd/member", 120)


def test_the_first_node_is_replaced_and_makes_no_second_cluster(rack: Site):
    """While the other two are off, a new first node cannot know that a cluster exists; then it joins that one."""
    _loses_its_disk(rack, "cp1")
    for node in ("cp2", "cp3"):
        rack.rack.fault(node, "kill")
    ran = rack.cli("apply", str(rack.file), "--yes", "--limit", "cp1", expect=None)
    assert ran.status not in {0, None}
    assert "does not answer: a cluster may exist there" in ran.out
    assert rack.on("cp1", "ls /etc/kubernetes/manifests /var/lib/etcd | grep -e yaml -e member || :") == ""
    for node in ("cp2", "cp3"):
        rack.rack.heal(node)
    until(lambda: ready(rack, "cp2", head="cp3"), "Ready cp2", 240)
    assert _members(rack, "cp2")["cp1"] is True, "etcd still counts the lost node"
    rack.apply()
    until(lambda: ready(rack, "cp1", head="cp2"), "Ready cp1", 180)
    until(lambda: _members(rack, "cp2") == dict.fromkeys(PLANES, True), "three started members", 120)
    assert operations(rack.plan(0)) == set()
    rack.cli("verify", str(rack.file), "--role", "kubernetes", expect=0)


def test_etcd_is_restored_and_the_other_two_join_again(rack: Site):
    """In the order of docs/kubernetes.md, on another node than the first: any node that keeps a snapshot will do."""
    kubectl = f"timeout 60 {KUBECTL}"
    rack.on("cp2", f"{kubectl} create configmap kept --from-literal=a=b", 90)
    rack.on("cp2", "rackwright-etcd-snapshot", 120)
    rack.on("cp2", f"{kubectl} delete configmap kept", 90)
    for node in ("cp1", "cp3"):
        rack.on(node, "kubeadm reset --force >/dev/null 2>&1; rm -f /etc/kubernetes/rackwright/joined", 240)
    rack.on("cp2", "rackwright-etcd-restore $(ls -1 /var/backups/etcd/*.db | tail -n 1)", 420)
    assert "kept" in rack.on("cp2", f"{kubectl} get configmap kept -o name", 90)
    assert _members(rack, "cp2") == {"cp2": True}
    rack.apply()
    until(lambda: all(ready(rack, node, head="cp2") for node in (*PLANES, "worker1")), "Ready nodes", 240)
    until(lambda: _members(rack, "cp2") == dict.fromkeys(PLANES, True), "three started members", 120)
    assert "kept" in rack.on("cp3", f"{kubectl} get configmap kept -o name", 90)
    assert operations(rack.plan(0)) == set()
    rack.cli("verify", str(rack.file), "--role", "kubernetes", expect=0)
