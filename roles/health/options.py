"""Options of the health role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from rackwright.health.guard import places
from rackwright.health.guard.policy import Policy
from rackwright.health.options import HealthOptions
from rackwright.model.interfaces import ChecksNodeHealth
from rackwright.model.options import Frozen
from rackwright.workload.lookup import runs_jobs

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster


class Draining(Frozen):
    """When a node takes itself out of the scheduler, and when it comes back."""

    clean_passes: int = Field(
        default=3,
        ge=1,
        le=100,
        description="Passes of the health check in a row, with nothing failed and nothing unknown, after "
        "which a node is resumed that a health check has drained.",
    )
    unknown: Literal["drain", "keep"] = Field(
        default="drain",
        description="What is done about a node of which too little is known. Neither resumes it.",
    )
    unknown_passes: int = Field(
        default=3,
        ge=1,
        le=100,
        description="Passes in a row before UNKNOWN drains: one slow answer is no fault.",
    )
    percent: float = Field(
        default=10,
        gt=0,
        le=100,
        description="Most nodes of a partition that health checks may have drained, rounded down but at "
        "least one. Past it an alert is raised instead.",
    )
    reboots_a_day: int = Field(
        default=0,
        ge=0,
        le=3,
        description="Reboots in 24 h of a node that is drained, empty, and asks for one. 0: never. More than "
        "three in a day help nobody (Oracle's limit).",
    )
    prolog: bool = Field(default=True, description="Look before each job; a failing node gets none.")
    epilog: bool = Field(default=True, description="Look after each job, which may have broken the node.")


class HealthRoleOptions(HealthOptions, ChecksNodeHealth):
    """What a node's declaration does not say, thresholds, checks to leave out, and when nodes drain."""

    health_program: ClassVar[str] = places.PROGRAM

    drain: Draining = Draining()
    fast_seconds: float = Field(
        default=0.9,
        ge=0.2,
        le=30,
        description="The probe's fast part is given this long; what it has not read by then is UNKNOWN.",
    )
    textfile_dir: str = Field(
        default=places.TEXTFILES,
        pattern=r"^(/[A-Za-z0-9._-]+)+$",
        description="node_exporter's textfile folder, used where there is one (Debian's own).",
    )

    @property
    def policy(self) -> Policy:
        """What the node's program reads."""
        return Policy(
            clean_passes=self.drain.clean_passes,
            unknown=self.drain.unknown,
            unknown_passes=self.drain.unknown_passes,
            drain_percent=self.drain.percent,
            reboots_a_day=self.drain.reboots_a_day,
            fast_seconds=self.fast_seconds,
            textfile_dir=self.textfile_dir,
        )

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Nodes that run jobs and no health check."""
        for node in cluster.nodes:
            if runs_jobs(node) and "health" not in node.options:
                yield "", f"{node.name} runs jobs but no health check.", None
                return
