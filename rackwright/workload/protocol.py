"""The interface of a workload manager. Terms of a single manager (partition, taint, Gres) do not belong here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

from rackwright.boundary import printable
from rackwright.model.cluster import Cluster, Node
from rackwright.workload.states import NodeState

if TYPE_CHECKING:
    from rackwright.ssh import RootShell  # loads paramiko, which `rackwright validate` has no use for


@dataclass(frozen=True)
class GpuRequest:
    """GPUs of each node, or MIG instances of one profile."""

    count: int
    profile: str | None = None
    """A MIG profile such as `1g.10gb`; None: whole GPUs."""


def gpus_of(node: Node) -> tuple[GpuRequest, ...]:
    """All that jobs may ask for of a node's GPUs; a GPU that MIG partitions is its instances."""
    gpus = node.sku.gpus
    if gpus is None:
        return ()
    if node.mig:
        return tuple(GpuRequest(each * gpus.count, profile) for profile, each in node.mig.items())
    return (GpuRequest(gpus.count),)


@dataclass(frozen=True)
class JobStep:
    """One program on some nodes, with exclusive use of them."""

    nodes: tuple[str, ...]
    tasks_per_node: int
    command: tuple[str, ...]
    timeout_seconds: int
    queue: str | None = None
    """Where the manager queues it (Slurm: a partition); None: the manager's default."""
    cpus_per_task: int = 1
    gpus: tuple[GpuRequest, ...] = ()
    """On each node."""
    environment: Mapping[str, str] = field(default_factory=dict)
    output_filter: str | None = None
    """An awk program through which the output goes before it travels; None: all of it travels."""
    purpose: str = "burnin"
    """In the job's name, as users see it in the queue and in accounting."""
    start: Literal["mpi", "each", "driver"] = "mpi"
    """`mpi`: ranks of one MPI program. `each`: tasks that need no launcher to find each other. `driver`: `command` is the
    arguments of a Python program that asks the manager for its tasks itself, for managers with such an interface."""


@dataclass(frozen=True)
class Output:
    """What a step printed, and how it ended."""

    text: str
    exit_status: int | None
    """None: the output ends before it; 124: out of time."""
    launcher: str = "the step"
    """What exited with that status, e.g. `srun`."""

    @property
    def problem(self) -> str | None:
        """Why the step did not end well, with the last error it printed, or None."""
        if self.exit_status == 0:
            return None
        errors = [line for line in self.text.splitlines() if "error" in line.lower() or "WARN" in line]
        last = f": {printable(errors[-1].strip(), 200)}" if errors else ""
        if self.exit_status is None:
            return f"the job's output is truncated{last}"
        return f"{self.launcher} exited {self.exit_status}{last}"


@dataclass(frozen=True)
class Job:
    """A job that runs on a node."""

    id: str
    user: str
    name: str

    def __str__(self) -> str:
        return f"{self.id} ({self.user}, {self.name})"


@dataclass(frozen=True)
class JobTrace:
    """Where a job leaves lines in the journals of nodes."""

    id: str
    nodes: tuple[str, ...]
    """Declared nodes that it ran on."""
    strangers: tuple[str, ...]
    """Further ones, which the cluster file does not declare."""
    servers: tuple[str, ...]
    """Where the manager itself writes about it."""
    submitted: float
    started: float | None
    """None: it waits."""
    ended: float | None
    """None: it waits or runs."""
    units: tuple[str, ...]
    """Units of the manager, and those in which jobs run."""
    cgroup: str
    """A regular expression that finds the control group of one of its processes."""
    named: str
    """A regular expression that finds what the manager calls it, in a message."""


@dataclass(frozen=True)
class HealthSchedule:
    """Which program the manager runs on a node to see whether it is well; empty: none."""

    program: str
    interval_seconds: int


