"""The RayCluster object, against KubeRay's own schema."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from rackwright.roles.ray.kuberay import ray_cluster
from rackwright.roles.ray.options import RayOptions
from tests.unit.roles.sites import site

SCHEMA = json.loads((Path(__file__).parent / "data" / "raycluster-v1.json").read_text())["schema"]
OPTIONS = RayOptions(object_store_mib=512)
SITE = site({"ray": OPTIONS})


def strict(schema: Any) -> Any:
    """The API server drops fields that a schema lacks: here they are errors."""
    if isinstance(schema, dict):
        closed = {key: strict(value) for key, value in schema.items()}
        if (
            isinstance(closed.get("properties"), dict)
            and closed.get("type") == "object"
            and closed["properties"]
        ):
            closed.setdefault("additionalProperties", False)
        return closed
    return [strict(one) for one in schema] if isinstance(schema, list) else schema


VALIDATOR = jsonschema.Draft202012Validator(strict(SCHEMA))


def rendered() -> Any:
    workers = [node for node in SITE.nodes if not node.primary]
    return copy.deepcopy(ray_cluster(SITE, OPTIONS, "registry.site/ray:2.60.0", workers))


def test_it_is_what_kuberay_takes():
    item = rendered()
    VALIDATOR.validate(item)
    (group,) = item["spec"]["workerGroupSpecs"]
    sku = SITE.by_name["gpu1"].sku
    assert (group["replicas"], item["spec"]["rayVersion"]) == (2, "2.60.0")
    assert group["template"]["spec"]["containers"][0]["resources"]["limits"] == {
        "cpu": str(sku.cpus),
        "memory": f"{sku.memory_mib - 2048}Mi",
        "nvidia.com/gpu": str(sku.gpus.count),
    }


@pytest.mark.parametrize(
    "break_it",
    [
        lambda spec: spec.pop("headGroupSpec"),
        lambda spec: spec["workerGroupSpecs"][0].pop("groupName"),
        lambda spec: spec["headGroupSpec"].update(startParams={}),
        lambda spec: spec["authOptions"].update(mode="password"),
        lambda spec: spec["workerGroupSpecs"][0].update(replicas="2"),
    ],
)
def test_the_schema_objects_to_mistakes(break_it):
    item = rendered()
    break_it(item["spec"])
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(item)
