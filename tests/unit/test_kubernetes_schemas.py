"""The extracts of API schemas, each kind of mistake seen to be found."""

from __future__ import annotations

import pytest

from rackwright.roles.gpu_stack_k8s.objects import objects
from rackwright.roles.gpu_stack_k8s.options import GpuStackK8sOptions, NetworkOperator
from tests.kubernetes_schemas import RELEASES, core_extract, crd_extract, mistakes
from tests.unit.roles.kubernetes_gpu_sites import gpu_cluster

QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q", "namespace": "n"},
    "spec": {"hard": {"requests.cpu": 4, "requests.memory": "4Gi"}},
}


def test_the_releases_are_the_labs_and_those_of_production():
    assert RELEASES == ("1.20", "1.34", "1.37")


@pytest.mark.parametrize("release", RELEASES)
def test_an_object_that_is_fine(release):
    assert mistakes([QUOTA], release) == []


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        (
            {"spec": {"hart": {}}},
            "ResourceQuota/q: spec: Additional properties are not allowed ('hart' was unexpected)",
        ),
        ({"spec": {"hard": []}}, "ResourceQuota/q: spec.hard: [] is not of type 'object'"),
        ({"kind": "Quota"}, "Quota/q: Kubernetes 1.34 has no v1/Quota"),
        ({"apiVersion": "apps/v1"}, "ResourceQuota/q: Kubernetes 1.34 has no apps/v1/ResourceQuota"),
    ],
)
def test_each_kind_of_mistake(changed, found):
    assert mistakes([{**QUOTA, **changed}], "1.34") == [found]


def test_a_daemon_set_without_its_pods():
    broken = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "x"},
        "spec": {"selector": {}},
    }
    assert mistakes([broken], "1.34") == ["DaemonSet/x: spec: 'template' is a required property"]


def test_what_a_newer_release_has():
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "x"}, "spec": {}}
    assert mistakes([claim], "1.20") == [
        "DeviceClass/x: Kubernetes 1.20 has no resource.k8s.io/v1/DeviceClass"
    ]
    assert mistakes([claim], "1.34") == []


def test_extracts_are_strict_and_without_prose():
    made = core_extract(
        {
            "definitions": {
                "a.B": {
                    "description": "long",
                    "type": ["object", "null"],
                    "properties": {"c": {"$ref": "#/definitions/a.C", "description": "long"}},
                    "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "B"}],
                }
            }
        }
    )
    assert made["definitions"]["a.B"] == {
        "type": "object",
        "properties": {"c": {"$ref": "#/definitions/a.C"}},
        "additionalProperties": False,
        "kinds": ["g/v1/B"],
    }
    assert crd_extract("kind: Other\n---\n") == {}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("strategy", ["none", "mixed"])
def test_objects_of_the_gpu_stack(release, strategy):
    options = GpuStackK8sOptions(
        mig_strategy=strategy,
        network_operator=NetworkOperator(version="network-operator-v26.4.0"),
        time_slices=2,
    )
    cluster = gpu_cluster(gpu_stack_k8s=options, version=f"{release}.0")
    assert mistakes(objects(options, cluster), release) == []
