"""What a role may need from another role on the same node, found with `node.offers(Interface)`.

Options classes implement these interfaces; no role names or imports another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from rackwright.model.types import WorkloadManager

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node
    from rackwright.model.host_names import ExtraHost


class UserAccount(Protocol):
    """A user with the same number on every node."""

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
    """Options of the role that makes home directories on a declared filesystem; clients of it make none."""


class NamesHosts:
    """Options of the role that writes /etc/hosts."""

    extra_hosts: tuple[ExtraHost, ...]
    """What it names besides the nodes of the cluster."""


class SetsUpGpuRepository:
    """Options of the role that sets up the repository from which the locked GPU stack is installed."""


class AccountingDatabase:
    """The role creates the database of the workload manager's accounting, on the node it runs on."""

    database: str
    user: str
    """Database user, only from where the accounting runs (UsesAccountingDatabase)."""
    password_secret: ClassVar[str] = "slurmdbd_password"
    port: ClassVar[int] = 3306


class UsesAccountingDatabase:
    """The workload manager's accounting connects from some nodes to that database."""

    def uses_database_on(self, node: Node) -> bool:
        """Whether it connects from this node."""
        raise NotImplementedError


class ReadsDatabaseServer:
    """Options of a role whose program logs in to the database server as a Unix user, over its socket, without a password."""

    database_user: ClassVar[str]
    """That user, in the system and in the database."""


class SharedKey(NamedTuple):
    """A key file that is the same on all nodes, and the unit that reads it when it starts."""

    path: str
    owner: str
    mode: str
    unit: str
    content: bytes

    def __repr__(self) -> str:
        return f"SharedKey({self.path})"


class SharesKey:
    """Nodes with different keys refuse each other: its secret changes on all at once, and not wave by wave."""

    shared_secret: ClassVar[str]

    def shared_key(self, node: Node, secret: str) -> SharedKey:
        """The key file of a node, for a value of the secret."""
        raise NotImplementedError


class ProvesUsers:
    """Options of the role with which a process proves to other nodes which user runs it (MUNGE)."""


class GoesFirst:
    """What other nodes wait for: its nodes come first where `waves.size` splits a stage; by default all go at once."""

    def goes_first(self, node: Node) -> bool:
        """Whether other nodes wait for this one."""
        raise NotImplementedError


class RunsWorkloadManager:
    """The role runs a workload manager; nodes are drained in it before something disruptive."""

    workload_manager: ClassVar[WorkloadManager]
    core_spec_count: int
    """Cores of each node that it gives to no job."""


class NamesJobUsers:
    """Options of the role whose workload manager knows users by their Unix names."""

    users: Mapping[str, object]
    """By name; the users themselves come from elsewhere."""


class ManagesImexChannels:
    """Options of the role whose workload manager can make an IMEX channel for each job."""

    @property
    def manages_imex_channels(self) -> bool:
        """Whether it does (Slurm: SwitchType=switch/nvidia_imex)."""
        raise NotImplementedError


class ChecksNodeHealth:
    """The role puts a program on nodes with which a node checks itself; the workload manager runs it."""

    health_program: ClassVar[str]
    """Absolute path."""


class RunsDcgm:
    """The role runs DCGM's host engine, with health watches set, on nodes with GPUs."""

    @property
    def dcgm_host(self) -> str:
        """Where the host engine listens, as `dcgmi --host` takes it."""
        raise NotImplementedError


class ServesTime:
    """The role keeps the clocks of the cluster."""

    @property
    def own_clock_stratum(self) -> int | None:
        """Stratum of the head where its own clock is declared to be the site's time; None: it follows servers."""
        raise NotImplementedError


class NeedsForwarding:
    """The role runs something that makes the node forward packets, e.g. containers behind a bridge; it turns that on."""


class ProvidesCollectives:
    """Options of the role that installs MPI and, on nodes with GPUs, the programs that measure collectives."""

    @property
    def program_folders(self) -> tuple[str, ...]:
        """Folders of all_reduce_perf and its like, searched in this order; empty where the role has none."""
        raise NotImplementedError

    def mpi_command(self, node: Node) -> tuple[str, ...]:
        """A program each rank runs: all-reduces rank + 1, prints `rackwright-mpi RANK SIZE SUM HOST`."""
        raise NotImplementedError


class ReservesMemory:
    """Options of a role whose services hold memory that a job on the same node cannot have."""

    def reserved_mib(self, node: Node) -> int:
        """MiB that its services need on this node."""
        raise NotImplementedError


PRIVILEGED_GROUPS = ("sudo", "wheel", "admin", "docker", "lxd", "disk")
"""sudo's groups of Debian, Ubuntu and EL, and groups that own a container daemon's socket or the disks."""


class DeclaresLogins:
    """Options of the role that decides who may log in to a node, and how."""

    @property
    def login_keys(self) -> Mapping[str, tuple[str, ...]]:
        """Lines of authorized_keys that it declares, by user, and users that may become root without any."""
        raise NotImplementedError

    @property
    def root_groups(self) -> Mapping[str, tuple[str, ...]]:
        """Declared members of each group whose members can become root."""
        raise NotImplementedError

    @property
    def login_files(self) -> tuple[str, ...]:
        """Files of keys, of sudo and of sshd that it compares whole."""
        raise NotImplementedError

    @property
    def administrators(self) -> tuple[str, ...]:
        """Users that may become root by its rules of sudo."""
        raise NotImplementedError

    @property
    def sshd_settings(self) -> Mapping[str, str]:
        """Effective settings of sshd, in lower case as `sshd -T` prints them."""
        raise NotImplementedError


class AddsLogins:
    """Options of a role that lets in further users than declared ones, e.g. those of a directory."""

    @property
    def added_login_files(self) -> tuple[str, ...]:
        """Files of sudo and of sshd that it compares whole, besides those of DeclaresLogins."""
        raise NotImplementedError


class ComparesGroups:
    """Options of a role that declares all members of groups, and takes others out."""

    compared_groups: ClassVar[frozenset[str]]
    """Their names."""


class WritesUnitFiles:
    """Options of a role that writes units, or drop-ins for units, in /etc/systemd/system."""

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """Their paths, also of those that it writes under some conditions only."""
        raise NotImplementedError


class BoundsHooks:
    """Options of the role that runs scripts before and after jobs."""

    @property
    def hook_seconds(self) -> int:
        """After how long it ends them, and drains the node."""
        raise NotImplementedError


class SetsJobEnvironment:
    """The role has a script in the workload manager's hook `task_prolog`, which gives each task variables."""


class KeepsUnitFiles:
    """Options of the role with which units have only declared files; without it, others are left alone."""

    allowed_drop_ins: tuple[str, ...]
    """Further unit files and drop-ins that the site has on purpose."""


class DeclaresKernel:
    """Options of the role that installs the locked kernel, and decides how it boots."""

    def turns_acs_off(self, node: Node) -> bool:
        """Whether it clears the ACS control bits of this node's PCIe bridges."""
        raise NotImplementedError

    def kernel_release(self, cluster: Cluster, node: Node) -> str | None:
        """The kernel that it installs, with its headers, as uname -r prints it; None: as installed."""
        raise NotImplementedError


class HoldsPackages:
    """Options of a role that holds packages which the lock does not name."""

    def held_packages(self, node: Node) -> tuple[str, ...]:
        """Their names."""
        raise NotImplementedError
