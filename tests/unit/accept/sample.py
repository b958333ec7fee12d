"""A report as a site gets it: every check that the lab's cluster file asks for, with a few that are not as they must be."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rackwright.accept import AcceptReport, Stages, accept
from rackwright.burnin.floors import Floor
from rackwright.burnin.report import BurninReport, Measurement, SkuGroup
from rackwright.burnin.table import parse_nccl_tests
from rackwright.claims.check import CheckResult
from rackwright.clusterfile.load import load_cluster
from rackwright.engine.run import Applied
from rackwright.model.cluster import Cluster
from rackwright.model.types import NodeRole
from rackwright.plan.node_plan import NodePlan, PlanResult
from rackwright.status import Status
from rackwright.storage.report import BenchReport
from rackwright.verify import VerifyReport
from rackwright.verify.judge import out_of_scope, result
from rackwright.verify.selection import PlannedCheck, select
from tests.unit.burnin import recorded

LAB = Path("inventory/lab.yaml")
STARTED = datetime(2026, 11, 28, tzinfo=UTC)
TROUBLES = {
    ("node_exporter", "worker2", "node_exporter answers on its address, and requires its password"): (
        Status.FAIL,
        "it answers on 0.0.0.0:9100; declared 10.77.0.12:9100",
    ),
    ("slurm", "head1", "every declared node is ready with its declared hardware"): (
        Status.FAIL,
        "worker2: Gres is gpu:h100:7, declared gpu:h100:8",
    ),
    ("health", "worker1", "the node's health check passes"): (
        Status.UNKNOWN,
        "gpu-ecc: `nvidia-smi -q -x` exited 9 saying: couldn't communicate with the NVIDIA driver",
    ),
    ("time", "worker1", "the clock is within its allowed offset"): (
        Status.WARN,
        "offset 38 ms, allowed 50 ms",
    ),
}
"""By role, node and check."""
EVIDENCE = ("active since 2026-11-27 23:58", "", "as declared", "3 of 3 answer", "mode 0600, root:root")


def verified(cluster: Cluster) -> VerifyReport:
    """Every planned check; what the platform cannot have is OUT OF SCOPE by the program's own judgement."""

    def one(planned: PlannedCheck) -> CheckResult:
        beyond = out_of_scope(planned)
        if beyond is not None:
            return beyond
        good = Status.PASS, EVIDENCE[planned.order % len(EVIDENCE)]
        status, evidence = TROUBLES.get((planned.role, planned.node.name, planned.check.name), good)
        return result(planned, status, evidence)

    results = tuple(map(one, select(cluster, limit=None, roles=None).checks))
    names = tuple(node.name for node in cluster.nodes)
    return VerifyReport(cluster.name, str(cluster.path), cluster.sha256, names, results, (), STARTED, 41.7)


def lab_report(path: Path = LAB) -> tuple[AcceptReport, Cluster]:
    """What `rackwright accept` came to, and of which cluster."""
    cluster = load_cluster(path, locked=False)
    plan = PlanResult(
        cluster.name, str(path), cluster.sha256, {node.name: NodePlan(node.name) for node in cluster.nodes}
    )
    workers = tuple(node.name for node in cluster.holding(NodeRole.WORKER))
    table = parse_nccl_tests(recorded.GH200_TWO_NODES)
    group = SkuGroup(
        sku="lab-h100-node", engine="mpi", nodes=workers, ranks=2 * len(workers), findings=(), versions={"slurm": "24.11.5"},
        floor=Floor(100.0, "the site's own"), measurements=(Measurement("all_reduce", table, ()),),
    )  # fmt: skip
    burnin = BurninReport(cluster.name, str(path), cluster.sha256, (group,), STARTED, 31.0)
    benched = BenchReport(cluster.name, str(path), cluster.sha256, (), STARTED, 0.0)
    stages = Stages(
        apply=lambda _: Applied(plan, None), plan=lambda _: plan, verify=verified, storage=lambda _: benched,
        burnin=lambda _: burnin,
    )  # fmt: skip
    return replace(accept(cluster, stages), started=STARTED, seconds=312.0, file=path.name), cluster
