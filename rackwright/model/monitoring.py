"""What monitoring needs of roles and they of it, found with `node.offers(Interface)`, as in rackwright.model.services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node

PASSWORD_SECRET = "metrics_password"
SERVER_SECRET = "monitoring_password"
"""Opens what runs on heads alone: Prometheus, Alertmanager, and exporters there. Root on a worker can catch the password with
which Prometheus reads the worker's exporters, and must not be able to silence alerts, probe from a head or read jobs with it.
"""
"""With it Prometheus reads exporters; they keep its bcrypt hash alone."""
USER = "prometheus"
"""The name that Prometheus gives exporters with that password."""


class Probe(NamedTuple):
    """Something that an exporter asks for Prometheus: a BMC, a switch, an address."""

    target: str
    """As the exporter takes it in `target=`, e.g. `10.0.0.21`."""
    labels: Mapping[str, str] = {}
    """Labels of its series, e.g. `node` where it is a node's BMC."""


class Scrape(NamedTuple):
    """Metrics of one job that a node serves."""

    job: str
    """Prometheus' `job`, e.g. `node`; also what alerts name (rackwright.alerts.rule.Alert.jobs)."""
    port: int
    path: str = "/metrics"
    interval_seconds: int | None = None
    """None: Prometheus' own."""
    timeout_seconds: int | None = None
    parameters: Mapping[str, tuple[str, ...]] = {}
    """Of the URL, e.g. {"module": ("icmp",)}."""
    probes: tuple[Probe, ...] = ()
    """Where the exporter asks others: what it asks, each a separate target."""
    names_nodes: bool = False
    """Whether its series say themselves which node they are about: they then get no labels of the node that serves them."""
    password_secret: str = PASSWORD_SECRET
    """The secret with which it is read."""
    certified: bool = True
    """Whether it has a certificate and asks for the password wherever the site has a CA; False: plain HTTP."""


class ExposesMetrics:
    """Options of a role whose programs serve metrics."""

    def scrapes(self, cluster: Cluster, node: Node) -> tuple[Scrape, ...]:
        """What this node serves."""
        raise NotImplementedError


class CollectsMetrics:
    """Options of the role that runs Prometheus."""

    @property
    def shortened(self) -> bool:
        """Whether faults last less long than on a site before their alerts fire."""
        raise NotImplementedError

    plain_http: bool
    """Whether exporters without certificates may answer: metrics and the password cross the network in the clear."""
    interval_seconds: int
    """Between two scrapes of a target without its own interval."""

    def metrics_url(self, cluster: Cluster, node: Node) -> str:
        """Where Prometheus answers on a node that it runs on, e.g. `https://10.0.0.10:9090`."""
        raise NotImplementedError

    password_file: ClassVar[str]
    """File on that node, for root alone, with the password of `USER` there."""


class RoutesAlerts:
    """Options of the role that runs Alertmanager."""

    drill_port: int | None
    """Port on 127.0.0.1 of a webhook to which every alert goes at once, for drills; None: there is none."""

    def alerts_address(self, cluster: Cluster, node: Node) -> str:
        """Host and port of Alertmanager on a node that it runs on."""
        raise NotImplementedError

    def silence_command(self, matchers: Sequence[str], minutes: int, comment: str) -> str:
        """A shell command for root on such a node: silences alerts that match all of these, and prints the silence's ID.

        matchers: as Alertmanager writes them, e.g. `node=~"gpu1|gpu2"`.
        """
        raise NotImplementedError

    def unsilence_command(self, silence: str) -> str:
        """A shell command for root on such a node: ends a silence, within minutes where it still holds alerts back."""
        raise NotImplementedError
