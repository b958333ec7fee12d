"""Options of the alertmanager role."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from shlex import quote
from typing import ClassVar, Self

from pydantic import Field, model_validator

from rackwright.alerts.rule import Severity
from rackwright.exporters import ExporterOptions, Problem
from rackwright.model.cluster import Cluster, Node
from rackwright.model.monitoring import SERVER_SECRET, CollectsMetrics, RoutesAlerts
from rackwright.model.services import Listener
from rackwright.model.strings import HttpUrl, LabelName, Slug
from rackwright.model.text import mistake
from rackwright.model.types import NodeRole
from rackwright.roles.alertmanager.receivers import Receiver, Smtp
from rackwright.roles.alertmanager.release import OLDEST, WEBHOOK_URL_FILE, lacks, text
from rackwright.roles.alertmanager.routes import MuteTime, Route, SeverityRoute
from rackwright.silences.amtool import AMTOOL

NOWHERE = "nowhere"
DRILL = "rackwright-drill"
OWN_RECEIVERS = (NOWHERE, DRILL)
_LINGER_MINUTES = 3
"""Two intervals of 30 s, for a scrape and for the rules, and as much again."""
_NO_NAME = "e.g. `ops`"


class AlertmanagerOptions(ExporterOptions, RoutesAlerts):
    """Alertmanager on the primary head, or on a pair of heads."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD})
    role: ClassVar[str] = "alertmanager"
    software: ClassVar[str] = "alertmanager"
    job: ClassVar[str] = "alertmanager"
    secrets: ClassVar[tuple[str, ...]] = (SERVER_SECRET,)
    password_secret: ClassVar[str] = SERVER_SECRET

    port: int = Field(default=9093, ge=1, le=65535, description="TCP port on the management address.")
    nodes: tuple[str, ...] = Field(
        default=(),
        max_length=2,
        description="One head, or two that send each alert once between them. Empty: the primary head.",
    )
    gossip_port: int = Field(
        default=9094,
        ge=1,
        le=65535,
        description="Port over which a pair shares notification state; unused by a single instance.",
    )
    smtp: Smtp | None = None
    receivers: dict[Slug, Receiver] = Field(
        default_factory=dict, description="Where notifications go, by name."
    )
    critical: SeverityRoute | None = Field(
        default=SeverityRoute(repeat_hours=4), description="Where critical alerts go. null: nowhere."
    )
    warning: SeverityRoute | None = Field(
        default=SeverityRoute(),
        description="Where warnings go, and alerts of the site's own rules with any other severity. null: nowhere.",
    )
    info: SeverityRoute | None = Field(
        default=None, description="Where alerts of severity info go. null: nowhere."
    )
    routes: tuple[Route, ...] = Field(
        default=(), description="Routes that take precedence over the severity; the first match counts."
    )
    watchdog: Slug | None = Field(
        default=None,
        description="Receiver of the alert Watchdog, which always fires: an external service that raises an alarm when it "
        "stops. None: nowhere.",
    )
    watchdog_minutes: int = Field(default=5, ge=1, le=1440, description="How often Watchdog is sent.")
    group_by: tuple[LabelName, ...] | None = Field(
        default=None,
        min_length=1,
        description="Alerts that have these labels in common are one notification. None: alertname and leaf, and rack "
        "where no leaf has nodes in several racks.",
    )
    group_wait_seconds: int = Field(
        default=30,
        ge=0,
        le=3600,
        description="How long to wait for more alerts of a group before its first notification.",
    )
    group_interval_seconds: int = Field(
        default=300,
        ge=1,
        le=86400,
        description="How long to wait before notifying of new alerts in a group that was already notified.",
    )
    mute_times: dict[Slug, tuple[MuteTime, ...]] = Field(
        default_factory=dict, description="Times, by name, in which routes that name them send nothing."
    )
    runbooks: HttpUrl | None = Field(
        default=None,
        description="What stands before the path of a runbook, e.g. `https://git.example.com/site/-/blob/main/`. "
        "None: the path alone.",
    )
    drill_port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="Every alert goes to a webhook on this port of 127.0.0.1 too, at once: for `rackwright drill`.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if len(set(self.nodes)) != len(self.nodes):
            raise mistake("Both nodes of the pair are the same.", "name two heads")
        if len(self.nodes) > 1 and self.gossip_port == self.port:
            raise mistake(
                "`port` and `gossip_port` are the same.", "leave `gossip_port` out: its default is 9094"
            )
        for name, receiver in self.receivers.items():
            if name in OWN_RECEIVERS:
                raise mistake(f"The receiver name {name} is reserved by rackwright.", _NO_NAME)
            if receiver.email and self.smtp is None:
                raise mistake(
                    f"The receiver {name} sends e-mail, and no mail server is declared.",
                    "e.g. `smtp: {server: 'mail.example.com:587', sender: rackwright@example.com}`",
                )
        for where, named in self._named_receivers():
            if named not in self.receivers:
                raise mistake(f"{where} names the receiver {named}, which is not declared.", self._known())
        for where, named in self._named_times():
            if named not in self.mute_times:
                known = ", ".join(self.mute_times) or "none is declared"
                raise mistake(f"{where} names the mute time {named}, which is not declared.", known)
        return self

    def _known(self) -> str:
        return f"one of: {', '.join(self.receivers)}" if self.receivers else "declare it in `receivers`"

    @property
    def severities(self) -> Mapping[Severity, SeverityRoute | None]:
        """Routes by severity, the most urgent first."""
        return {Severity.CRITICAL: self.critical, Severity.WARNING: self.warning, Severity.INFO: self.info}

    def receiver_of(self, route: SeverityRoute | None) -> str:
        """Name of the receiver of a severity's alerts."""
        if route is None:
            return NOWHERE
        return route.receiver or next(iter(self.receivers), NOWHERE)

    def _named_receivers(self) -> Iterator[tuple[str, str]]:
        for severity, route in self.severities.items():
            if route is not None and route.receiver is not None:
                yield f"`{severity}`", route.receiver
        for index, one in enumerate(self.routes):
            yield f"`routes[{index}]`", one.receiver
        if self.watchdog is not None:
            yield "`watchdog`", self.watchdog

    def _named_times(self) -> Iterator[tuple[str, str]]:
        for severity, route in self.severities.items():
            yield from ((f"`{severity}`", name) for name in (route.mute if route is not None else ()))
        for index, one in enumerate(self.routes):
            yield from ((f"`routes[{index}]`", name) for name in one.mute)

    @property
    def supplied_secrets(self) -> tuple[str, ...]:
        """Passwords, keys and URLs that the site puts into the store."""
        login = self.smtp.login if self.smtp is not None else None
        own = [login.stored_as] if login is not None else []
        return tuple(
            dict.fromkeys([*own, *(name for one in self.receivers.values() for name in one.secrets)])
        )

    def runs_on(self, node: Node) -> bool:
        """On the named heads."""
        return node.name in self.nodes if self.nodes else node.primary

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """Its port, and for a pair that of gossip; unencrypted gossip uses UDP too."""
        (own,) = super().listeners(node)
        if len(self.nodes) < 2:
            return (own,)
        gossip = Listener(own.program, (self.gossip_port, self.gossip_port))
        return (own, gossip) if self.secured(node) else (own, gossip, gossip._replace(protocol="udp"))

    def alerts_address(self, cluster: Cluster, node: Node) -> str:
        """Where Prometheus sends alerts."""
        return f"{cluster.management_address(node)}:{self.port}"

    def silence_command(self, matchers: Sequence[str], minutes: int, comment: str) -> str:
        """A shell command for root on such a node: silences alerts that match all of these, and prints the silence's ID."""
        words = (f"--duration={minutes}m", "--author=rackwright", f"--comment={comment}", *matchers)
        return f"{AMTOOL} silence add {' '.join(map(quote, words))}"

    def unsilence_command(self, silence: str) -> str:
        """A shell command for root on such a node: ends a silence, a little later where it holds alerts back.

        Prometheus sees only with its next scrape that a node is well again.
        """
        held = f"{AMTOOL} --output=json alert query --silenced | grep -qF {quote(silence)}"
        later = f'--end="$(date -u -d "{_LINGER_MINUTES} minutes" +%FT%TZ)"'
        update = f"{AMTOOL} silence update {later} {quote(silence)}"
        return f"if {held}; then {update}; else {AMTOOL} silence expire {quote(silence)}; fi"

    def problems(self, cluster: Cluster) -> Iterable[Problem]:
        """Nodes that are not heads, and what an OS release's Alertmanager lacks."""
        yield from super().problems(cluster)
        heads = [node.name for node in cluster.holding(NodeRole.HEAD)]
        for index, name in enumerate(self.nodes):
            if name not in heads:
                yield (
                    f"nodes[{index}]",
                    f"{name} is not a head of this cluster.",
                    f"one of: {', '.join(heads)}",
                )
        for node in cluster.running(self.role, self):
            version = text(node.os.alertmanager) if node.os.alertmanager is not None else ""
            if lacks(node.os, OLDEST):
                yield (
                    "",
                    f"{node.os} has Alertmanager {version}, which reads no passwords from files: {text(OLDEST)} does.",
                    f"run {node.name} on a newer release",
                )
                return
            if lacks(node.os, WEBHOOK_URL_FILE):
                yield from self._without_url_file(f"Alertmanager {version} of {node.os}")

    def _without_url_file(self, which: str) -> Iterator[Problem]:
        for name, receiver in self.receivers.items():
            for index, webhook in enumerate(receiver.webhook):
                if webhook.url_stored_as is not None:
                    yield (
                        f"receivers.{name}.webhook[{index}].url_stored_as",
                        f"{which} reads no webhook's URL from a file.",
                        "use `url`, with `login` or `bearer_stored_as`",
                    )

    def warnings(self, cluster: Cluster) -> Iterable[Problem]:
        """Alerts without a receiver, and passwords sent in the clear."""
        on_purpose = self.critical is None and self.warning is None
        if not self.receivers and not on_purpose:
            yield (
                "",
                "No receiver is declared: alerts go nowhere.",
                "e.g. `receivers: {ops: {email: [{to: [ops@example.com]}]}}`",
            )
        elif self.critical is None and not on_purpose:
            yield "critical", "Critical alerts go nowhere.", "leave out `critical`"
        if not any(node.offers(CollectsMetrics) for node in cluster.nodes):
            yield (
                "",
                "No Prometheus is declared to send alerts here.",
                "add the role `prometheus: {}`",
            )
        for name, receiver in self.receivers.items():
            for index, webhook in enumerate(receiver.webhook):
                if webhook.in_the_clear:
                    yield (
                        f"receivers.{name}.webhook[{index}]",
                        "The password of this webhook crosses the network in the clear.",
                        "use its https URL",
                    )
