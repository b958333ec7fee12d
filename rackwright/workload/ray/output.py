"""What nodes.py of the role ray prints on the head. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rackwright.boundary import Refused, printable, read_json
from rackwright.workload.protocol import Job
from rackwright.workload.states import HEALTH_PREFIX, ROLLOUT_PREFIX, DrainedBy, NoAnswer, NodeState

JOBS_MAX = 10_000
_SHOWN = 120


@dataclass(frozen=True)
class Listed:
    """Ray's version, its nodes and what runs on them."""

    version: str
    states: Mapping[str, NodeState]
    jobs: Mapping[str, tuple[Job, ...]]
    """Tasks and actors by node, without nodes that run none; empty if they were not asked for."""


def parse_listed(text: str) -> Listed:
    """The last line of the output; NoAnswer if it is in another form."""
    lines = text.strip().splitlines()
    try:
        found = read_json(lines[-1] if lines else "")
        nodes = {_text(name): node for name, node in found["nodes"].items() if node["head"] is False}
        drains = {_text(name): drain for name, drain in found["drains"].items()}
        states = {name: _state(node, drains.get(name)) for name, node in nodes.items()}
        by_id = {node["id"]: name for name, node in nodes.items()}
        jobs: dict[str, tuple[Job, ...]] = {}
        for node_id, work in (found["work"] or {}).items():
            if node_id in by_id and work:
                jobs[by_id[node_id]] = tuple(_job(*one) for one in work[:JOBS_MAX])
        return Listed(_text(found["version"]), states, jobs)
    except (Refused, AttributeError, KeyError, TypeError, ValueError) as error:
        raise NoAnswer(f"Ray's list of nodes cannot be read: {printable(str(error), 100)}") from None


def _text(value: Any) -> str:  # noqa: ANN401 - JSON
    if not isinstance(value, str):
        raise TypeError("a name is not a text")
    return printable(value, _SHOWN)


def _job(kind: str, identifier: str, job: str, name: str) -> Job:
    return Job(_text(identifier), f"job {_text(job)}", f"{_text(kind)} {_text(name)}")


def _state(node: Mapping[str, Any], drain: Mapping[str, Any] | None) -> NodeState:
    word = _text(node["state"])
    alive = node["alive"] is True
    by_ray = alive and word == "DRAINING" and drain is None
    drained = drain is not None or by_ray
    words = frozenset({word, *(["DRAINED"] if drain is not None else [])})
    reason, by = "", ""
    if drain is not None:
        reason, by = _text(drain["reason"]), _text(drain["by"])
    elif by_ray:
        reason = "drained through Ray itself"
    elif not alive:
        first, _, _ = str(node["reason"]).partition("\n")
        reason = _text(first) or "its raylet is not connected"
    return NodeState(
        text="+".join(sorted(words, reverse=True)),
        words=words,
        drained=drained,
        down=not alive and not drained,
        busy=alive and word in ("ACTIVE", "DRAINING"),
        ready=alive and not drained and word == "IDLE",
        reason=reason,
        by=by,
        drained_by=_drained_by(reason, by_ray=by_ray) if drained else (None if alive else DrainedBy.MANAGER),
    )


def _drained_by(reason: str, *, by_ray: bool) -> DrainedBy:
    if by_ray:
        return DrainedBy.MANAGER
    if reason.startswith(ROLLOUT_PREFIX):
        return DrainedBy.ROLLOUT
    return DrainedBy.HEALTH if reason.startswith(HEALTH_PREFIX) else DrainedBy.PERSON
