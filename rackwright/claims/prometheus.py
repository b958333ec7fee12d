"""Checks that ask the Prometheus of the same node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from rackwright.boundary import printable
from rackwright.claims.check import CheckContext, Undetermined, fail
from rackwright.claims.web import json_answer
from rackwright.model.cluster import Node
from rackwright.model.monitoring import USER, CollectsMetrics
from rackwright.model.options import RoleOptions

_SHOWN = 8


def has_prometheus(node: Node) -> bool:
    """Whether Prometheus runs there."""
    return node.offers(CollectsMetrics) is not None


def answer(context: CheckContext[Any], path: str) -> Any:  # noqa: ANN401 - JSON
    """The `data` of an answer of Prometheus' HTTP API; raises Undetermined if there is none."""
    collector = context.node.offers(CollectsMetrics)
    if collector is None:
        raise Undetermined(f"{context.node.name} runs no Prometheus")
    url = f"{collector.metrics_url(context.cluster, context.node)}/api/v1/{path}"
    found = json_answer(context, USER, collector.password_file, url, "Prometheus")
    if not isinstance(found, dict) or found.get("status") != "success":
        raise Undetermined(f"Prometheus answers: {printable(str(found), 200)}")
    return found["data"]


def vector(context: CheckContext[Any], expression: str) -> list[tuple[dict[str, str], float]]:
    """Labels and value of each series that an expression has now."""
    data = answer(context, f"query?query={quote(expression)}")
    try:
        return [
            ({str(name): str(text) for name, text in one["metric"].items()}, float(one["value"][1]))
            for one in data["result"]
        ]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise Undetermined("Prometheus' answer to a query does not have the documented form") from error


def probes_answer(
    context: CheckContext[RoleOptions], job: str, answers: str, names: Mapping[str, str]
) -> str:
    """Every probe target of an exporter answers it; `names`: what each target is, for messages.

    answers: an expression that is 1 for each `instance` that answers. Undetermined while one was not asked yet.
    """
    asked = {labels.get("instance") for labels, _ in vector(context, f'up{{job="{job}"}}')}
    well = {labels.get("instance") for labels, value in vector(context, answers) if value == 1}
    silent = [f"{name} ({target})" for target, name in names.items() if target in asked - well]
    if silent:
        more = f" and {len(silent) - _SHOWN} more" if silent[_SHOWN:] else ""
        fail(f"no answer from {', '.join(silent[:_SHOWN])}{more}")
    if waiting := [target for target in names if target not in asked]:
        raise Undetermined(
            f"Prometheus has not scraped {len(waiting)} of {len(names)} yet, e.g. {names[waiting[0]]}"
        )
    return f"{len(names)} answer"
