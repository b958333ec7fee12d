"""Options of the slurm_exporter role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Self

from pydantic import Field, model_validator

from rackwright.exporters import ExporterOptions, Problem
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import RunsWorkloadManager
from rackwright.model.monitoring import SERVER_SECRET, Scrape
from rackwright.model.text import mistake
from rackwright.model.types import NodeRole, WorkloadManager

UNITS = "/etc/systemd/system"
COLLECTOR = "rackwright-slurm-collector.service"
_QUESTIONS = 3
"""In each collection, one after the other; those about new jobs and accounting come on top now and then."""


class SlurmExporterOptions(ExporterOptions):
    """Slurm metrics for Prometheus, from one head."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD})
    role: ClassVar[str] = "slurm_exporter"
    software: ClassVar[str] = "slurm_exporter"
    job: ClassVar[str] = "slurm"
    secrets: ClassVar[tuple[str, ...]] = (SERVER_SECRET,)
    password_secret: ClassVar[str] = SERVER_SECRET

    port: int = Field(default=9341, ge=1, le=65535, description="TCP port on the management address.")
    node: str | None = Field(
        default=None,
        description="Head that it runs on. None: the primary head. Any head can query slurmctld.",
    )
    interval_seconds: int = Field(
        default=30,
        ge=10,
        le=600,
        description="Between two collections; scrapes in between get the same metrics.",
    )
    timeout_seconds: int = Field(
        default=8,
        ge=1,
        le=120,
        description="Time limit of each query; at most a third of the interval.",
    )
    accounting_seconds: int = Field(
        default=300,
        ge=0,
        le=3600,
        description="How often accounting is queried: waiting times, ended jobs, energy. 0: never.",
    )
    max_jobs: int = Field(
        default=10_000,
        ge=0,
        le=100_000,
        description="Running jobs with their own series, those with GPUs first. All are counted.",
    )
    max_accounts: int = Field(
        default=5_000,
        ge=1,
        le=100_000,
        description="Number of account and user pairs with separate series; the rest is summed up.",
    )

    @model_validator(mode="after")
    def _answers_in_time(self) -> Self:
        if self.timeout_seconds * _QUESTIONS > self.interval_seconds:
            raise mistake(
                f"{_QUESTIONS} queries of {self.timeout_seconds} s take longer than the interval of "
                f"{self.interval_seconds} s.",
                f"timeout_seconds: {self.interval_seconds // _QUESTIONS}",
            )
        return self

    def runs_on(self, node: Node) -> bool:
        """On one head."""
        return node.primary if self.node is None else node.name == self.node

    def scrapes(self, cluster: Cluster, node: Node) -> tuple[Scrape, ...]:
        """Its series name the node they are about."""
        return (Scrape(self.job, self.port, names_nodes=True, password_secret=self.password_secret),)

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """Both units, and the server's command line."""
        return (f"{UNITS}/{self.unit(node)}", f"{UNITS}/{COLLECTOR}", *super().unit_files(node))

    def problems(self, cluster: Cluster) -> Iterable[Problem]:
        """An unknown head; a head without Slurm."""
        yield from super().problems(cluster)
        heads = [node.name for node in cluster.holding(NodeRole.HEAD)]
        if self.node is not None and self.node not in heads:
            yield "node", f"{self.node} is not a head of this cluster.", f"one of: {', '.join(heads)}"
        for node in cluster.running(self.role, self):
            manager = node.offers(RunsWorkloadManager)
            if manager is None or manager.workload_manager is not WorkloadManager.SLURM:
                yield (
                    "",
                    f"{node.name} does not run the role slurm, which slurm_exporter reads.",
                    "add `slurm: {}`",
                )
