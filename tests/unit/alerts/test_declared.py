"""The declared truth as series: one for each node, whether or not it answers."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from rackwright.alerts.declared import declared_groups
from rackwright.alerts.text import rule_file
from rackwright.model.sku import Gpus, Nic
from rackwright.model.storage import Filesystem, FilesystemKind, FilesystemPurpose
from rackwright.model.types import LinkKind, NetworkPurpose, NodeRole
from rackwright.roles.health.options import HealthRoleOptions
from rackwright.roles.slurm.options import SlurmOptions
from tests.factories import make_cluster, make_gpu_sku, make_node, make_sku
from tests.unit.alerts.case import values
from tests.unit.alerts.promtool import promtool
from tests.unit.alerts.series import series

_FABRIC = {"purpose": NetworkPurpose.FABRIC, "kind": LinkKind.INFINIBAND}
_GPUS = {"model": "H100", "gres_type": "h100", "count": 8, "memory_mib": 81920}
GPU_SKU = make_gpu_sku(
    "hgx-h100",
    gpus=Gpus(**_GPUS, power_watts=700, pcie_generation=5, pcie_width=16),
    nics=(
        Nic(**_FABRIC, speed_gbps=400),
        Nic(**_FABRIC, speed_gbps=200),
        Nic(purpose=NetworkPurpose.STORAGE, kind=LinkKind.ETHERNET, speed_gbps=100),
    ),
)
HEAD_SKU = make_sku("head", cores_per_socket=16, memory_mib=1024)


def _filesystem(name: str, kind: FilesystemKind, path: str, *, automount: bool) -> Filesystem:
    return Filesystem(name=name, kind=kind, purpose=FilesystemPurpose.DATA, path=path, automount=automount)


HOME = _filesystem("home", FilesystemKind.NFS, "/home", automount=True)
DATA = _filesystem("data", FilesystemKind.NFS, "/data", automount=False)
SCRATCH = _filesystem("scratch", FilesystemKind.LOCAL, "/scratch", automount=True)
_CHECKED = {"slurm": SlurmOptions(), "health": HealthRoleOptions()}
EVERYTHING = make_cluster(
    make_node("head1", 10, NodeRole.HEAD, sku=HEAD_SKU, filesystems=(HOME, DATA)).with_options(_CHECKED),
    make_node(
        "gpu1", 11, sku=GPU_SKU, rack="r1", switch="leaf1", filesystems=(HOME, DATA, SCRATCH)
    ).with_options(_CHECKED),
    make_node("gpu2.a", 12, sku=GPU_SKU, rack="r1", switch="leaf1", filesystems=(HOME, SCRATCH)),
)
"""Every series that can be declared."""


def _rules(**given: Any) -> list[dict[str, Any]]:
    groups = declared_groups(EVERYTHING, **given)
    found: list[dict[str, Any]] = yaml.safe_load(rule_file(groups, frozenset({"node"})))["groups"][0]["rules"]
    return found


def _up(node: str, value: str, **labels: str) -> dict[str, str]:
    return {
        "series": series("up", job="node", instance=f"{node}:9100", node=node, **labels),
        "values": values(value),
    }


def test_what_is_declared_of_each_sku():
    of_gpu = {rule["record"]: rule["expr"] for rule in _rules() if 'sku="hgx-h100"' in rule["expr"]}
    nodes = 'max by (node, rack, leaf, sku) (up{job="node",sku="hgx-h100"}) * 0'
    assert of_gpu == {
        "rackwright_declared_node": f"{nodes} + 1",
        "rackwright_declared_cpus": f"{nodes} + 224",
        "rackwright_declared_memory_bytes": f"{nodes} + {2097152 * 2**20}",
        "rackwright_declared_gpus": f"{nodes} + 8",
        "rackwright_declared_gpu_memory_bytes": f"{nodes} + {80 * 2**30}",
        "rackwright_declared_gpu_power_watts": f"{nodes} + 700",
        "rackwright_declared_gpu_pcie_lanes": f"{nodes} + 16",
        "rackwright_declared_gpu_pcie_generation": f"{nodes} + 5",
        "rackwright_declared_fabric_ports": f"{nodes} + 2",
        "rackwright_declared_fabric_fast_ports": f"{nodes} + 2",
        "rackwright_declared_fabric_port_bytes_per_second": f"{nodes} + 25000000000",
        "rackwright_declared_mount": f"{nodes} + 1",
    }


def test_what_a_sku_lacks_is_not_declared():
    of_head = [rule["record"] for rule in _rules() if 'sku="head"' in rule["expr"]]
    assert of_head == [f"rackwright_declared_{name}" for name in ("node", "cpus", "memory_bytes", "mount")]


def test_only_workers_check_themselves():
    (rule,) = [rule for rule in _rules() if rule["record"] == "rackwright_declared_health_check"]
    assert 'node=~"gpu1"' in rule["expr"]


@pytest.mark.parametrize(
    ("others", "ports", "fast"),
    [
        ((), 2, 2),
        (((NetworkPurpose.STORAGE, LinkKind.INFINIBAND, 200),), 3, 2),
        (((NetworkPurpose.STORAGE, LinkKind.INFINIBAND, 400),), 3, 3),
        (((NetworkPurpose.STORAGE, LinkKind.ROCE, 400),), 2, 2),  # two of them may be bonded to one device
    ],
)
def test_other_infiniband_ports_do_not_stand_in_for_the_fabric_s(others, ports, fast):
    own = Nic(**_FABRIC, speed_gbps=400)
    nics = (own, own, *(Nic(purpose=purpose, kind=kind, speed_gbps=speed) for purpose, kind, speed in others))
    cluster = make_cluster(make_node("gpu1", 11, sku=make_gpu_sku("x", nics=nics)))
    (group,) = declared_groups(cluster)
    values = {rule.record: rule.expr.rpartition(" ")[2] for rule in group.rules}
    assert values["rackwright_declared_fabric_ports"] == str(ports)
    assert values["rackwright_declared_fabric_fast_ports"] == str(fast)


def test_only_what_is_always_mounted_is_declared_as_a_mount():
    mounts = [
        (rule["labels"]["mountpoint"], rule["expr"].partition("{")[2].partition("}")[0])
        for rule in _rules()
        if rule["record"] == "rackwright_declared_mount"
    ]
    assert mounts == [
        ("/data", 'job="node",sku="head"'),
        ("/data", 'job="node",node=~"gpu1"'),
        ("/scratch", 'job="node",sku="hgx-h100"'),
    ]


def test_a_dot_in_a_name_is_no_wildcard():
    cluster = make_cluster(
        make_node("head1", 10, NodeRole.HEAD),
        make_node("gpu1.a", 11, filesystems=(SCRATCH,)),
        make_node("gpu1xa", 12),
    )
    text = rule_file(declared_groups(cluster), frozenset({"node"}))
    assert 'node=~"gpu1[.]a"' in text


@pytest.mark.parametrize(("given", "value"), [(380, "380"), (12.5, "12.5"), (0.001, "0.001")])
def test_carbon(given, value):
    *_, last = _rules(carbon_grams_per_kwh=given)
    assert last == {"record": "rackwright_declared_carbon_grams_per_kwh", "expr": f"vector({value})"}
    assert all(rule["record"] != last["record"] for rule in _rules())


def test_prometheus_makes_the_series_of_nodes_that_are_down_too(tmp_path):
    rules = rule_file(declared_groups(EVERYTHING), frozenset({"node"}))
    (tmp_path / "rules.yml").write_text(rules)
    place = {"rack": "r1", "leaf": "leaf1", "sku": "hgx-h100"}
    samples = [
        {"labels": series("rackwright_declared_gpus", node=node, **place), "value": 8}
        for node in ("gpu1", "gpu2.a")
    ]
    test = {
        "interval": "60s",
        "input_series": [
            _up("gpu1", "1*4", role="worker", **place),
            _up("gpu2.a", "0*4", role="worker", **place),
            _up("head1", "1*4", role="head", sku="head"),
        ],
        "promql_expr_test": [
            {"expr": "rackwright_declared_gpus", "eval_time": "2m", "exp_samples": samples},
            {
                "expr": "rackwright_declared_mount",
                "eval_time": "2m",
                "exp_samples": [
                    {"labels": series("rackwright_declared_mount", **labels), "value": 1}
                    for labels in (
                        {"node": "gpu1", "mountpoint": "/data", **place},
                        {"node": "gpu1", "mountpoint": "/scratch", **place},
                        {"node": "gpu2.a", "mountpoint": "/scratch", **place},
                        {"node": "head1", "mountpoint": "/data", "sku": "head"},
                    )
                ],
            },
        ],
    }
    document = {"rule_files": ["rules.yml"], "evaluation_interval": "60s", "tests": [test]}
    (tmp_path / "test.yml").write_text(yaml.safe_dump(document))
    ran = promtool("test", "rules", str(tmp_path / "test.yml"))
    assert ran.returncode == 0, ran.stdout + ran.stderr
