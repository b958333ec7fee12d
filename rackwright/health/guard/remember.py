"""What a pass saves for later passes and for operators; the guard itself saves the memory."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from rackwright.health.document import Document
from rackwright.health.guard import places
from rackwright.health.guard.found import Found, Outcome
from rackwright.health.guard.look import Kept, Looked
from rackwright.health.guard.memory import Memory, Policy
from rackwright.health.guard.metrics import metrics
from rackwright.health.guard.node_files import NodeFiles, log
from rackwright.health.guard.policy import Decision, against
from rackwright.health.guard.would import Would, recorded
from rackwright.health.history import counters_of, updated


def observed(files: NodeFiles) -> Would | None:
    """The record of what would have been done."""
    try:
        return Would.from_json(files.mapping(places.WOULD))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def observe(files: NodeFiles, policy: Policy, found: Found, memory: Memory, at: float) -> Would:
    """The record after another pass; the first pass of an episode is logged."""
    before, bad = observed(files), against(policy, memory, found)
    recovered = found.outcome is Outcome.CLEAN and memory.clean >= policy.clean_passes
    would = recorded(before, policy.act, bad, recovered, round(at, 3))
    if would.current is not None and (before is None or before.current is None):
        log(f"would drain (health.act is false): {would.current.reason}")
    files.keep(places.WOULD, json.dumps(would.to_json()))
    return would


def keep_readings(files: NodeFiles, mode: str, looked: Looked, kept: Kept | None) -> None:
    """Save the GPU query and the error counters that later passes compare with."""
    if looked.queried and kept is not None:
        files.keep(places.GPUS, json.dumps(kept.to_json()))
    if mode != "prolog" and looked.document:
        document = Document(looked.read_now)
        before = document.snapshots
        after = updated(before, counters_of(document), looked.document["taken_at"])
        if after != before:
            files.keep(places.COUNTERS, json.dumps(after))


def keep_verdict(
    files: NodeFiles, policy: Policy, looked: Looked, found: Found, decision: Decision, more: dict[str, Any]
) -> None:
    """Save the last verdict, the action and its reason, and the metrics."""
    last = {
        "version": 1,
        "outcome": found.outcome.value,
        "action": found.action.value,
        "step": decision.action.value,
        "why": decision.why,
        "reason": found.reason if found.outcome is not Outcome.CLEAN else "",
        "memory": decision.memory.to_json(),
        "policy": asdict(policy),
        "gpus": {"at": looked.gpus_at, "queried_now": looked.queried},
        "results": [one.to_json() for one in looked.results],
        **more,
    }
    files.keep(places.LAST, json.dumps(last))
    files.keep(places.METRICS, metrics(last), mode=0o644)
    if policy.textfile_dir:
        files.link(policy.textfile_dir, places.METRICS)
