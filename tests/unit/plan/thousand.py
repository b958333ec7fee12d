"""The first installation of a thousand workers, from what the roles plan for one of each kind of the DGX example."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

from rackwright.plan.node_plan import NodePlan, PlannedOperation, PlanResult
from tests.examples import INVENTORY

_PLAN = """
import json, sys; from pathlib import Path
from rackwright.clusterfile.load import load_cluster; from rackwright.data import Site
from rackwright.engine.reports import Reports; from rackwright.shipped import SITE_DEPLOY
from rackwright.pyinfra_driver.driver import Driver; from rackwright.pyinfra_driver.offline import EmptyNode
cluster = load_cluster(Path(sys.argv[1])); reports = Reports()
sites = [Site(cluster, cluster.by_name[name], offline=True) for name in sys.argv[2:]]
Driver(sites, SITE_DEPLOY, reports, connector=EmptyNode).plan()
print(json.dumps({name: plan.to_json() for name, plan in reports.plans.items()}))
"""
_WORKER, _ADDRESS = "gpu001", "10.10.1.1"


def thousand_nodes(workers: int = 1000) -> PlanResult:
    """Operations of head1, login1 and gpu[0001-...]; each worker's have its own name and address in them."""
    done = subprocess.run(
        [sys.executable, "-c", _PLAN, str(INVENTORY / "example-dgx-h100.yaml"), "head1", "login1", _WORKER],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    worker = found.pop(_WORKER)
    operations = [(json.dumps(operation), _read(operation)) for operation in worker["operations"]]
    nodes = {
        name: replace(_node(plan), operations=tuple(map(_read, plan["operations"])))
        for name, plan in found.items()
    }
    for number in range(1, workers + 1):
        name, address = f"gpu{number:04d}", f"10.10.{number // 250 + 1}.{number % 250 + 1}"
        own = tuple(
            _read(json.loads(text.replace(_WORKER, name).replace(_ADDRESS, address)))
            if _WORKER in text or _ADDRESS in text
            else operation
            for text, operation in operations
        )
        nodes[name] = replace(_node(worker), node=name, operations=own)
    return PlanResult("dgx", "inventory/example-dgx-h100.yaml", "0" * 64, nodes, "1" * 64)


def _node(plan: dict[str, Any]) -> NodePlan:
    return NodePlan.from_json({**plan, "operations": ()})


def _read(operation: dict[str, Any]) -> PlannedOperation:
    return PlannedOperation.from_json(operation)
