"""Options of the load_balancer role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from rackwright.model.interfaces import WritesUnitFiles
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.ranges import RangeMistake, expand
from rackwright.model.services import (
    Certificate,
    IssuesCertificates,
    Listener,
    Listens,
    NeedsCertificates,
)
from rackwright.model.strings import Slug
from rackwright.model.types import NetworkPurpose, NodeRole, Workload

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node

FOLDER = "/etc/haproxy/rackwright"
UNIT = "rackwright-load-balancer.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
HttpPath = Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9._~/-]{0,200}$")]


class Service(Frozen):
    """One port of the heads, and where its connections go."""

    port: int = Field(ge=1, le=65535, description="On the heads.")
    node_port: int = Field(
        ge=1, le=65535, description="On the nodes: a NodePort of Kubernetes, or the port of Ray Serve."
    )
    nodes: str | None = Field(
        default=None, description="NodeSet of the nodes. None: workers of `workload`, or all workers."
    )
    workload: Workload | None = Field(default=None, description="Workers of this workload, without `nodes`.")
    health: HttpPath = Field(
        default="/", description="A node gets connections while this path answers with 2xx or 3xx."
    )
    networks: frozenset[NetworkPurpose] = Field(
        default=frozenset({NetworkPurpose.EXTERNAL}), description="Purposes of the networks that may connect."
    )
    tls: bool = Field(default=True, description="HTTPS, with a certificate of the site's CA.")
    balance: Literal["leastconn", "roundrobin", "source"] = "leastconn"
    retries: int = Field(
        default=3, ge=0, le=10, description="Other nodes that an unanswered request is sent to."
    )
    timeout_seconds: int = Field(default=300, ge=1, le=86400, description="For an answer of a node.")


class LoadBalancerOptions(Listens, NeedsCertificates, WritesUnitFiles, RoleOptions):
    """haproxy for services of the cluster, with health checks of their nodes."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD})

    services: dict[Slug, Service] = Field(min_length=1, description="By name.")
    connections_max: int = Field(default=20_000, ge=10, le=1_000_000)

    @property
    def uses_tls(self) -> bool:
        """Whether some service has a certificate."""
        return any(one.tls for one in self.services.values())

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Services without nodes, ports that are taken twice, TLS without a CA."""
        ports: dict[int, str] = {}
        for name, one in self.services.items():
            first = ports.setdefault(one.port, name)
            if first != name:
                yield f"services.{name}.port", f"{first} has port {one.port} already.", None
            yield from self._node_problems(cluster, name, one)
        if self.uses_tls and cluster.primary.offers(IssuesCertificates) is None:
            yield (
                "services",
                "HTTPS needs a certificate, and no role issues one.",
                "add `site_ca: {}` under `roles`, or `tls: false`",
            )

    def _node_problems(
        self, cluster: Cluster, name: str, one: Service
    ) -> Iterable[tuple[str, str, str | None]]:
        try:
            unknown = [
                node
                for node in (expand(one.nodes) if one.nodes is not None else ())
                if node not in cluster.by_name
            ]
        except RangeMistake as error:
            yield f"services.{name}.nodes", error.message, error.hint
            return
        if unknown:
            yield f"services.{name}.nodes", f"{unknown[0]} is not a node of the cluster.", None
        elif not self.targets(cluster, name):
            yield f"services.{name}", "No worker runs this service.", "name its `nodes`"

    def targets(self, cluster: Cluster, name: str) -> tuple[Node, ...]:
        """Nodes of a service, in file order."""
        one = self.services[name]
        if one.nodes is not None:
            named = set(expand(one.nodes))
            return tuple(node for node in cluster.nodes if node.name in named)
        workers = cluster.holding(NodeRole.WORKER)
        return tuple(node for node in workers if one.workload is None or node.workload is one.workload)

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """One port for each service."""
        return tuple(
            Listener("haproxy", (one.port, one.port), purposes=one.networks) for one in self.services.values()
        )

    def certificates(self, cluster: Cluster, node: Node) -> tuple[Certificate, ...]:
        """One for all services, under every name and address of the head."""
        if not self.uses_tls:
            return ()
        addresses = [str(entry.address) for entry in node.addresses]
        return (
            Certificate(
                name="load-balancer",
                key=f"{FOLDER}/services.pem.key",
                chain=f"{FOLDER}/services.pem",
                names=tuple(dict.fromkeys((node.fqdn, node.name, *addresses))),
                serves=tuple(f"{addresses[0]}:{one.port}" for one in self.services.values() if one.tls),
            ),
        )

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """The unit."""
        return (UNIT_FILE,)
