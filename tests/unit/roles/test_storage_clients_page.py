"""docs/storage-clients.md: each example is a correct cluster file, and its mounts are planned on a worker."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from rackwright.clusterfile.load import load_cluster
from tests.unit.roles.fake_host import planned

PAGE = (Path(__file__).resolve().parents[3] / "docs/storage-clients.md").read_text()
EXAMPLES = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
BASE = """
version: 1
cluster: {name: demo, domain: demo.test}
defaults: {os: debian-13, sku: cpu-16c-64g}
networks:
  mgmt: {purpose: management, cidr: 10.1.0.0/24, gateway: 10.1.0.1}
  store: {purpose: storage, cidr: 10.2.0.0/24}
  ib: {purpose: fabric, kind: infiniband, cidr: 10.3.0.0/24, rails: 2, rail_prefix: 25}
ssh: {user: admin, key: keys/id_ed25519}
nodes:
  - {nodes: head1, roles: [head], addresses: {mgmt: 10.1.0.10}}
  - nodes: "w[1-4]"
    roles: [worker]
    addresses: {mgmt: 10.1.0.11, store: 10.2.0.11, ib: 10.3.0.11}
"""


def test_there_is_one_for_each_kind():
    kinds = [one["kind"] for example in EXAMPLES for one in example["storage"].values()]
    assert kinds == ["lustre", "beegfs", "weka", "cephfs", "gpfs"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: next(iter(example["roles"])))
def test_an_example_is_correct(tmp_path, example):
    file = tmp_path / "demo.yaml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(BASE), **example}, sort_keys=False))
    cluster = load_cluster(file)
    ((name, given),) = example["storage"].items()
    worker = cluster.by_name["w1"]
    (role,) = worker.options
    assert role in example["roles"]
    plan = planned(cluster, worker)
    assert plan.error is None
    assert f"Mount {given['path']}" in [one.name for one in plan.operations]
    assert cluster.by_name["head1"].filesystems == ()
    assert cluster.storage[name].nodes == ("w1", "w2", "w3", "w4")
