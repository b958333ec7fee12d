"""Options of the prometheus role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from rackwright.alerts.catalogue import mistakes
from rackwright.alerts.overrides import Override
from rackwright.exporters import FOLDER, ExporterOptions, Problem
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import ReservesMemory
from rackwright.model.monitoring import PASSWORD_SECRET, SERVER_SECRET, CollectsMetrics, RoutesAlerts
from rackwright.model.options import Frozen
from rackwright.model.strings import HostPort, HttpUrl, LabelName, NodePath, SecretName, Slug
from rackwright.model.text import mistake
from rackwright.model.types import NodeRole

LabelValue = Annotated[str, StringConstraints(min_length=1, max_length=200)]
OWN_LABELS = frozenset({"instance", "job", "leaf", "node", "rack", "role", "sku"})
"""Labels that targets have from the cluster file."""
_MIB_PER_TARGET = 6
"""Resident memory for one node with its exporters, generously: docs/prometheus.md has what was measured."""


class Login(Frozen):
    """A login at another server."""

    user: str = Field(min_length=1, max_length=128)
    stored_as: SecretName = Field(description="Name of the password in the secrets store.")


class RemoteWrite(Frozen):
    """Where every sample is sent to as well: the store of many sites, e.g. Mimir, Thanos or VictoriaMetrics."""

    url: HttpUrl
    login: Login | None = None
    keep: str | None = Field(
        default=None,
        max_length=500,
        description="Regular expression of the names of series that are sent. None: all.",
    )


class Federation(Frozen):
    """Another site's Prometheus, whose recorded series this one collects; their names begin with `site:` here."""

    target: HostPort = Field(description="host:port.")
    site: Slug = Field(description="Label `site` of what comes from there.")
    login: Login | None = None
    plain_http: bool = False
    match: tuple[str, ...] = Field(
        default=('{__name__=~".+:.+"}', "ALERTS", "up"),
        min_length=1,
        description="Selectors of what is collected; by default recorded series, alerts, and what is up.",
    )


class ExtraJob(Frozen):
    """A service of the site that exposes metrics."""

    targets: tuple[HostPort, ...] = Field(min_length=1)
    path: str = Field(default="/metrics", pattern=r"^/[A-Za-z0-9._~/-]*$")
    scheme: Literal["http", "https"] = "https"
    labels: dict[LabelName, LabelValue] = Field(default_factory=dict)
    login: Login | None = None


