"""Options of the job_metrics role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pydantic import Field

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import ProvesUsers, WritesUnitFiles
from rackwright.model.monitoring import CollectsMetrics
from rackwright.model.options import RoleOptions
from rackwright.model.services import Certificate, IssuesCertificates, Listener, Listens, NeedsCertificates
from rackwright.model.strings import UserName
from rackwright.model.types import NodeRole, Workload
from rackwright.osfamily.names import names

FOLDER = "/etc/rackwright-job-metrics"
UNIT = "rackwright-job-metrics.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
SERVER = "/usr/lib/rackwright-job-metrics/server.py"
CLIENT = "/usr/local/bin/job-metrics"


class JobMetricsOptions(RoleOptions, Listens, NeedsCertificates, WritesUnitFiles):
    """The server beside Prometheus, and the program `job-metrics` where users are."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD, NodeRole.LOGIN, NodeRole.WORKER})
    workloads: ClassVar[frozenset[Workload]] = frozenset({Workload.SLURM})

    port: int = Field(default=9911, ge=1, le=65535, description="TCP port on the management address.")
    operators: tuple[UserName, ...] = Field(
        default=("root",), description="Users who see the metrics of every job."
    )
    days: int = Field(default=31, ge=1, le=366, description="How far back a job may lie.")

    def serves_on(self, node: Node) -> bool:
        """Whether the server runs there: beside Prometheus."""
        return node.offers(CollectsMetrics) is not None

    def certificates(self, cluster: Cluster, node: Node) -> tuple[Certificate, ...]:
        """The server's."""
        if not self.serves_on(node) or node.offers(IssuesCertificates) is None:
            return ()
        address = str(cluster.management_address(node))
        return (
            Certificate(
                name="job_metrics",
                key=f"{FOLDER}/tls.key",
                chain=f"{FOLDER}/tls.crt",
                names=tuple(dict.fromkeys((node.fqdn, node.name, address))),
                group=names(node.family, "prometheus").settings["user"],
                serves=(f"{address}:{self.port}",),
            ),
        )

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """The server, for the management network alone."""
        return (Listener("python3", (self.port, self.port)),) if self.serves_on(node) else ()

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """The server's unit."""
        return (UNIT_FILE,) if self.serves_on(node) else ()

    def server(self, cluster: Cluster) -> Node | None:
        """The node that users' programs ask: the first with a Prometheus."""
        return next((node for node in cluster.running("job_metrics") if self.serves_on(node)), None)

    def url(self, cluster: Cluster, server: Node) -> str:
        """Where the server answers."""
        scheme = "https" if server.offers(IssuesCertificates) is not None else "http"
        return f"{scheme}://{cluster.management_address(server)}:{self.port}"

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """No Prometheus; users whose identity nothing proves."""
        if self.server(cluster) is None:
            yield "", "No Prometheus is declared to hold job metrics.", "add the role `prometheus: {}`"
        for node in cluster.running("job_metrics", self):
            if node.offers(ProvesUsers) is None:
                yield "", f"{node.name} has no MUNGE, which authenticates users.", "add the role `munge: {}`"
                return
