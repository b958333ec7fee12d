"""The kubernetes_addons role: manifests, charts by a stand-in of helm, mistakes, what is mirrored, and its checks."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.catalog.table_files import addon_table
from rackwright.kubernetes.commands import KUBECTL, compare
from rackwright.model.cluster import Cluster
from rackwright.model.options import RoleOptions
from rackwright.roles.gpu_stack_k8s.options import GpuStackK8sOptions
from rackwright.roles.kubernetes_addons import sources
from rackwright.roles.kubernetes_addons.manifests import NotAManifest, at_site, images_of, objects_of
from rackwright.roles.kubernetes_addons.options import KubernetesAddonsOptions
from rackwright.roles.kubernetes_addons.sources import found_of, objects_for
from rackwright.roles.kubernetes_addons.verify import CHECKS
from tests.kubernetes_schemas import mistakes
from tests.unit.roles.container_site import never_passes
from tests.unit.roles.fake_host import Answer, FakeHost, errors_in, judged, planned
from tests.unit.roles.kubernetes_gpu_sites import gpu_cluster

MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: own}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers: [{name: a, image: busybox:1.37}]
      containers: [{name: b, image: "registry.k8s.io/web:v1"}]
---
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: Namespace, metadata: {name: own}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {image: {type: string}}}}}]
"""
HELM = """#!/bin/sh
# renders one ConfigMap with the values it was given, and a hook
values=$(cat)
case $values in *broken*) echo 'Error: nil pointer' >&2; exit 1 ;; esac
stamp=fixed
case $values in *random*) stamp=$(date +%s%N) ;; esac
echo "args: $*" >>"$0.log"
cat <<END
apiVersion: v1
kind: ConfigMap
metadata: {name: made}
data: {values: '$values', stamp: "$stamp"}
---
apiVersion: example.com/v1
kind: Thing
metadata: {name: wide}
---
apiVersion: batch/v1
kind: Job
metadata: {name: hook, annotations: {helm.sh/hook: pre-install}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec: {names: {kind: Thing}, scope: Cluster}
END
"""


def _site(
    folder: Path, addons: dict[str, Any], more: dict[str, RoleOptions] | None = None, **given: Any
) -> Cluster:
    options = KubernetesAddonsOptions.model_validate({"addons": addons, **given})
    made = gpu_cluster(kubernetes_addons=options, simulated=True, stack={}, **(more or {}))
    return made.model_copy(update={"path": folder / "site.yaml"})


def _options(cluster: Cluster) -> KubernetesAddonsOptions:
    options = cluster.primary.options["kubernetes_addons"]
    assert isinstance(options, KubernetesAddonsOptions)
    return options


@pytest.fixture
def web(tmp_path):
    (tmp_path / "addons").mkdir()
    (tmp_path / "addons" / "web.yaml").write_text(MANIFEST)
    return _site(tmp_path, {"web": {"file": "addons/web.yaml"}})


