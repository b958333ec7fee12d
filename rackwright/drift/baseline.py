"""The questions to each node, and the digest of its answers when it was last in sync.

Kept in the cluster's state folder; `drift install` writes them to the nodes.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass

from rackwright.atomic_write import write_atomically
from rackwright.boundary import read_json
from rackwright.engine.run import plan
from rackwright.engine.session import Watcher
from rackwright.factcache.cache import ClassCache, version_key
from rackwright.factcache.host_classes import shards
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold
from rackwright.model.selection import pick
from rackwright.state_folder import state_folder

_ROUNDS = 2
"""The first may only discover the questions; the second then asks them all at once."""


@dataclass(frozen=True)
class Baseline:
    """Baseline of one node. `questions` is the content of its questions.json."""

    questions: str
    digest: str
    at: float
    """When it was first seen (seconds since the epoch): of several users' baselines, the newest wins."""


def take(
    cluster: Cluster, limit: str | None, watch: Watcher | None = None, *, asked_just_now: bool = False
) -> dict[str, Baseline]:
    """Store the answers of nodes that are in sync, and return all baselines, by node.

    A node that is not in sync now keeps its older baseline. `asked_just_now`: this process has just found the nodes in
    sync and does not plan them again.
    """
    names = [node.name for node in pick(cluster, limit)]
    if not asked_just_now:
        plan(cluster, limit=limit, watch=watch)
    learned = _learned(cluster)
    for _ in range(_ROUNDS):
        if missing := [name for name in names if name not in learned]:
            plan(cluster, limit=fold(missing), watch=watch)
            learned = _learned(cluster)
    for name in names:
        if name in learned:
            keep(cluster, name, learned[name])
    kept = ((name, kept_of(cluster, name)) for name in names)
    return {name: baseline for name, baseline in kept if baseline is not None}


def kept_of(cluster: Cluster, name: str) -> Baseline | None:
    """The baseline of a node; None if it was never seen in sync."""
    try:
        data = read_json((state_folder(cluster.name) / "drift" / f"{name}.json").read_bytes())
        found = Baseline(data["questions"], data["digest"], float(data["at"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found.questions, str) and isinstance(found.digest, str) else None


def keep(cluster: Cluster, name: str, baseline: Baseline) -> None:
    """Store a node's baseline, unless it is unchanged."""
    before = kept_of(cluster, name)
    if before is not None and (before.questions, before.digest) == (baseline.questions, baseline.digest):
        return
    folder = state_folder(cluster.name) / "drift"
    folder.mkdir(mode=0o700, exist_ok=True)
    write_atomically(folder / f"{name}.json", json.dumps(asdict(baseline)))


def _learned(cluster: Cluster) -> dict[str, Baseline]:
    """Baselines from the engine's fact cache, if it is valid for this cluster file."""
    key = version_key(cluster)
    found = {}
    for host_class in dict.fromkeys(name for name, _ in shards(cluster.nodes)):
        cache = ClassCache(state_folder(cluster.name) / "facts", host_class, key)
        for node in (node for name, nodes in shards(cluster.nodes) if name == host_class for node in nodes):
            known = cache.get(node.name)
            if known.digest is not None and known.questions:
                asked = {
                    "cluster": cluster.name,
                    "node": node.name,
                    "questions": known.questions,
                    "askers": cache.askers(node.name),
                }
                found[node.name] = Baseline(json.dumps(asked), known.digest, round(time.time(), 3))
    return found
