"""The shell that keeps taints, run with a kubectl whose nodes are files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rackwright.kubernetes.commands import AS_DECLARED
from rackwright.roles.kubernetes import kubeadm, readings, taints, texts
from rackwright.roles.kubernetes.options import KubernetesOptions
from tests.unit.roles.kubernetes_sites import kubernetes

PLANE = "node-role.kubernetes.io/control-plane:NoSchedule"
DEDICATED = "dedicated=gpu:NoExecute"
KEPT = {"cp1": (PLANE, DEDICATED), "gpu1": (DEDICATED,)}
KUBECTL = """#!/bin/sh
cd @folder/nodes || exit 1
[ ! -e ../silent ] || exit 1
while [ $# -gt 0 ]; do
    case $1 in
    get) break ;;
    taint)
        [ -e ../dropped ] || { : >../dropped; exit 0; } # the node's controller wins the first time
        echo "$4" >>"$3"
        exit ;;
    esac
    shift
done
for node in *; do
    line=$node
    while read -r one; do
        case $one in *=*) ;; *) one=$(echo "$one" | sed 's/:/=:/') ;; esac # as jsonpath has one without a value
        line="$line $one"
    done <"$node"
    echo "$line"
done
"""


@pytest.fixture
def api(tmp_path: Path) -> Path:
    for folder in ("bin", "nodes"):
        (tmp_path / folder).mkdir()
    for name, text in (("kubectl", KUBECTL), ("sleep", "#!/bin/sh\n")):
        (tmp_path / "bin" / name).write_text(text.replace("@folder", str(tmp_path)))
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "joined").touch()
    (tmp_path / "nodes/cp1").write_text(f"node.kubernetes.io/not-ready:NoSchedule\n{PLANE}\n{DEDICATED}\n")
    (tmp_path / "nodes/gpu1").write_text(f"{DEDICATED}\n")
    (tmp_path / "nodes/stranger").write_text("")
    return tmp_path


def sh(api: Path, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", script.replace(texts.JOINED, str(api / "joined"))],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PATH": f"{api}/bin:{os.environ['PATH']}"},
    )


def missing(api: Path) -> str:
    return sh(api, taints.missing(KEPT)).stdout.strip()


def test_where_every_node_has_its_own(api):
    assert missing(api) == AS_DECLARED


@pytest.mark.parametrize(
    ("node", "there", "lacks"),
    [
        ("cp1", DEDICATED, PLANE),
        ("cp1", PLANE, DEDICATED),
        ("gpu1", "", DEDICATED),
        ("gpu1", "dedicated=other:NoExecute", DEDICATED),
        ("gpu1", "dedicated=gpu:NoSchedule", DEDICATED),
        ("gpu1", f"not-{DEDICATED}", DEDICATED),
    ],
)
def test_one_that_is_missing_is_named_and_put_back(api, node, there, lacks):
    (api / "nodes" / node).write_text(f"{there}\n" if there else "")
    assert missing(api) == f"{node} lacks {lacks}"
    done = sh(api, taints.write(KEPT))
    assert done.returncode == 0, done.stderr
    assert missing(api) == AS_DECLARED
    assert (api / "nodes" / node).read_text().split() == [*there.split(), lacks], "others stay"
    assert (api / "nodes/stranger").read_text() == ""


def test_one_that_has_not_joined_registers_with_them(api):
    (api / "nodes/gpu1").unlink()
    assert missing(api) == AS_DECLARED
    (api / "joined").unlink()
    (api / "nodes/cp1").write_text("")
    assert missing(api) == AS_DECLARED


def test_an_api_that_is_silent_is_no_answer(api):
    (api / "silent").touch()
    assert missing(api) == "the API does not answer"
    done = sh(api, taints.write(KEPT))
    assert (done.returncode, done.stderr.strip()) == (1, "the API does not answer")


def test_who_keeps_which():
    cluster = kubernetes(heads=3, taints=[{"key": "dedicated", "value": "gpu", "effect": "NoExecute"}])
    kept = {}
    for name in ("cp1", "cp2"):
        options = cluster.by_name[name].options["kubernetes"]
        assert isinstance(options, KubernetesOptions)
        kept[name] = taints.kept_by(options, cluster, cluster.by_name[name])
    assert kept["cp1"] == {"cp1": (DEDICATED, PLANE), "gpu1": (DEDICATED,), "gpu2": (DEDICATED,)}
    assert kept["cp2"] == {"cp2": (DEDICATED, PLANE)}
    own = taints.keep_own(options, cluster, cluster.by_name["cp2"])
    assert "cp2) wanted" in own
    assert "gpu1" not in own


def test_where_pods_of_users_run_on_the_control_plane_nothing_is_kept():
    cluster = kubernetes(control_plane={"runs_pods": True})
    options = cluster.by_name["cp1"].options["kubernetes"]
    assert isinstance(options, KubernetesOptions)
    assert taints.kept_by(options, cluster, cluster.by_name["cp1"]) == {}
    assert taints.keep_own(options, cluster, cluster.by_name["cp1"]) == ""


def test_the_api_and_the_declaration_write_a_taint_alike():
    cluster = kubernetes(taints=[{"key": "dedicated", "value": "gpu", "effect": "NoExecute"}, {"key": "a"}])
    options = cluster.by_name["gpu1"].options["kubernetes"]
    assert isinstance(options, KubernetesOptions)
    declared = kubeadm.taints(options, cluster.by_name["gpu1"])
    there = readings.taints({"spec": {"taints": [one.model_dump() for one in declared]}})
    assert there == {one.text for one in declared} == {DEDICATED, "a:NoSchedule"}
