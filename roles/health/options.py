"""Options of the health role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from rackwright.health.guard import places
from rackwright.health.guard.memory import Policy
from rackwright.health.options import HealthOptions
from rackwright.model.interfaces import ChecksNodeHealth, WritesUnitFiles
from rackwright.model.options import Frozen
from rackwright.model.strings import NodePath
from rackwright.workload.lookup import runs_jobs

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node


class Draining(Frozen):
    """When a node drains itself, and when it returns to service."""

    clean_passes: int = Field(
        default=3,
        ge=1,
        le=100,
        description="Passes of the health check in a row, with nothing failed and nothing unknown, after "
        "which a node is resumed that a health check has drained.",
    )
    unknown: Literal["alert", "drain"] = Field(
        default="alert",
        description="What to do about a node with UNKNOWN results: raise an alert, or also drain "
        "it if the UNKNOWN check has passed there before. Neither resumes it.",
    )
    unknown_passes: int = Field(
        default=3,
        ge=1,
        le=100,
        description="Passes in a row in which a check is UNKNOWN before it raises an alert or drains: one "
        "slow answer is not a fault.",
    )
    percent: float = Field(
        default=10,
        gt=0,
        le=100,
        description="Most nodes of a partition (Kubernetes: of a SKU, or with the same label `rackwright.dev/group`) that health checks may have drained, rounded down but at "
        "least one. Beyond that, an alert is raised instead.",
    )
    reboots_a_day: int = Field(
        default=0,
        ge=0,
        le=3,
        description="Reboots in 24 h of a node that is drained, empty, and asks for one. 0: never. More than "
        "three a day do not help (Oracle's limit).",
    )
    prolog: bool = Field(
        default=True, description="Check before each job; a failing node gets none. Kubernetes has no prolog."
    )
    epilog: bool = Field(default=True, description="Check after each job, which may have broken the node.")


class HealthRoleOptions(HealthOptions, ChecksNodeHealth, WritesUnitFiles):
    """Thresholds, checks to skip, and when nodes drain."""

    health_program: ClassVar[str] = places.PROGRAM

    act: bool = Field(
        default=False,
        description="Whether nodes act on their verdicts. false: they only observe, record what they would "
        "have drained (`rackwright health FILE --would`), and lift drains they made earlier. Start so, read "
        "the record for a week, then set true.",
    )
    drain: Draining = Draining()
    probe_seconds: float = Field(
        default=20,
        ge=5,
        le=30,
        description="How long a pass waits for the node's answers, nvidia-smi included; what has not been "
        "read by then is UNKNOWN. Slurm kills a health check after 60 s.",
    )
    timer_seconds: int = Field(
        default=300,
        ge=60,
        le=3600,
        description="Seconds between two passes where the node's own timer runs them: on nodes of Kubernetes. "
        "Slurm has its own interval (`slurm: {health_check: {interval_seconds: ...}}`).",
    )
    prolog_seconds: float = Field(
        default=5,
        ge=0.5,
        le=30,
        description="How long a prolog waits for what it reads without nvidia-smi.",
    )
    busy_query_hours: float = Field(
        default=4,
        ge=0,
        le=24,
        description="A query of the GPUs (nvidia-smi) is used again by prologs and beside running jobs for "
        "this long. Idle nodes are queried in each pass, and after each job.",
    )
    textfile_dir: NodePath = Field(
        default=places.TEXTFILES,
        description="node_exporter's textfile folder (Debian's own), where there is one. It may belong to the "
        f"exporter's user: root writes no file there, only a link to {places.METRICS}. An exporter in a container "
        f"needs {places.METRICS_FOLDER} mounted too.",
    )

    @property
    def policy(self) -> Policy:
        """Input of the node's program."""
        return Policy(
            act=self.act,
            clean_passes=self.drain.clean_passes,
            unknown=self.drain.unknown,
            unknown_passes=self.drain.unknown_passes,
            drain_percent=self.drain.percent,
            reboots_a_day=self.drain.reboots_a_day,
            probe_seconds=self.probe_seconds,
            prolog_seconds=self.prolog_seconds,
            busy_query_hours=self.busy_query_hours,
            textfile_dir=self.textfile_dir,
        )

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """The timer's, where the workload manager runs no health checks."""
        from rackwright.roles.health.texts import TIMER_FILES  # which needs these options

        return TIMER_FILES

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Nodes that run jobs and no health check."""
        for node in cluster.nodes:
            if runs_jobs(node) and "health" not in node.options:
                yield "", f"{node.name} runs jobs but no health check.", None
                return