class PrometheusOptions(ExporterOptions, CollectsMetrics, ReservesMemory):
    """Prometheus on the primary head, or on a pair of heads."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD})
    role: ClassVar[str] = "prometheus"
    software: ClassVar[str] = "prometheus"
    job: ClassVar[str] = "prometheus"
    secrets: ClassVar[tuple[str, ...]] = (PASSWORD_SECRET, SERVER_SECRET)
    password_secret: ClassVar[str] = SERVER_SECRET
    password_file: ClassVar[str] = f"{FOLDER}/prometheus/password"

    port: int = Field(default=9090, ge=1, le=65535, description="TCP port on the management address.")
    nodes: tuple[str, ...] = Field(
        default=(),
        max_length=2,
        description="One head, or two that collect the same. Empty: the primary head.",
    )
    plain_http: bool = Field(
        default=False,
        description="Metrics and their password cross the network in the clear. Not needed with the role site_ca.",
    )
    interval_seconds: int = Field(default=30, ge=1, le=120, description="Between two scrapes of a target.")
    retention_days: int = Field(default=31, ge=1, le=3650, description="How long samples are kept.")
    retention_gb: int = Field(
        default=100, ge=1, le=100000, description="GB (10^9 bytes) of samples at most; the oldest go first."
    )
    samples: NodePath = Field(default="/var/lib/prometheus/metrics2", description="Where samples are kept.")
    labels: dict[LabelName, LabelValue] = Field(
        default_factory=dict,
        description="Labels of everything that leaves this Prometheus, besides `cluster`, e.g. `site`.",
    )
    alerts: dict[str, Override] = Field(
        default_factory=dict, description="Changes to alerts by name; docs/alerts.md lists them."
    )
    carbon_grams_per_kwh: float | None = Field(
        default=None,
        gt=0,
        le=2000,
        description="Grams of CO2 equivalent per kWh of the site's power. None: energy is reported without it.",
    )
    remote_write: tuple[RemoteWrite, ...] = ()
    federate: tuple[Federation, ...] = ()
    extra_jobs: dict[Slug, ExtraJob] = Field(
        default_factory=dict, description="Scrape jobs of the site's own, by name."
    )
    hold_factor: float = Field(
        default=1,
        gt=0,
        le=1,
        description="Shortens how long a fault lasts before its alert fires, and the ranges that rules look back. For "
        "`rackwright drill alerts`, where 1 would take hours.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if len(set(self.nodes)) != len(self.nodes):
            raise mistake("Both nodes of the pair are the same.", "name two heads")
        if own := sorted(OWN_LABELS & self.labels.keys() | {"cluster"} & self.labels.keys()):
            raise mistake(f"rackwright sets the label {own[0]} itself.", "choose another name, e.g. `site`")
        sites = [one.site for one in self.federate]
        if len(set(sites)) != len(sites):
            raise mistake("Two federated servers have the same `site`.", "name each site once")
        for sentence, hint in mistakes(self.alerts):
            raise mistake(sentence, hint)
        return self

    @property
    def supplied_secrets(self) -> tuple[str, ...]:
        """Passwords of the logins."""
        return tuple(dict.fromkeys(login.stored_as for login in self.logins))

    @property
    def logins(self) -> tuple[Login, ...]:
        """Those at other servers."""
        found = [
            *(one.login for one in self.remote_write),
            *(one.login for one in self.federate),
            *(one.login for one in self.extra_jobs.values()),
        ]
        return tuple(login for login in found if login is not None)

    @property
    def shortened(self) -> bool:
        """For drills."""
        return self.hold_factor < 1

    def runs_on(self, node: Node) -> bool:
        """On the named heads."""
        return node.name in self.nodes if self.nodes else node.primary

    def reserved_mib(self, node: Node) -> int:
        """Cannot know the cluster: what a thousand nodes need."""
        return 1000 * _MIB_PER_TARGET

    def metrics_url(self, cluster: Cluster, node: Node) -> str:
        """Where it answers."""
        return self.url(cluster, node)

    def problems(self, cluster: Cluster) -> Iterable[Problem]:
        """Nodes that are not heads; jobs that rackwright has itself."""
        yield from super().problems(cluster)
        heads = [node.name for node in cluster.holding(NodeRole.HEAD)]
        for index, name in enumerate(self.nodes):
            if name not in heads:
                yield (
                    f"nodes[{index}]",
                    f"{name} is not a head of this cluster.",
                    f"one of: {', '.join(heads)}",
                )
        from rackwright.roles.prometheus.targets import jobs_of

        for name in sorted(self.extra_jobs.keys() & jobs_of(cluster).keys()):
            yield (
                f"extra_jobs.{name}",
                f"The job name {name} is reserved by rackwright.",
                "choose another name",
            )

    def warnings(self, cluster: Cluster) -> Iterable[Problem]:
        """Alerts that go nowhere; a password in the clear although there is a CA."""
        if not any(node.offers(RoutesAlerts) for node in cluster.nodes):
            yield (
                "",
                "No Alertmanager is declared: alerts are evaluated but not sent.",
                "add the role alertmanager",
            )
        for index, one in enumerate(self.remote_write):
            if one.login is not None and one.url.startswith("http://"):
                yield (
                    f"remote_write[{index}]",
                    f"The password of {one.login.user} crosses the network in the clear.",
                    "use its https URL",
                )
