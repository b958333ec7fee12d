"""One workload manager for each node that runs jobs, and a role for each declared workload."""

from __future__ import annotations

from rackwright.clusterfile.groups import Group
from rackwright.clusterfile.report import Report
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import RunsWorkloadManager
from rackwright.model.ranges import fold
from rackwright.model.types import NodeRole, Workload


def check_workloads(report: Report, cluster: Cluster, groups: list[Group]) -> None:
    """Report groups whose workers have two workload managers, or a workload that no role runs."""
    for group in groups:
        workers = [node for name in group.names if (node := cluster.by_name[name]).holds(NodeRole.WORKER)]
        if not workers:
            continue
        found = _managers(workers[0])
        if len(found) > 1:
            names = " and ".join(f"`{role}`" for role in found)
            report.add(
                (*group.path, "nodes"),
                f"{fold(node.name for node in workers)} would run jobs with {names} at once.",
                f"add `workload:` to the group: {', '.join(_choices(workers[0]))}",
            )
        elif not found and group.workload is not None:
            report.add(
                (*group.path, "workload"),
                f"The workload is {group.workload}, but no section under `roles` runs it.",
                f"add {_sections(report, group.workload)} under `roles`",
            )


def _managers(node: Node) -> list[str]:
    return [
        role
        for role, given in node.options.items()
        if isinstance(given, RunsWorkloadManager) and given.manages_nodes
    ]


def _choices(node: Node) -> list[str]:
    options = (given for given in node.options.values() if isinstance(given, RunsWorkloadManager))
    return sorted({str(workload) for given in options for workload in given.workloads})


def _sections(report: Report, workload: Workload) -> str:
    """Sections that run a workload, by what their options declare."""
    found = [
        role
        for role in report.roles.names
        if issubclass(options := report.roles.options_class(role), RunsWorkloadManager)
        and workload in options.workloads
    ]
    return " or ".join(f"`{role}`" for role in found)