@pytest.fixture
def helm(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "helm"
    program.parent.mkdir()
    program.write_text(HELM)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    sources._rendered.cache_clear()
    (tmp_path / "addons").mkdir(exist_ok=True)
    for name in ("kueue-0.19.2.tgz", "kuberay-1.7.0.tgz", "gpu_operator-v26.7.0.tgz"):
        (tmp_path / "addons" / name).write_bytes(b"chart")
    return program


def _problems(cluster: Cluster) -> list[tuple[str, str]]:
    options = _options(cluster)
    found = [*options.problems(cluster), *options.lock_problems(cluster)]
    return [(path, text) for path, text, _ in found]


def test_every_row_of_the_catalogue_is_dated_and_has_no_digest():
    rows = addon_table().rows
    assert len({row.name for row in rows}) == len(rows) == 14
    assert not any("@" in image for row in rows for image in row.images)
    assert {"kueue", "gpu_operator", "network_operator", "cilium", "calico", "flannel"} <= {
        row.name for row in rows
    }


def test_options_that_are_refused():
    assert errors_in(KubernetesAddonsOptions, {"addons": {}}) == [
        "Dictionary should have at least 1 item after validation, not 0"
    ]
    assert errors_in(KubernetesAddonsOptions, {"addons": {"x": {"sha256": "1"}}})


def test_a_manifest_becomes_objects_in_an_order_that_works():
    found = objects_of(MANIFEST)
    assert [item["kind"] for item in found] == ["Namespace", "CustomResourceDefinition", "Deployment"]
    assert images_of(found) == ["busybox:1.37", "registry.k8s.io/web:v1"]
    assert mistakes([item for item in found if item["kind"] != "Thing"], "1.34") == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [", "not valid YAML"),
        ("", "no object of the Kubernetes API"),
        ("a: 1", "a document without apiVersion and kind"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {}", "a Pod without a name"),
        ("- 1", "a document without apiVersion and kind"),
        ("!!python/object/apply:os.system ['true']", "not valid YAML"),
    ],
)
def test_what_is_no_manifest(text, why):
    with pytest.raises(NotAManifest, match=why):
        objects_of(text)


@pytest.mark.parametrize(
    ("image", "there"),
    [
        ("registry.k8s.io/web:v1", "mirror.example.com/k8s/web:v1"),
        ("registry.k8s.io/special/x:1", "other.example.com/x:1"),
        ("busybox:1.37", "mirror.example.com/hub/library/busybox:1.37"),
        ("team/app:1", "mirror.example.com/hub/team/app:1"),
        ("quay.io/a/b:1", "quay.io/a/b:1"),
    ],
)
def test_images_of_the_sites_registries(image, there):
    registries = {
        "registry.k8s.io": "mirror.example.com/k8s",
        "registry.k8s.io/special": "other.example.com",
        "docker.io": "mirror.example.com/hub",
    }
    assert at_site(image, registries) == there


def test_objects_have_the_sites_images(web, tmp_path):
    given = {"web": {"file": "addons/web.yaml"}}
    cluster = _site(tmp_path, given, registries={"registry.k8s.io": "mirror.example.com"})
    assert "mirror.example.com/web:v1" in images_of(objects_for(_options(cluster), cluster))
    definition = next(
        item for item in objects_for(_options(web), web) if item["kind"] == "CustomResourceDefinition"
    )
    assert definition == next(
        item for item in objects_of(MANIFEST) if item["kind"] == "CustomResourceDefinition"
    )


@pytest.mark.parametrize(
    ("addons", "path", "sentence"),
    [
        ({"kuee": {}}, "addons.kuee", "The catalogue has no add-on kuee, and `file` is not set."),
        (
            {"volcano": {}},
            "addons.volcano.file",
            "Cannot read volcano-1.15.1.yaml: no such file or directory.",
        ),
        (
            {"web": {"file": "addons/web.yaml", "values": {"a": 1}}},
            "addons.web.values",
            "web.yaml is a manifest, which has no values.",
        ),
        (
            {"web": {"file": "addons/web.yaml"}, "again": {"file": "addons/web.yaml"}},
            "addons.again",
            "customresourcedefinition.apiextensions.k8s.io/things.example.com belongs to web already.",
        ),
    ],
)
def test_mistakes_that_the_cluster_shows(web, tmp_path, addons, path, sentence):
    assert (path, sentence) in _problems(_site(tmp_path, addons))


def test_a_file_that_is_not_the_declared_one(web, tmp_path):
    right = hashlib.sha256(MANIFEST.encode()).hexdigest()
    assert _problems(_site(tmp_path, {"web": {"file": "addons/web.yaml", "sha256": right}})) == []
    ((path, text),) = _problems(_site(tmp_path, {"web": {"file": "addons/web.yaml", "sha256": "a" * 64}}))
    assert (path, text) == (
        "addons.web.file",
        f"web.yaml has the SHA-256 {right}, and {'a' * 64} is declared.",
    )


def test_an_add_on_for_newer_releases(tmp_path):
    options = KubernetesAddonsOptions.model_validate({"addons": {"kueue": {}}})
    cluster = gpu_cluster(kubernetes_addons=options, simulated=True, stack={}, version="1.20.2")
    assert _problems(cluster)[:1] == [
        ("addons.kueue", "kueue 0.19.2 is for Kubernetes 1.34 or later, not 1.20.2.")
    ]


def test_how_a_file_comes_there(tmp_path):
    cluster = _site(tmp_path, {"volcano": {}, "kuberay": {}, "jobset": {"values": {"a": 1}}})
    hints = [hint for _, _, hint in _options(cluster).lock_problems(cluster)]
    assert hints == [
        (
            "save it as addons/volcano-1.15.1.yaml: https://raw.githubusercontent.com/volcano-sh/volcano/v1.15.1/installer/"
            "volcano-development.yaml"
        ),
        (
            "helm pull kuberay-operator --repo https://ray-project.github.io/kuberay-helm/ --version 1.7.0, and save it as "
            "addons/kuberay-1.7.0.tgz"
        ),
        "helm pull oci://registry.k8s.io/jobset/charts/jobset --version 0.12.0, and save it as addons/jobset-0.12.0.tgz",
    ]


def test_a_chart_without_helm_is_refused_plainly(helm, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert _problems(_site(tmp_path, {"kuberay": {}})) == [
        (
            "addons.kuberay.file",
            "kuberay-1.7.0.tgz is a chart, and helm is not installed on this control node.",
        )
    ]


def test_a_chart(helm, tmp_path):
    cluster = _site(tmp_path, {"kuberay": {"values": {"image": {"tag": "v1"}}}})
    assert _problems(cluster) == []
    found = objects_for(_options(cluster), cluster)
    assert [(item["kind"], item["metadata"].get("namespace")) for item in found] == [
        ("Namespace", None),
        ("CustomResourceDefinition", None),
        ("ConfigMap", "kuberay-system"),
        ("Thing", None),
    ]
    assert json.loads(found[2]["data"]["values"]) == {"image": {"tag": "v1"}}
    log = Path(f"{helm}.log").read_text().splitlines()
    assert len(log) == 2
    assert "--namespace kuberay-system" in log[0]
    assert "--kube-version 1.34.2" in log[0]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("random", "kuberay-1.7.0.tgz renders differently each time, e.g. with a new certificate."),
        ("broken", "helm did not render kuberay-1.7.0.tgz: Error: nil pointer."),
    ],
)
def test_charts_that_cannot_be_used(helm, tmp_path, value, sentence):
    assert _problems(_site(tmp_path, {"kuberay": {"values": {"a": value}}})) == [
        ("addons.kuberay.file", sentence)
    ]


