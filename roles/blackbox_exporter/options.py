"""Options of the blackbox_exporter role."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from rackwright.exporters import ExporterOptions
from rackwright.model.cluster import Cluster, Node
from rackwright.model.monitoring import SERVER_SECRET, Scrape
from rackwright.model.strings import Slug
from rackwright.model.types import NodeRole
from rackwright.roles.blackbox_exporter.extra import Extra
from rackwright.roles.blackbox_exporter.probes import probes_of

PROBE_PATH = "/probe"


class BlackboxExporterOptions(ExporterOptions):
    """blackbox_exporter on the primary head."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD})
    role: ClassVar[str] = "blackbox_exporter"
    software: ClassVar[str] = "blackbox_exporter"
    job: ClassVar[str] = "blackbox"
    secrets: ClassVar[tuple[str, ...]] = (SERVER_SECRET,)
    password_secret: ClassVar[str] = SERVER_SECRET

    port: int = Field(default=9115, ge=1, le=65535, description="TCP port on the management address.")
    certificate_seconds: int = Field(
        default=120,
        ge=10,
        le=240,
        description="Seconds between two checks of a certificate. At most 240: after 300 without a sample Prometheus "
        "forgets a series.",
    )
    ssh_seconds: int = Field(
        default=60,
        ge=10,
        le=240,
        description="Seconds between two connections to a node's sshd, each of which is logged in its journal.",
    )
    extra: dict[Slug, Extra] = Field(
        default_factory=dict, description="Additional probes of the site, by the name in the label `service`."
    )

    def runs_on(self, node: Node) -> bool:
        """On the primary head."""
        return node.primary

    def service(self, node: Node) -> tuple[str, ...]:
        """Ping needs CAP_NET_RAW, and it needs nothing else."""
        return (
            "AmbientCapabilities=CAP_NET_RAW",
            "CapabilityBoundingSet=CAP_NET_RAW",
            "NoNewPrivileges=yes",
            "PrivateTmp=yes",
            "ProtectHome=yes",
            "ProtectSystem=strict",
        )

    def scrapes(self, cluster: Cluster, node: Node) -> tuple[Scrape, ...]:
        """The exporter's own target, then one for each module."""
        seconds = {"ssh": self.ssh_seconds, "tls": self.certificate_seconds}
        return (
            Scrape(self.job, self.port, password_secret=self.password_secret),
            *(
                Scrape(
                    self.job,
                    self.port,
                    password_secret=self.password_secret,
                    path=PROBE_PATH,
                    interval_seconds=seconds.get(module),
                    parameters={"module": (module,)},
                    probes=probes,
                )
                for module, probes in probes_of(cluster, node, self.extra).items()
            ),
        )
