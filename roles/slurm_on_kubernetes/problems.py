"""Mistakes in the slurm_on_kubernetes section that only show against the resolved cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackwright.kubernetes.versions import minor_of
from rackwright.model.interfaces import RunsKubernetes
from rackwright.model.ranges import fold
from rackwright.roles.slurm_on_kubernetes.kinds import split
from rackwright.roles.slurm_on_kubernetes.options import SLURMD_PORT
from rackwright.roles.slurm_on_kubernetes.places import slurmd_nodes
from rackwright.workload.slurm.pods import RendersSlurm, names_of

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster
    from rackwright.roles.slurm_on_kubernetes.options import SlurmOnKubernetesOptions

Problem = tuple[str, str, str | None]
SLINKY_KUBERNETES, SLINKY_SLURM = 29, (25, 11)
"""slurm-operator 1.x asks for Kubernetes 1.29 and Slurm 25.11 (its README.md, read 2026-11-28)."""


def problems_of(options: SlurmOnKubernetesOptions, cluster: Cluster) -> Iterator[Problem]:
    """All of them."""
    primary, slurm = cluster.primary, cluster.primary.offers(RendersSlurm)
    kubernetes = primary.offers(RunsKubernetes)
    if slurm is None or not slurm.in_pods:
        yield (
            "",
            "The slurm section does not declare daemons in pods.",
            "set `daemons: pods` in the slurm section, which has the settings of Slurm",
        )
    if kubernetes is None:
        yield "", f"{primary.name} does not run Kubernetes.", "add a section `kubernetes:` under `roles`"
        return
    planes = kubernetes.control_planes(cluster)
    if planes and planes[0] != primary:
        yield (
            "",
            f"Objects are applied on {planes[0].name}, but the settings of Slurm are on {primary.name}.",
            f"make {primary.name} part of the control plane",
        )
    if not slurmd_nodes(cluster):
        yield "", "No worker has a slurmd pod.", "add `workload: slurm-on-kubernetes` to a group of workers"
    if slurm is not None and slurm.in_pods:
        yield from _fits(options, cluster, slurm, kubernetes)


def _fits(
    options: SlurmOnKubernetesOptions, cluster: Cluster, slurm: RendersSlurm, kubernetes: RunsKubernetes
) -> Iterator[Problem]:
    without = [node.name for node in slurmd_nodes(cluster) if node.offers(RunsKubernetes) is None]
    if without:
        yield "", f"{fold(without)} would run slurmd in a pod, but not Kubernetes.", None
    if options.network == "host" and slurm.slurmd_port != SLURMD_PORT:
        yield (
            "network",
            f"On the host's network slurmd listens on {SLURMD_PORT}, not on {slurm.slurmd_port}.",
            "leave `slurmd_port` of the slurm section out, or set `network: pod`",
        )
    if options.network == "host" and options.login.enabled and options.login.port == cluster.ssh.port:
        yield "login.port", f"{cluster.primary.name}'s own sshd has port {options.login.port}.", "e.g. 2222"
    release = slurm.pod_release(cluster)
    if options.flavour == "slinky" and release < SLINKY_SLURM:
        yield (
            "flavour",
            f"Slinky needs Slurm {names_of(SLINKY_SLURM)} or later, not {names_of(release)}.",
            "set `packages: {source: schedmd, release: '25.11'}` in the slurm section, or `flavour: pods`",
        )
    if options.flavour == "slinky" and minor_of(kubernetes.version) < SLINKY_KUBERNETES:
        yield (
            "flavour",
            f"Slinky needs Kubernetes 1.{SLINKY_KUBERNETES} or later, not {kubernetes.version}.",
            None,
        )
    if options.flavour != "pods" and slurm.storage[0] == "localhost":
        yield (
            "flavour",
            f"{options.flavour.capitalize()} uses an accounting database that the site runs.",
            "set `accounting: {storage_host: ...}` in the slurm section",
        )
    if options.flavour != "pods":
        for partition, kind in split(options, cluster):
            yield (
                "flavour",
                f"Partition {partition} has some nodes of {kind.name} and not others; an operator knows them as one set.",
                "set `flavour: pods`, or let each partition have all nodes of a SKU",
            )