def test_values_of_other_roles_reach_the_chart(helm, tmp_path):
    gpus: dict[str, RoleOptions] = {"gpu_stack_k8s": GpuStackK8sOptions(mode="gpu-operator")}
    cluster = _site(tmp_path, {"gpu_operator": {"values": {"cdi": {"nriPluginEnabled": True}}}}, gpus)
    assert _problems(cluster) == []
    assert cluster.primary.options["gpu_stack_k8s"].problems(cluster)
    found = found_of("gpu_operator", _options(cluster).addons["gpu_operator"], cluster)
    assert found.values["driver"]["enabled"] is False
    assert found.values["cdi"] == {"enabled": True, "nriPluginEnabled": True}
    namespace = objects_for(_options(cluster), cluster)[0]
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "privileged"}
    wrong = _site(tmp_path, {"gpu_operator": {"values": {"driver": {"enabled": True}}}}, gpus)
    assert _problems(wrong) == [
        (
            "addons.gpu_operator.values",
            "`driver.enabled` has to be false in the values of gpu_operator: a role does it on the host.",
        )
    ]


def test_what_is_mirrored(web, tmp_path):
    found = list(_options(web).mirrored(web, web.primary))
    assert [(item.kind, item.name) for item in found] == [
        ("manifest", "web.yaml"),
        ("image", "busybox:1.37"),
        ("image", "registry.k8s.io/web:v1"),
    ]
    cluster = _site(tmp_path, {"volcano": {"sha256": "a" * 64}})
    manifest, *images = _options(cluster).mirrored(cluster, cluster.primary)
    assert (manifest.source, manifest.sha256) == (addon_table().find("volcano").manifest, "a" * 64)  # type: ignore[union-attr]
    assert next(item.name for item in images) == "docker.io/volcanosh/vc-controller-manager:v1.15.1"


