"""alertmanager.yml: receivers, routes, and which alert holds back which.

Keys: prometheus/alertmanager, docs/configuration.md and config/ at the tags v0.25.0 and v0.28.1 (read 2026-11-27).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from rackwright.alerts.rule import Severity
from rackwright.model.cluster import Cluster, Node
from rackwright.roles.alertmanager.notifiers import mail_server, receiver_config
from rackwright.roles.alertmanager.options import DRILL, NOWHERE, AlertmanagerOptions
from rackwright.roles.alertmanager.routes import MuteTime, Route, SeverityRoute
from rackwright.roles.alertmanager.texts import HEADER, notifications_file

_REPEAT_HOURS = 24.0
"""Of routes that set none, and of alerts without a severity."""
_EACH_ALONE = ["..."]

_WHY_DOWN = ("InletTemperatureHigh", "NodePoweredOff", "PsuFailed")
"""Other alerts of the BMC stay suppressed: a node that is off has fans at 0 rpm and voltages of 0."""
INHIBITIONS: tuple[dict[str, Any], ...] = (
    # other alerts follow from the node being down, except those with which its BMC gives the reason
    {
        "source_matchers": ['alertname="NodeDown"'],
        "target_matchers": [f'alertname!~"{"|".join(("NodeDown", *_WHY_DOWN))}"', 'node!=""'],
        "equal": ["cluster", "node"],
    },
    # not NodeDown: ports of nodes that do not answer are not counted, so the alert does not cover them
    {
        "source_matchers": ['alertname="LeafDown"'],
        "target_matchers": ['alertname=~"FabricPortDown|FabricPortsMissing"'],
        "equal": ["cluster", "leaf"],
    },
    # by name: critical alerts of PDUs and UPSes have a rack too, and do not mean that its nodes are down
    {
        "source_matchers": ['alertname="RackDown"'],
        "target_matchers": ['alertname="NodeDown"'],
        "equal": ["cluster", "rack"],
    },
    {
        "source_matchers": ['severity="critical"'],
        "target_matchers": ['severity="warning"'],
        "equal": ["cluster", "alertname", "node", "instance", "device", "gpu", "mountpoint"],
    },
)


def alertmanager_yml(cluster: Cluster, node: Node, options: AlertmanagerOptions) -> str:
    """Its settings; secrets are in files that they name."""
    receivers: list[dict[str, Any]] = [{"name": NOWHERE}]
    if options.drill_port is not None:
        hook = {"url": f"http://127.0.0.1:{options.drill_port}/", "send_resolved": True}
        receivers.append({"name": DRILL, "webhook_configs": [hook]})
    receivers += [
        {"name": name, **receiver_config(cluster, node, options, one)}
        for name, one in sorted(options.receivers.items())
    ]
    config: dict[str, Any] = {
        "global": mail_server(options),
        "templates": [notifications_file(options)],
        "route": _root(cluster, options),
        "receivers": receivers,
        "inhibit_rules": [dict(one) for one in INHIBITIONS],
        "time_intervals": [
            {"name": name, "time_intervals": [_interval(one) for one in times]}
            for name, times in sorted(options.mute_times.items())
        ],
    }
    plain = {key: value for key, value in config.items() if value}
    return HEADER + yaml.dump(plain, Dumper=_Plain, sort_keys=False, width=120)


class _Plain(yaml.SafeDumper):
    """Without anchors, which a reader would have to look up."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401 - any value can be dumped
        return True


def _root(cluster: Cluster, options: AlertmanagerOptions) -> dict[str, Any]:
    return {
        "receiver": NOWHERE,
        "group_by": list(group_by(cluster, options)),
        "group_wait": f"{options.group_wait_seconds}s",
        "group_interval": f"{options.group_interval_seconds}s",
        "repeat_interval": _hours(_REPEAT_HOURS),
        "routes": list(_routes(options)),
    }


def group_by(cluster: Cluster, options: AlertmanagerOptions) -> tuple[str, ...]:
    """A dead leaf is one notification, whichever racks its nodes are in."""
    if options.group_by is not None:
        return options.group_by
    racks: dict[str, set[str | None]] = {}
    for node in cluster.nodes:
        if node.switch is not None:
            racks.setdefault(node.switch, set()).add(node.rack)
    several = any(len(found) > 1 for found in racks.values())
    return ("alertname", "leaf") if several else ("alertname", "rack", "leaf")


def _routes(options: AlertmanagerOptions) -> Iterator[dict[str, Any]]:
    if options.drill_port is not None:
        at_once = {"group_wait": "0s", "group_interval": "1s", "repeat_interval": "1h"}
        yield {"receiver": DRILL, "group_by": _EACH_ALONE, **at_once, "continue": True}
    yield {
        "matchers": ['alertname="Watchdog"'],
        "receiver": options.watchdog or NOWHERE,
        "group_wait": "0s",
        "group_interval": "30s",  # how often it is looked at whether repeat_interval is over
        "repeat_interval": f"{options.watchdog_minutes}m",
    }
    for route in options.routes:
        yield _of_site(route)
    info = options.info
    yield _of_severity(options, [_matcher("severity", "=", Severity.INFO)], info)
    yield _of_severity(options, [_matcher("severity", "=", Severity.CRITICAL)], options.critical)
    yield _of_severity(options, [], options.warning)  # and alerts without a known severity


def _of_site(route: Route) -> dict[str, Any]:
    hours = _REPEAT_HOURS if route.repeat_hours is None else route.repeat_hours
    return {
        "matchers": [
            *(_matcher(label, "=", value) for label, value in sorted(route.match.items())),
            *(_matcher(label, "=~", value) for label, value in sorted(route.match_regex.items())),
        ],
        "receiver": route.receiver,
        "repeat_interval": _hours(hours),
        **({"mute_time_intervals": list(route.mute)} if route.mute else {}),
        **({"continue": True} if route.further else {}),
    }


def _of_severity(
    options: AlertmanagerOptions, matchers: list[str], route: SeverityRoute | None
) -> dict[str, Any]:
    return {
        **({"matchers": matchers} if matchers else {}),
        "receiver": options.receiver_of(route),
        **({"repeat_interval": _hours(route.repeat_hours)} if route is not None else {}),
        **({"mute_time_intervals": list(route.mute)} if route is not None and route.mute else {}),
    }


def _matcher(label: str, how: str, value: str) -> str:
    """As both of Alertmanager's parsers read it (docs/configuration.md, "Label matchers")."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{label}{how}"{escaped}"'


def _hours(hours: float) -> str:
    return f"{hours:g}h" if hours == int(hours) else f"{round(hours * 3600)}s"


def _interval(time: MuteTime) -> dict[str, Any]:
    found: dict[str, Any] = {
        "weekdays": list(time.weekdays),
        "days_of_month": list(time.days_of_month),
        "times": [{"start_time": one.start, "end_time": one.end} for one in time.times],
        "location": time.timezone,
    }
    return {key: value for key, value in found.items() if value}
