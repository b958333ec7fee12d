"""Slurm's files for daemons in pods: the same texts, for a cluster whose nodes are those with a slurmd pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal, cast

from rackwright.model.interfaces import ReservesMemory
from rackwright.model.options import RoleOptions
from rackwright.model.types import NodeRole, Workload
from rackwright.workload.slurm.pods import ETC, PodNode, PodPartition, PodPlaces, RendersSlurm

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node
    from rackwright.roles.slurm.options import SlurmOptions
    from rackwright.roles.slurm.sections import Accounting
    from rackwright.workload.slurm.records import Records

Problem = tuple[str, str, str | None]
_SCRIPTS = ("prolog", "epilog")


class SlurmInPods(RendersSlurm):
    """Base of the options of Slurm."""

    if TYPE_CHECKING:
        accounting: Accounting
        daemons: Literal["nodes", "pods"]

    @property
    def in_pods(self) -> bool:
        """Declared by `daemons`."""
        return self.daemons == "pods"

    @property
    def storage_secret(self) -> str:
        """Declared by `accounting.storage_password`."""
        return self.accounting.storage_password

    @property
    def storage(self) -> tuple[str, int, str, str]:
        """Declared by `accounting`."""
        ours = self.accounting
        return ours.storage_host, ours.storage_port, ours.database, ours.storage_user

    def pod_release(self, cluster: Cluster) -> tuple[int, int]:
        """Of the primary head's system, whose packages are in the image."""
        from rackwright.roles.slurm.placement import release_on

        return release_on(cluster.primary, cast("SlurmOptions", self))

    def pod_packages(self, cluster: Cluster) -> tuple[str, ...]:
        """All daemons."""
        from rackwright.osfamily.names import names

        prefix = "schedmd/" if cast("SlurmOptions", self).packages.source == "schedmd" else ""
        wanted = (f"{prefix}{name}" for name in ("slurm-client", "slurmctld", "slurmd", "slurmdbd"))
        found = (name for one in wanted for name in names(cluster.primary.family, one).packages)
        return tuple(dict.fromkeys(found))

    def pod_files(self, cluster: Cluster, places: PodPlaces) -> Mapping[str, str]:
        """As `texts` has them."""
        from rackwright.roles.slurm import texts

        seen, options = view(cluster, cast("SlurmOptions", self), places)
        found = texts.shared_files(seen, options, places)
        files = {path.removeprefix(f"{ETC}/"): text for path, text in found.items() if text is not None}
        own = options.accounting.model_copy(update={"dbd_host": places.accounting})
        of_slurmdbd = options.model_copy(update={"accounting": own})
        files["slurmdbd.conf"] = texts.slurmdbd_conf(seen, of_slurmdbd, password=None)
        for stage in _SCRIPTS:
            files[f"{stage}.sh"] = texts.script_runner(seen, options, stage)
        return files

    def pod_nodes(self, cluster: Cluster, places: PodPlaces) -> Mapping[str, PodNode]:
        """In natural order."""
        from rackwright.roles.slurm import layout, placement
        from rackwright.workload.slurm.gres import gres

        seen, options = view(cluster, cast("SlurmOptions", self), places)
        return {
            node.name: PodNode(
                cpus=layout.hardware(node).cpus,
                memory_mib=layout.real_memory(node, options),
                gres=gres(node) or "",
                gpus=layout.gpu_count(node),
                simulated=layout.simulated_gpus(node) > 0,
                partition=layout.partition_of(seen, options, node),
            )
            for node in placement.workers(seen)
        }

    def pod_records(self, cluster: Cluster, places: PodPlaces) -> Records:
        """As on nodes."""
        from rackwright.roles.slurm.records import declared_records

        return declared_records(*view(cluster, cast("SlurmOptions", self), places))

    def pod_partitions(self, cluster: Cluster, places: PodPlaces) -> Mapping[str, PodPartition]:
        """As on nodes."""
        from rackwright.roles.slurm.layout import partition_nodes
        from rackwright.roles.slurm.texts import partition_line

        seen, options = view(cluster, cast("SlurmOptions", self), places)
        found = {}
        for name, partition in options.partitions.items():
            nodes = tuple(node.name for node in partition_nodes(seen, partition))
            _, _, *words = partition_line(seen, options, name, partition).split()
            found[name] = PodPartition(nodes, " ".join(words))
        return found


def pod_workers(cluster: Cluster) -> tuple[Node, ...]:
    """Workers with a slurmd pod: those of this workload, and all where none is narrowed down."""
    workers = cluster.holding(NodeRole.WORKER)
    return tuple(node for node in workers if node.serves({Workload.SLURM_ON_KUBERNETES}))


def view(
    cluster: Cluster, options: SlurmOptions, places: PodPlaces | None = None
) -> tuple[Cluster, SlurmOptions]:
    """The cluster as Slurm in pods sees it, and its options there.

    All nodes have the image's system, the primary head's.
    """
    names = [node.name for node in pod_workers(cluster)] if places is None else places.nodes
    accounting = options.accounting
    if places is not None:
        local = accounting.storage_host == "localhost"
        hosts = {
            "dbd_host": places.accounting_address,
            **({"storage_host": places.database} if local else {}),
        }
        accounting = accounting.model_copy(update=hosts)
    seen = options.model_copy(update={"daemons": "nodes", "accounting": accounting})
    nodes = []
    for node in cluster.nodes:
        if not node.primary and node.name not in names:
            continue
        kept: dict[str, RoleOptions] = {
            role: one
            for role, one in node.options.items()
            if isinstance(one, ReservesMemory) and role != "slurm"
        }
        changed = {
            "os": cluster.primary.os,
            "roles": (node.roles - {NodeRole.WORKER})
            | ({NodeRole.WORKER} if node.name in names else frozenset()),
            "options": {**kept, "slurm": seen},
        }
        nodes.append(node.model_copy(update=changed))
    fields = {name: getattr(cluster, name) for name in type(cluster).model_fields}
    # not model_copy: it would keep what the other cluster has computed of its nodes
    return type(cluster).model_construct(**{**fields, "nodes": tuple(nodes)}), seen


def unfit_for_pods(options: SlurmOptions, cluster: Cluster) -> Iterator[Problem]:
    """What is not there in pods."""
    later = "leave it out, or run Slurm's daemons on the nodes (`daemons: nodes`)"
    if options.backups:
        yield "backups", "A pod of slurmctld that fails is started again elsewhere; it has no backups.", later
    if options.state_mount is not None:
        yield "state_mount", "slurmctld's state in pods is on a volume of slurm_on_kubernetes.", later
    if options.power_saving.active:
        yield "power_saving", "slurmctld cannot power nodes off from its pod.", later
    if options.reservations:
        yield "reservations", "Reservations are made only where slurmctld runs on a node.", later
    if options.accounting.dbd_host or options.accounting.dbd_backup_host:
        yield "accounting.dbd_host", "slurmdbd runs in a pod too.", "leave dbd_host and dbd_backup_host out"
    if options.health_check.program is not None:
        yield "health_check.program", "A pod has no programs of the node.", later
    if mig := [node.name for node in pod_workers(cluster) if node.mig]:
        yield (
            "",
            f"{mig[0]} has MIG instances, which slurmd's pods do not ask for yet.",
            "leave `mig` out there",
        )
    offered = [node for node in cluster.nodes if "slurm_on_kubernetes" in node.options]
    if not offered:
        yield (
            "daemons",
            "No role runs Slurm's daemons in pods.",
            "add `slurm_on_kubernetes: {}` under `roles`",
        )
