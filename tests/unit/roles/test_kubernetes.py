"""The kubernetes role: options and their mistakes, kubeadm's and the kubelet's configuration by release, plans."""

from __future__ import annotations

import base64
import subprocess
from typing import Any

import pytest
import yaml
from cryptography import x509

from rackwright.model.cluster import Cluster
from rackwright.model.types import Platform, Workload
from rackwright.roles.kubernetes import commands, etcd, kubeadm, kubelet, network, pki, shared_address, texts
from rackwright.roles.kubernetes.options import KubernetesOptions
from rackwright.roles.kubernetes.releases import release_of
from rackwright.secrets.secret import generate
from tests.unit.roles.fake_host import content, errors_in, planned
from tests.unit.roles.kubernetes_sites import kubernetes

SHARED = {"address": "10.9.0.99", "interface": "eth0"}


def _options(cluster: Cluster) -> KubernetesOptions:
    options = cluster.by_name["cp1"].options["kubernetes"]
    assert isinstance(options, KubernetesOptions)
    return options


def _documents(cluster: Cluster, node: str = "cp1") -> dict[str, Any]:
    text = kubeadm.init_text(_options(cluster), cluster, cluster.by_name[node])
    return {one["kind"]: one for one in yaml.safe_load_all(text)}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"version": "v1.34.2"}, r"String should match pattern '^1\.[0-9]{2}\.[0-9]{1,3}$'"),
        ({"version": "1.34"}, r"String should match pattern '^1\.[0-9]{2}\.[0-9]{1,3}$'"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(KubernetesOptions, given) == [sentence]


@pytest.mark.parametrize(
    ("heads", "given", "where", "beginning"),
    [
        (1, {"version": "1.19.3"}, "version", "Kubernetes 1.19.3 is not supported"),
        (1, {"version": "1.30.1", "proxy_mode": "nftables"}, "proxy_mode", "kube-proxy has nftables"),
        (2, {"control_plane": SHARED}, "control_plane.nodes", "The control plane would have 2 nodes"),
        (3, {}, "control_plane.address", "3 control-plane nodes need a common address"),
        (1, {"control_plane": {"nodes": ["gpu9"]}}, "control_plane.nodes", "gpu9 is not a node"),
        (
            1,
            {"control_plane": {**SHARED, "address": "10.9.0.21"}},
            "control_plane.address",
            "10.9.0.21 is the",
        ),
        (
            1,
            {"control_plane": {**SHARED, "address": "10.8.0.1"}},
            "control_plane.address",
            "10.8.0.1 is not in",
        ),
        (1, {"control_plane": {"address": "10.9.0.99"}}, "control_plane.interface", "keepalived needs"),
        (1, {"pod_network": "10.9.0.0/16"}, "pod_network", "10.9.0.0/16 overlaps the network management"),
        (1, {"service_network": "10.244.0.0/20"}, "service_network", "It overlaps the pod network"),
        (1, {"pod_network": "10.244.0.0/20"}, "pod_network", "10.244.0.0/20 has no /24 for gpu1"),
        (1, {"pod_prefix": 20, "pod_network": "10.244.0.0/20"}, "pod_prefix", "/20 is not a part"),
    ],
)
def test_mistakes_against_the_cluster(heads, given, where, beginning):
    cluster = kubernetes(heads=heads, **given)
    found = list(_options(cluster).problems(cluster))
    assert any(path == where and text.startswith(beginning) for path, text, _ in found), found


def test_a_good_file_has_no_mistake():
    for heads, given in ((1, {}), (3, {"control_plane": SHARED})):
        cluster = kubernetes(heads=heads, **given)
        assert list(_options(cluster).problems(cluster)) == []


def test_a_node_of_another_workload_has_no_kubelet():
    cluster = kubernetes()
    node = cluster.by_name["gpu1"]
    moved = node.model_copy(update={"workload": Workload.SLURM}).with_options(node.options)
    assert "kubernetes" in node.options
    assert "kubernetes" not in moved.options
    assert "containerd" in moved.options


@pytest.mark.parametrize(
    ("version", "api"),
    [("1.20.2", "v1beta2"), ("1.29.4", "v1beta3"), ("1.34.2", "v1beta4")],
)
def test_kubeadm_of_each_release(version, api):
    cluster = kubernetes(version=version, heads=3, control_plane=SHARED)
    found = _documents(cluster)
    assert found["InitConfiguration"]["apiVersion"] == f"kubeadm.k8s.io/{api}"
    declared = found["ClusterConfiguration"]
    assert declared["controlPlaneEndpoint"] == "10.9.0.99:8443"
    assert {"10.9.0.99", "10.9.0.10", "10.9.0.12", "cp2"} <= set(declared["apiServer"]["certSANs"])
    arguments = declared["apiServer"]["extraArgs"]
    if api == "v1beta4":
        arguments = {one["name"]: one["value"] for one in arguments}
    assert arguments["encryption-provider-config"] == "/etc/kubernetes/apiserver/encryption.yaml"
    assert ("admission-control-config-file" in arguments) is (version != "1.20.2")
    assert ("type" in declared["dns"]) is (version == "1.20.2")
    assert "podSubnet" not in declared["networking"]


def test_the_taint_of_control_planes():
    assert release_of("1.20.2").control_plane_taint == "node-role.kubernetes.io/master"
    for runs_pods, number in ((False, 1), (True, 0)):
        found = _documents(kubernetes(control_plane={"runs_pods": runs_pods}))
        assert len(found["InitConfiguration"]["nodeRegistration"]["taints"]) == number


def test_the_kubelet_follows_the_sku():
    cluster = kubernetes()
    found = kubelet.document(_options(cluster), cluster.by_name["gpu1"])
    assert (found["cpuManagerPolicy"], found["topologyManagerPolicy"]) == ("static", "restricted")
    assert found["systemReserved"] == {"memory": "16384Mi", "cpu": "2"}
    assert found["protectKernelDefaults"] is True
    assert found["clusterDNS"] == ["10.96.0.10"]
    small = kubelet.document(_options(cluster), cluster.by_name["cp1"])
    assert (small["cpuManagerPolicy"], small["systemReserved"]) == ("none", {"memory": "512Mi"})
    lab = kubernetes(platform=Platform.CONTAINER)
    there = kubelet.document(_options(lab), lab.by_name["gpu1"])
    assert (there["failSwapOn"], there["protectKernelDefaults"]) == (False, False)


def test_pods_have_the_part_of_their_node():
    cluster = kubernetes()
    options = _options(cluster)
    assert str(network.pod_network_of(options, cluster, cluster.by_name["gpu1"])) == "10.244.21.0/24"
    assert network.routes(options, cluster, cluster.by_name["gpu1"]) == (
        "10.244.10.0/24 10.9.0.10\n10.244.22.0/24 10.9.0.22\n"
    )


def test_a_node_joins_with_a_certificate_of_its_own_name_for_an_hour():
    cluster = kubernetes()
    store = {name: generate(name) for name in KubernetesOptions.secrets}
    text = pki.join_kubeconfig(_options(cluster), cluster, cluster.by_name["gpu1"], store.__getitem__)
    user = yaml.safe_load(text)["users"][0]
    assert user["name"] == "system:node:gpu1"
    certificate = x509.load_pem_x509_certificate(base64.b64decode(user["user"]["client-certificate-data"]))
    assert "O=system:nodes" in certificate.subject.rfc4514_string()
    assert (certificate.not_valid_after_utc - certificate.not_valid_before_utc).total_seconds() == 7200
    authority = {one.path: one.text for one in pki.files(cluster, store.__getitem__)}
    issuer = x509.load_pem_x509_certificate(authority["/etc/kubernetes/pki/ca.crt"].encode())
    certificate.verify_directly_issued_by(issuer)
    again = {one.path: one.text for one in pki.files(cluster, store.__getitem__)}
    assert again == authority


def test_the_first_node_makes_a_cluster_only_where_none_can_exist():
    cluster = kubernetes(heads=3, control_plane=SHARED)
    options = _options(cluster)
    first = commands.join(options, cluster, cluster.by_name["cp1"])
    assert "kubeadm init" in first
    assert "10.9.0.11" in first
    third = commands.join(options, cluster, cluster.by_name["cp3"])
    assert "kubeadm init --config" not in third
    assert "the control-plane node cp2 did not join first" in third
    assert "control-plane node" not in commands.join(options, cluster, cluster.by_name["gpu1"])


def test_keepalived_prefers_the_first():
    cluster = kubernetes(heads=3, control_plane=SHARED)
    files = shared_address.files(_options(cluster), cluster, cluster.by_name["cp2"])
    assert "priority 98" in files[shared_address.KEEPALIVED]
    assert "10.9.0.10\n" in files[shared_address.KEEPALIVED]
    assert "server cp3 10.9.0.12:6443" in files[shared_address.HAPROXY]


def test_a_plan_holds_no_secret():
    cluster = kubernetes(heads=3, control_plane=SHARED)
    plan = planned(cluster, cluster.by_name["cp1"])
    assert plan.error is None
    text = repr(plan)
    assert "PRIVATE KEY" not in text
    assert "client-key-data" not in text
    assert content(plan, texts.JOIN) is not None


def test_labels_come_from_the_declaration():
    cluster = kubernetes(labels={"team": "a"})
    found = texts.labels(_options(cluster), cluster.by_name["gpu1"])
    assert found["rackwright.dev/sku"] == "gpu-node"
    assert found["rackwright.dev/gpu"] == "h100"
    assert (found["topology.kubernetes.io/zone"], found["team"]) == ("r1", "a")


def test_images_that_a_site_mirrors():
    images = {"registry": "registry.site/k8s", "etcd": "3.6.4-0", "burnin": "registry.site/mpi:1"}
    cluster = kubernetes(images=images)
    options = _options(cluster)
    worker, head = (
        {one.name for one in options.mirrored(cluster, cluster.by_name[name])} for name in ("gpu1", "cp1")
    )
    assert "registry.site/k8s/kube-proxy:v1.34.2" in worker
    assert {"registry.site/k8s/etcd:3.6.4-0", "registry.site/k8s/kube-apiserver:v1.34.2"} <= head - worker
    assert not any("coredns" in name for name in head)
    assert [path for path, _, _ in options.warnings(cluster)] == ["images.coredns"]


def test_a_registry_of_the_site_needs_the_pods_own_image_too():
    cluster = kubernetes(images={"registry": "registry.site/k8s"})
    found = [path for path, _, _ in _options(cluster).problems(cluster)]
    assert found == ["images.registry"]


@pytest.mark.parametrize(("heads", "deleted"), [(1, None), (3, "delete node cp2 cp3 --ignore-not-found")])
def test_a_restored_etcd_forgets_the_nodes_that_join_again(heads, deleted):
    cluster = kubernetes(heads=heads, control_plane={"address": "10.9.0.99"} if heads > 1 else {})
    script = etcd.files(_options(cluster), cluster, cluster.by_name["cp1"])[etcd.RESTORE]
    assert ("delete node" in script) == (deleted is not None)
    assert deleted is None or deleted in script
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0
