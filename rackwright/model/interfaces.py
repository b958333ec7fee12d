"""What a role may need from another role on the same node, found with `node.offers(Interface)`.

Options classes implement these interfaces; no role refers to another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from rackwright.model.types import WorkloadManager

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node
    from rackwright.model.host_names import ExtraHost


class UserAccount(Protocol):
    """A user with the same uid on every node."""

    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> int: ...


class DeclaresUsers:
    """Options of the role that creates the site's users on a node."""

    @property
    def accounts(self) -> Sequence[UserAccount]:
        """Every user it creates."""
        raise NotImplementedError

    def home_folder(self, cluster: Cluster, node: Node, account: UserAccount) -> str:
        """Home directory of one of them on a node."""
        raise NotImplementedError


class MakesHomes:
    """Options of the role that creates home directories on a declared filesystem; its clients create none."""


class NamesHosts:
    """Options of the role that writes /etc/hosts."""

    extra_hosts: tuple[ExtraHost, ...]
    """Host names besides those of the cluster's nodes."""


class SetsUpGpuRepository:
    """Options of the role that sets up the repository from which the locked GPU stack is installed."""


class AccountingDatabase:
    """The role creates the accounting database of the workload manager, on its node."""

    database: str
    user: str
    """Database user that may connect only from the accounting hosts (UsesAccountingDatabase)."""
    password_secret: ClassVar[str] = "slurmdbd_password"
    port: ClassVar[int] = 3306


class UsesAccountingDatabase:
    """The workload manager's accounting connects to that database from some nodes."""

    def uses_database_on(self, node: Node) -> bool:
        """Whether it connects from this node."""
        raise NotImplementedError


class ReadsDatabaseServer:
    """Options of a role whose program connects to the database as a Unix user over the socket, without a password."""

    database_user: ClassVar[str]
    """The user, with the same name in the system and in the database."""


class SharedKey(NamedTuple):
    """A key file that is identical on all nodes, and the unit that reads it at startup."""

    path: str
    owner: str
    mode: str
    unit: str
    content: bytes

    def __repr__(self) -> str:
        return f"SharedKey({self.path})"


class SharesKey:
    """Nodes with different keys reject each other: rotate its secret on all nodes at once, not in waves."""

    shared_secret: ClassVar[str]

    def shared_key(self, node: Node, secret: str) -> SharedKey:
        """The node's key file for a value of the secret."""
        raise NotImplementedError


class ProvesUsers:
    """Options of the role that authenticates users between nodes (MUNGE)."""


class GoesFirst:
    """A service that other nodes wait for: with `waves.size` its nodes go first; by default all go at once."""

    def goes_first(self, node: Node) -> bool:
        """Whether other nodes wait for this one."""
        raise NotImplementedError


class RunsWorkloadManager:
    """The role runs a workload manager, which drains nodes before disruptive changes."""

    workload_manager: ClassVar[WorkloadManager]
    core_spec_count: int
    """Cores of each node that are reserved from jobs."""

    @property
    def manages_nodes(self) -> bool:
        """Whether it drains its nodes; False where its daemons run in pods, whose manager drains them."""
        return True


class RunsKubernetes(RunsWorkloadManager):
    """Options of the role that runs Kubernetes: kubelet on each of its nodes, the control plane on some heads."""

    version: str
    """Exact, without `v`: `1.34.2`."""
    dns_domain: str
    """Domain of services: `cluster.local`."""
    pod_network: IPv4Network
    """Addresses of pods."""
    mirror: Path | None
    """File beside the cluster file that describes the site's mirror; the lab writes it for its racks."""
    kubeconfig: ClassVar[str] = "/etc/kubernetes/admin.conf"
    """On control-plane nodes: root's access to the API server."""
    kubelet_kubeconfig: ClassVar[str] = "/etc/kubernetes/kubelet.conf"
    """On every node: the kubelet's own access."""

    def control_planes(self, cluster: Cluster) -> tuple[Node, ...]:
        """Nodes that run kube-apiserver; the first is the primary head, where objects are applied."""
        raise NotImplementedError

    @property
    def burnin_image(self) -> str | None:
        """The image that steps run in: Open MPI, sshd, ssh, awk, python3, and nccl-tests on GPU nodes; None: not declared."""
        raise NotImplementedError


class NamesJobUsers:
    """Options of the role whose workload manager knows users by their Unix names."""

    users: Mapping[str, object]
    """User names; the users themselves come from elsewhere."""


class ManagesImexChannels:
    """Options of the role whose workload manager can create an IMEX channel per job."""

    @property
    def manages_imex_channels(self) -> bool:
        """Whether it does (Slurm: SwitchType=switch/nvidia_imex)."""
        raise NotImplementedError


class ChecksNodeHealth:
    """The role installs a node health check program; the workload manager runs it."""

    health_program: ClassVar[str]
    """Absolute path of the program."""


class RunsDcgm:
    """The role runs DCGM's host engine with health watches on GPU nodes."""

    @property
    def dcgm_host(self) -> str:
        """Where the host engine listens, as `dcgmi --host` takes it."""
        raise NotImplementedError


class ServesTime:
    """The role synchronizes the clocks of the cluster."""

    @property
    def own_clock_stratum(self) -> int | None:
        """Stratum of the head if its clock is declared to be the site's time source; None: it follows servers."""
        raise NotImplementedError


class NeedsForwarding:
    """The role runs software that makes the node forward packets, e.g. bridged containers; it enables forwarding."""


class ProvidesCollectives:
    """Options of the role that installs MPI and, on GPU nodes, programs that measure collectives."""

    @property
    def program_folders(self) -> tuple[str, ...]:
        """Folders with all_reduce_perf and similar programs, in search order; empty if there are none."""
        raise NotImplementedError

    def mpi_command(self, node: Node) -> tuple[str, ...]:
        """A program that each rank runs: all-reduces rank + 1, prints `rackwright-mpi RANK SIZE SUM HOST`."""
        raise NotImplementedError


class ReservesMemory:
    """Options of a role whose services use memory that jobs on the node cannot have."""

    def reserved_mib(self, node: Node) -> int:
        """Memory in MiB that its services need on this node."""
        raise NotImplementedError


class WritesUnitFiles:
    """Options of a role that writes units or drop-ins in /etc/systemd/system."""

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """Their paths, including those written only under some conditions."""
        raise NotImplementedError


class BoundsHooks:
    """Options of the role that runs scripts before and after jobs."""

    @property
    def hook_seconds(self) -> int:
        """Time limit after which it ends them and drains the node."""
        raise NotImplementedError


class SetsJobEnvironment:
    """The role has a script in the workload manager's hook `task_prolog`, which sets variables of each task."""


class KeepsUnitFiles:
    """Options of the role that limits units to declared files; without it, others are ignored."""

    allowed_drop_ins: tuple[str, ...]
    """Further unit files and drop-ins that the site keeps on purpose."""


class DeclaresKernel:
    """Options of the role that installs the locked kernel and decides how it boots."""

    def turns_acs_off(self, node: Node) -> bool:
        """Whether it clears the ACS control bits of this node's PCIe bridges."""
        raise NotImplementedError

    def kernel_release(self, cluster: Cluster, node: Node) -> str | None:
        """The kernel that it installs with its headers, as `uname -r` prints it; None: the installed one."""
        raise NotImplementedError


class HoldsPackages:
    """Options of a role that holds packages which are not in the lock."""

    def held_packages(self, node: Node) -> tuple[str, ...]:
        """Package names."""
        raise NotImplementedError