def test_the_plan(web):
    operations = [one for one in planned(web, web.primary).operations if one.role == "kubernetes_addons"]
    assert [one.name for one in operations][-1] == "Apply the objects of kubernetes_addons"
    text = next(change.content for one in operations for change in one.changes if change.content)
    assert [item["kind"] for item in yaml.safe_load_all(text)][:2] == [
        "Namespace",
        "CustomResourceDefinition",
    ]


OBJECTS = "add-ons are as declared"
KINDS = "kinds of add-ons are established"
PODS = "pods of add-ons are ready"
_GET = f"{KUBECTL} --request-timeout=30s get"


def _workloads(ready: int | None = 2, name: str = "web") -> dict[str, Answer]:
    item = {
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "own"},
        "spec": {"replicas": 2},
        "status": {} if ready is None else {"readyReplicas": ready},
    }
    return {
        f"{_GET} deployments,statefulsets,daemonsets --all-namespaces -o json": json.dumps({"items": [item]})
    }


def _kinds(status: str = "True", name: str = "things.example.com") -> dict[str, Answer]:
    item = {"metadata": {"name": name}, "status": {"conditions": [{"type": "Established", "status": status}]}}
    return {f"{_GET} customresourcedefinitions -o json": json.dumps({"items": [item]})}


def test_no_check_passes_without_knowing(web):
    never_passes("kubernetes_addons", CHECKS, web, web.primary)


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (KINDS, _kinds(), "PASS", "1 kinds"),
        (KINDS, _kinds("False"), "FAIL", "things.example.com is not established"),
        (KINDS, _kinds(name="x"), "FAIL", "things.example.com is not defined"),
        (PODS, _workloads(), "PASS", "1 workloads"),
        (PODS, _workloads(1), "FAIL", "Deployment web has 1 of 2 pods ready"),
        (PODS, _workloads(None), "FAIL", "Deployment web has 0 of 2 pods ready"),
        (PODS, _workloads(name="x"), "FAIL", "Deployment web does not exist"),
    ],
)
def test_check(web, name, answers, status, evidence):
    found = judged("kubernetes_addons", CHECKS, name, web, web.primary, FakeHost(answers))
    assert (found.status, found.evidence) == (status, evidence)


@pytest.mark.parametrize(
    ("answer", "status"),
    [("as declared\n", "PASS"), ("apps.v1.Deployment.own.web differs\n", "FAIL"), ("", "UNKNOWN")],
)
def test_objects_are_compared(web, answer, status):
    command = f"sh -c {shlex.quote(compare('kubernetes_addons', objects_for(_options(web), web)))}"
    found = judged("kubernetes_addons", CHECKS, OBJECTS, web, web.primary, FakeHost({command: answer}))
    assert found.status == status


def test_a_file_that_is_gone_is_unknown(web, tmp_path):
    (tmp_path / "addons" / "web.yaml").unlink()
    found = judged("kubernetes_addons", CHECKS, PODS, web, web.primary, FakeHost(_workloads()))
    assert (found.status, "Cannot read web.yaml" in found.evidence) == ("UNKNOWN", True)


def test_a_node_is_listed_before_its_files_are_there(tmp_path):
    cluster = _site(tmp_path, {"volcano": {}})
    plan = planned(cluster, cluster.primary)
    assert plan.error is None
    assert not [one for one in plan.operations if one.role == "kubernetes_addons"]
