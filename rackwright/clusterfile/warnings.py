"""Settings that are valid but rarely intended; `rackwright validate` prints these warnings."""

from __future__ import annotations

from rackwright.clusterfile.groups import Group
from rackwright.clusterfile.ports import warn_about_ports
from rackwright.clusterfile.report import Report
from rackwright.clusterfile.roles import options_class, role_names
from rackwright.clusterfile.storage_warnings import warn_about_boot_disks
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import (
    ProvidesCollectives,
    RunsKubernetes,
    RunsWorkloadManager,
    SetsUpGpuRepository,
)
from rackwright.model.ranges import fold
from rackwright.model.services import RunsRay
from rackwright.model.sku import Architecture, NvSwitch
from rackwright.model.types import NodeRole, Platform


def find_warnings(report: Report, cluster: Cluster, groups: list[Group]) -> None:
    """Add warnings about the cluster as a whole; those of roles come from their options."""
    for group in groups:
        _undriven(report, cluster, group)
    warn_about_ports(report, cluster.networks, groups)
    _crowded_racks(report, cluster, groups)
    _no_collectives(report, cluster)
    warn_about_boot_disks(report, cluster)


def _undriven(report: Report, cluster: Cluster, group: Group) -> None:
    """Warn about GPUs that a workload manager schedules, without a role that installs their driver."""
    nodes = [node for name in group.names if _lacks_driver(node := cluster.by_name[name])]
    if nodes and group.sku is not None and group.sku.gpus is not None:
        known = _roles_with(SetsUpGpuRepository)
        report.warn(
            (*group.path, "nodes"),
            f"{_listed(nodes)} offers its {group.sku.gpus.model} GPUs to jobs, but no role installs their driver."
            if len(nodes) == 1
            else f"{_listed(nodes)} offer their {group.sku.gpus.model} GPUs to jobs, but no role installs their "
            "driver.",
            f"add {known} under `roles`, unless the image has the driver",
        )


def _lacks_driver(node: Node) -> bool:
    return (
        node.sku.gpus is not None
        and node.sku.gpus.architecture is not Architecture.CDNA3
        and node.platform is not Platform.CONTAINER
        and not node.simulates_gpus
        and node.offers(RunsWorkloadManager) is not None
        and node.offers(SetsUpGpuRepository) is None
    )


def _crowded_racks(report: Report, cluster: Cluster, groups: list[Group]) -> None:
    """Warn about racks with more GPUs than one NVLink domain, if its switches are in the rack."""
    racks: dict[tuple[str, str], list[Node]] = {}
    for node in cluster.nodes:
        if node.rack is not None and node.sku.gpus is not None and node.sku.gpus.nvswitch is NvSwitch.RACK:
            racks.setdefault((node.rack, node.sku.name), []).append(node)
    for (rack, sku), nodes in racks.items():
        gpus = nodes[0].sku.gpus
        if gpus is None or gpus.nvlink_domain is None or len(nodes) * gpus.count <= gpus.nvlink_domain:
            continue
        group = next(group for group in groups if nodes[-1].name in group.names)
        fit = gpus.nvlink_domain // gpus.count
        report.warn(
            (*group.path, "rack"),
            f"{rack} has {len(nodes)} nodes of {sku} with {len(nodes) * gpus.count} GPUs; one NVLink domain has "
            f"{fit} nodes with {gpus.nvlink_domain} GPUs.",
            "declare one rack per NVLink domain, e.g. `rack: rack[1-2]`",
        )


def _no_collectives(report: Report, cluster: Cluster) -> None:
    """Warn about a burn-in in the workload manager whose programs no role installs."""
    workers = [
        node
        for node in cluster.holding(NodeRole.WORKER)
        # with Kubernetes they are in an image, with Ray in its environment
        if node.offers(RunsWorkloadManager) is not None
        and node.offers(RunsKubernetes) is None
        and node.offers(RunsRay) is None
    ]
    if not report.document.holds(("burnin",)):
        return
    _no_collectives_in_ray(report, cluster)
    if not workers:
        return
    if any(node.offers(ProvidesCollectives) is not None for node in workers):
        return
    engine = cluster.burnin.engine or ("nccl-tests" if workers[0].sku.gpus is not None else "mpi")
    known = _roles_with(ProvidesCollectives)
    report.warn(
        ("burnin",),
        f"The burn-in runs {engine}, but no role installs MPI and the programs it needs.",
        f"add {known} under `roles`, unless the image has them" if known else "install them in the image",
        key=True,
    )


def _no_collectives_in_ray(report: Report, cluster: Cluster) -> None:
    for node in cluster.holding(NodeRole.WORKER):
        if (ray := node.offers(RunsRay)) is None:
            continue
        missing = ray.missing_for_collectives(cluster, gpus=cluster.burnin.on_gpus(node.sku))
        if missing is not None:
            report.warn(
                ("burnin",),
                f"The burn-in of {node.name} needs {missing} in Ray's environment, and its lock has none.",
                "give the role a `lock` that has it",
                key=True,
            )
            return


def _roles_with(interface: type) -> str:
    """Names of the roles whose options implement an interface."""
    found = [f"`{role}`" for role in role_names() if issubclass(options_class(role), interface)]
    return " or ".join(found)


def _listed(nodes: list[Node]) -> str:
    return fold(node.name for node in nodes)