class Manager(Protocol):
    """A workload manager as the control node sees it.

    Queries raise WorkloadError if the manager does not answer: no answer never means "no node" or "no job".
    Only `drain` goes on without a manager that is not running.
    ConnectionFailed comes through.
    """

    name: ClassVar[str]
    """For people, e.g. `Slurm`."""
    agent: ClassVar[str]
    """The systemd unit that runs jobs on a node."""

    def resume_command(self, node: str) -> str:
        """What an operator types to put a node back into service."""
        ...

    def version(self) -> str:
        """E.g. `24.11.5`."""
        ...

    def states(self) -> Mapping[str, NodeState]:
        """Every node that the manager knows, by name."""
        ...

    def state(self, node: str) -> NodeState:
        """One node; WorkloadError when the manager does not know it."""
        ...

    def jobs(self, node: str) -> tuple[Job, ...]:
        """What runs on a node now."""
        ...

    def running(self) -> Mapping[str, tuple[Job, ...]]:
        """What runs on every node now, by one question; nodes without jobs are left out."""
        ...

    def trace(self, job: str) -> JobTrace:
        """Where a job of any time left lines; WorkloadError when the manager does not know it (any more)."""
        ...

    def drain(
        self, nodes: Collection[str], run: str, deadline_seconds: float, *, kill_jobs: bool = False
    ) -> dict[str, str]:
        """Take nodes out of service for a run and wait for their jobs; {node: why it may not be touched}.

        Nodes that are out of service already keep their reason, and nodes the manager does not know are left
        alone; neither is refused once empty. A node whose jobs do not end in time goes back into service,
        unless another user has taken its drain over. A manager that does not run (before its installation, or
        stopped) cannot drain: nothing is, and the run goes on, as its own plan may be what starts the manager.
        `kill_jobs`: once no new job can start there, those that run on these nodes are cancelled.
        """
        ...

    def resume(self, nodes: Iterable[str], run: str) -> list[str]:
        """Put back into service those of these nodes that are still drained by this run, and return them.

        The manager is not asked where nothing was drained.
        """
        ...

    def drain_by_hand(self, node: str, reason: str) -> None:
        """Take a node out of service for an operator, and wait for nothing: jobs that run there go on to their end.

        WorkloadError where the node is out of service already, which keeps its reason, and for a reason that
        `by_hand.checked_reason` refuses.
        """
        ...

    def resume_by_hand(self, node: str, reason: str) -> None:
        """Put a node that a person drained back into service.

        WorkloadError where `by_hand.refused` does: not in service by another decision, or for another reason by now.
        """
        ...

    def run(self, step: JobStep) -> Output:
        """Run a step to its end; cancelled when it is given up (a timeout, Ctrl-C, a lost connection).

        WorkloadError for a step that this manager cannot start.
        """
        ...

    def cancel(self) -> None:
        """Cancel every step of this object that is under way."""
        ...


class OneManager(Manager, Protocol):
    """A manager of one kind, and what is known of it without asking: `lookup.declared_on` finds its class."""

    hooks: ClassVar[Mapping[str, str]]
    """Folder on nodes whose scripts run as root before (`prolog`) or after (`epilog`) each job, or as its user before each
    task (`task_prolog`: what they print sets variables); empty: it has none."""
    health_timer: ClassVar[bool]
    """Whether a timer of the node runs the health check, since the manager has no program for it."""
    drains_in: ClassVar[str | None]
    """Name of another manager that has its nodes too, and in which it drains them itself; None: it has its nodes alone."""

    def __init__(self, cluster: Cluster, shell: RootShell) -> None: ...

    def forget(self, nodes: Iterable[str]) -> None:
        """Forget nodes that have left for another manager: those of them that a run has drained and that no role of this one is on.

        A manager whose own configuration lists its nodes has forgotten them by then. One that does not run holds nothing up.
        """
        ...

    @staticmethod
    def services(node: Node) -> tuple[str, ...]:
        """Units, besides the agent, that must run on a node for jobs to run."""
        ...

    @staticmethod
    def health_schedule(ask: Callable[[str], str]) -> HealthSchedule:
        """As configured on a node, where `ask` runs a command and returns its output; raises NoAnswer if none is configured."""
        ...

    @staticmethod
    def job_question(node: str) -> str:
        """A shell command to run on a node, whose output `shows_job` reads; it always exits 0."""
        ...

    @staticmethod
    def shows_job(answer: str) -> bool:
        """Whether that output shows a job, or leaves open whether one runs."""
        ...
