"""Checks of the prometheus role."""

from __future__ import annotations

from rackwright.boundary import printable
from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, fail
from rackwright.claims.exporters import exporter_checks
from rackwright.claims.files import as_rendered
from rackwright.claims.prometheus import answer, vector
from rackwright.model.monitoring import RoutesAlerts
from rackwright.roles.prometheus import texts
from rackwright.roles.prometheus.options import PrometheusOptions
from rackwright.roles.prometheus.targets import jobs_of

_SHOWN = 8
_SELDOM_SECONDS = 60
"""Prometheus spreads first readings over the interval; the check waits longer than this one."""


def _files(context: CheckContext[PrometheusOptions]) -> str:
    cluster, node, options = context.cluster, context.node, context.options
    wanted = {
        texts.conf(node, options): texts.config_yml(cluster, node, options),
        **texts.rule_files(cluster, node, options),
        **texts.target_files(cluster, node, options),
    }
    as_rendered(context, wanted)
    return f"{len(wanted)} files"


def _loaded(context: CheckContext[PrometheusOptions]) -> str:
    found = vector(context, 'prometheus_config_last_reload_successful{job="prometheus"}')
    mine = [value for labels, value in found if labels.get("node") == context.node.name]
    if not mine:
        raise Undetermined("Prometheus has not scraped itself yet")
    if mine != [1]:
        fail("Prometheus rejected its settings at the last reload and still runs with the previous ones")
    return "its last reload succeeded"


def _targets(context: CheckContext[PrometheusOptions]) -> str:
    """Every declared target is known and answers. One that is read seldom is known once it was read."""
    wrong, waiting, count = [], 0, 0
    states = vector(context, "up")
    for job, served in jobs_of(context.cluster).items():
        up = {labels.get("instance"): value for labels, value in states if labels.get("job") == job}
        for node, scrape in served:
            names = [probe.target for probe in scrape.probes] or [f"{node.name}:{scrape.port}"]
            count += len(names)
            missing = [name for name in names if name not in up]
            if (scrape.interval_seconds or 0) > _SELDOM_SECONDS:
                waiting += len(missing)
            else:
                wrong += [f"{job} {name} is not a target" for name in missing]
            wrong += [f"{job} {name} does not answer" for name in names if up.get(name) == 0]
    if wrong:
        more = f" and {len(wrong) - _SHOWN} more" if wrong[_SHOWN:] else ""
        fail(f"{'; '.join(wrong[:_SHOWN])}{more}")
    if waiting:
        raise Warned(f"{waiting} of {count} targets with long intervals have not been scraped yet")
    return f"{count} targets answer"


def _rules(context: CheckContext[PrometheusOptions]) -> str:
    """Every rule is evaluated without an error, the watchdog among them."""
    groups = answer(context, "rules")
    try:
        rules = [rule for group in groups["groups"] for rule in group["rules"]]
        ill = [f"{rule['name']}: {rule.get('lastError', '')}" for rule in rules if rule["health"] == "err"]
        waiting = [rule["name"] for rule in rules if rule["health"] == "unknown"]
    except (KeyError, TypeError) as error:
        raise Undetermined("Prometheus' list of rules is not in the documented format") from error
    if ill:
        fail(f"{len(ill)} rules fail: {printable(ill[0], 200)}")
    if waiting:
        raise Undetermined(f"{len(waiting)} rules were not evaluated yet, e.g. {printable(waiting[0], 80)}")
    if not any(rule["name"] == "Watchdog" and rule.get("state") == "firing" for rule in rules):
        fail("the alert Watchdog, which always fires, does not fire")
    return f"{len(rules)} rules"


def _notifies(context: CheckContext[PrometheusOptions]) -> str:
    routers = [node.name for node in context.cluster.nodes if node.offers(RoutesAlerts) is not None]
    if not routers:
        raise Warned("no Alertmanager is declared: alerts are not sent")
    found = answer(context, "alertmanagers")
    active = found.get("activeAlertmanagers") if isinstance(found, dict) else None
    if not isinstance(active, list):
        raise Undetermined("Prometheus does not report its Alertmanagers")
    if len(active) < len(routers):
        fail(f"Prometheus knows {len(active)} of {len(routers)} Alertmanagers ({', '.join(routers)})")
    failed = vector(context, 'increase(prometheus_notifications_errors_total{job="prometheus"}[5m]) > 0')
    if failed:
        fail("Prometheus failed to send alerts to Alertmanager within the last 5 minutes")
    return f"alerts go to {', '.join(routers)}"


CHECKS = (
    *exporter_checks("Prometheus", texts.arguments),
    Check("Prometheus has its declared settings, targets and rules", _files),
    Check("Prometheus has loaded its settings", _loaded, live=True, settle_seconds=90),
    Check("Prometheus scrapes every declared target", _targets, live=True, settle_seconds=90),
    Check("every rule of Prometheus is evaluated", _rules, live=True, settle_seconds=90),
    Check("Prometheus sends alerts to Alertmanager", _notifies, live=True, settle_seconds=60),
)
