"""The script that joins a node, run with a kubeadm, kubectl and systemctl that only record how they were called."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from rackwright.roles.kubernetes import commands
from rackwright.roles.kubernetes.options import KubernetesOptions
from tests.unit.roles.kubernetes_sites import kubernetes

NO_ANSWER, REFUSES = "255.255.255.255", "127.0.0.2"
_CALLED = """#!/bin/sh
echo "${0##*/} $*" >>@called
case "${0##*/} $*" in
"kubeadm reset"*) rm -f @etc/kubelet.conf @etc/manifests/*.yaml ;;
"kubeadm init --config"* | "kubeadm join"*) echo made >@etc/manifests/etcd.yaml; echo made >@etc/kubelet.conf ;;
"kubeadm init phase kubeconfig kubelet"*) echo made >@etc/kubelet.conf ;;
"systemctl restart kubelet") [ ! -e @etc/bootstrap-kubelet.conf ] || echo made >@etc/kubelet.conf ;;
"kubectl --server"*) grep -q ours "$KUBECONFIG" ;;
"kubectl "*jsonpath*) echo node-role.kubernetes.io/master ;;
esac
"""


@dataclass
class Machine:
    """A node's folders below a temporary one."""

    folder: Path
    called: str = ""
    error: str = ""

    @property
    def etc(self) -> Path:
        return self.folder / "etc"

    def has(self, *names: str, text: str = "ours\n") -> None:
        """Files below /etc/kubernetes that exist before the script."""
        for name in names:
            path = self.etc / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def joins(self, node: str, others: str = REFUSES, patience: int = 600, version: str = "1.34.2") -> int:
        """The exit status of the script on a node of a cluster with three control-plane nodes."""
        cluster = kubernetes(
            heads=3, version=version, control_plane={"address": "10.9.0.100", "interface": "eth0"}
        )
        options = cluster.by_name[node].options["kubernetes"]
        assert isinstance(options, KubernetesOptions)
        script = commands.join(options, cluster, cluster.by_name[node])
        for real, here in (
            ("/etc/kubernetes", str(self.etc)),
            ("/run/", f"{self.folder}/"),
            ("/var/log/", f"{self.folder}/"),
            ("10.9.0.11", others),
            ("10.9.0.12", REFUSES),
            ("flock -w 600", f"flock -w {patience}"),
        ):
            script = script.replace(real, here)
        (self.folder / "called").write_text("")
        ran = subprocess.run(
            ["sh", "-c", script],
            check=False,
            input="credentials",
            capture_output=True,
            text=True,
            timeout=60,
            env=os.environ | {"PATH": f"{self.folder}/bin:{os.environ['PATH']}"},
        )
        self.called, self.error = (self.folder / "called").read_text(), ran.stderr
        assert not (self.folder / "rackwright-join.kubeconfig").exists(), "credentials were left on the node"
        return ran.returncode


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    found = Machine(tmp_path)
    for folder in ("bin", "etc/rackwright", "etc/manifests", "etc/pki/etcd"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("kubeadm", "kubectl", "systemctl", "etcdctl", "sleep"):
        program = tmp_path / "bin" / name
        program.write_text(
            _CALLED.replace("@called", f"{tmp_path}/called").replace("@etc", f"{tmp_path}/etc")
        )
        program.chmod(0o755)
    return found


def _joined(machine: Machine) -> bool:
    own = machine.etc / "rackwright"
    return (own / "joined").exists() and not (own / "attempt").exists()


def test_where_the_others_refuse_a_cluster_is_made(machine: Machine):
    assert machine.joins("cp1") == 0, machine.error
    assert "kubeadm init --config" in machine.called
    assert _joined(machine)


@pytest.mark.parametrize("port", [6443, 2380, 10250])
def test_a_part_of_a_cluster_elsewhere_is_joined(machine: Machine, port: int):
    with socket.create_server(("127.0.0.3", port)):
        assert machine.joins("cp1", others="127.0.0.3") == 0, machine.error
    assert "kubeadm init --config" not in machine.called
    assert "kubeadm join" in machine.called


def test_a_node_that_is_off_may_hold_the_cluster(machine: Machine):
    """Without a route the error is another one than a refused connection."""
    assert machine.joins("cp1", others=NO_ANSWER) == 1
    assert "cp2 (255.255.255.255) does not answer: a cluster may exist there" in machine.error
    assert "kubeadm init" not in machine.called
    with socket.create_server(("127.0.0.2", 10250)):
        assert machine.joins("cp1", others=NO_ANSWER) == 0, "cp3 is known to be a member of a cluster"
    assert "kubeadm join" in machine.called


def test_dns_is_restarted_where_etcd_paused(machine: Machine):
    assert machine.joins("cp3", version="1.28.0") == 0, machine.error
    assert machine.called.index("kubeadm join") < machine.called.index("rollout restart deployment/coredns")
    for node, version in (("gpu1", "1.28.0"), ("cp3", "1.29.0")):
        (machine.etc / "rackwright" / "joined").unlink()
        (machine.etc / "kubelet.conf").unlink()
        (machine.etc / "manifests" / "etcd.yaml").unlink()
        assert machine.joins(node, version=version) == 0, machine.error
        assert "kubeadm join" in machine.called
        assert "rollout" not in machine.called


def test_what_an_interrupted_attempt_left_is_removed_first(machine: Machine):
    machine.has("rackwright/attempt", "kubelet.conf", "manifests/etcd.yaml", "pki/ca.crt")
    assert machine.joins("cp1") == 0, machine.error
    assert machine.called.index("kubeadm reset") < machine.called.index("kubeadm init --config")
    assert (machine.etc / "pki" / "ca.crt").read_text() == "ours\n"
    assert _joined(machine)


@pytest.mark.parametrize("node", ["cp1", "gpu1"])
def test_files_of_another_cluster_are_kept(machine: Machine, node: str):
    machine.has("kubelet.conf", "manifests/etcd.yaml", text="a stranger's\n")
    assert machine.joins(node) == 1
    assert "files of a Kubernetes that rackwright did not make" in machine.error
    assert "kubeadm" not in machine.called
    assert (machine.etc / "kubelet.conf").exists()


@pytest.mark.parametrize("node", ["cp1", "gpu1"])
def test_a_member_whose_marker_was_lost_stays_one(machine: Machine, node: str):
    machine.has("kubelet.conf", "manifests/etcd.yaml")
    assert machine.joins(node) == 0, machine.error
    assert "kubeadm" not in machine.called
    assert _joined(machine)


@pytest.mark.parametrize("left", [None, ""])
@pytest.mark.parametrize("node", ["cp1", "gpu1"])
def test_lost_credentials_of_a_kubelet_are_made_again(machine: Machine, node: str, left: str | None):
    """Neither etcd's data nor a running pod is touched."""
    machine.has("rackwright/joined", "manifests/etcd.yaml")
    if left is not None:
        machine.has("kubelet.conf", text=left)
    assert machine.joins(node) == 0, machine.error
    assert (machine.etc / "kubelet.conf").read_text() == "made\n"
    assert not (machine.etc / "bootstrap-kubelet.conf").exists()
    assert not any(words in machine.called for words in ("reset", "init --config", "kubeadm join"))


def test_kubeadm_of_a_run_that_was_killed_is_waited_for(machine: Machine):
    with (machine.folder / "rackwright-kubeadm.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert machine.joins("cp1", patience=1) == 1
        assert "kubeadm of an earlier run is still busy" in machine.error
        assert machine.called == ""
    assert machine.joins("cp1", patience=1) == 0, machine.error
