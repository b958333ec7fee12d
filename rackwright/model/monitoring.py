"""Interfaces between monitoring and roles, found with `node.offers(Interface)`; see rackwright.model.services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node

PASSWORD_SECRET = "metrics_password"
SERVER_SECRET = "monitoring_password"
"""Secret for what runs only on heads: Prometheus, Alertmanager and their exporters. Root on a worker can read the password
with which Prometheus scrapes worker exporters, and must not be able to silence alerts, probe from a head or read job data.
"""
"""Secret with which Prometheus scrapes exporters; they store only its bcrypt hash."""
USER = "prometheus"
"""User name that Prometheus sends with that password."""


class Probe(NamedTuple):
    """Something that an exporter probes for Prometheus: a BMC, a switch, an address."""

    target: str
    """Value of the exporter's `target=` parameter, e.g. `10.0.0.21`."""
    labels: Mapping[str, str] = {}
    """Labels of its series, e.g. `node` for a node's BMC."""


class Scrape(NamedTuple):
    """Metrics of one job that a node serves."""

    job: str
    """Prometheus' `job` label, e.g. `node`; alerts refer to it (rackwright.alerts.rule.Alert.jobs)."""
    port: int
    path: str = "/metrics"
    interval_seconds: int | None = None
    """Scrape interval; None: Prometheus' default."""
    timeout_seconds: int | None = None
    parameters: Mapping[str, tuple[str, ...]] = {}
    """URL parameters, e.g. {"module": ("icmp",)}."""
    probes: tuple[Probe, ...] = ()
    """What the exporter probes, each a separate target."""
    names_nodes: bool = False
    """Whether its series already name their node: they then get no labels of the node that serves them."""
    password_secret: str = PASSWORD_SECRET
    """Name of the scrape secret."""
    certified: bool = True
    """Whether it has a certificate and requires the password wherever the site has a CA; False: plain HTTP."""


class ExposesMetrics:
    """Options of a role whose programs serve metrics."""

    def scrapes(self, cluster: Cluster, node: Node) -> tuple[Scrape, ...]:
        """What this node serves."""
        raise NotImplementedError


class CollectsMetrics:
    """Options of the role that runs Prometheus."""

    @property
    def shortened(self) -> bool:
        """Whether alerts fire after a shorter time than on a production site."""
        raise NotImplementedError

    plain_http: bool
    """Whether exporters may answer without certificates: metrics and the password then cross the network unencrypted."""
    interval_seconds: int
    """Scrape interval of targets without their own."""

    def metrics_url(self, cluster: Cluster, node: Node) -> str:
        """URL of Prometheus on a node that it runs on, e.g. `https://10.0.0.10:9090`."""
        raise NotImplementedError

    password_file: ClassVar[str]
    """File on that node, readable only by root, with the password of `USER`."""


class RoutesAlerts:
    """Options of the role that runs Alertmanager."""

    drill_port: int | None
    """Port on 127.0.0.1 of a webhook that receives every alert immediately, for drills; None: no webhook."""

    def alerts_address(self, cluster: Cluster, node: Node) -> str:
        """Host and port of Alertmanager on a node that it runs on."""
        raise NotImplementedError

    def silence_command(self, matchers: Sequence[str], minutes: int, comment: str) -> str:
        """A shell command for root on such a node: silences alerts that match all matchers, and prints the silence ID.

        matchers: in Alertmanager syntax, e.g. `node=~"gpu1|gpu2"`.
        """
        raise NotImplementedError

    def unsilence_command(self, silence: str) -> str:
        """A shell command for root on such a node: expires a silence, within minutes if it still suppresses alerts."""
        raise NotImplementedError
