"""What each role changes on a node: its share of the plans of the example clusters' nodes, taken without a node."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rackwright.clusterfile.load import load_cluster
from rackwright.data import Site
from rackwright.engine.reports import Reports
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import RunsKubernetes
from rackwright.pyinfra_driver.driver import Driver
from rackwright.pyinfra_driver.offline import EmptyNode

_DEPLOY = Path(__file__).resolve().parents[2] / "deploys" / "site.py"
_DIGEST = re.compile(r"/[0-9a-f]{12,64}(?=/)")
_MIRROR = {
    "archive": {"url": "http://10.0.0.1", "key_url": "http://10.0.0.1/key.asc", "fingerprint": "0" * 40},
    "revision": "1",
    "registry": "rack.lab",
}
KINDS = {"file": "Files", "unit": "Units", "package": "Packages", "user": "Users", "group": "Groups", "sysctl": "Kernel values"}  # fmt: skip


@dataclass
class Effects:
    """Targets of one role by kind of change, and the example clusters in which it has any."""

    targets: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    examples: set[str] = field(default_factory=set)


def effects(folder: Path) -> Mapping[str, Effects]:
    """By role, from one node of each group of the cluster files in a folder.

    Raises RackwrightError when a cluster file is wrong or a role cannot be evaluated.
    """
    found: dict[str, Effects] = defaultdict(Effects)
    with tempfile.TemporaryDirectory() as made:
        copy = Path(made, "inventory")
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(".*"))
        for path in sorted(copy.glob("*.yaml")):
            if path.name.endswith(".lock.yaml"):
                continue
            cluster = load_cluster(path)
            _mirror_lists(cluster)
            for node in _one_of_each_kind(cluster):
                for role, kind, target in _changes(cluster, node):
                    found[role].targets[kind].add(target)
                    found[role].examples.add(path.name)
    return found


def _mirror_lists(cluster: Cluster) -> None:
    """What `rackwright lab up` writes once a rack serves its packages; no rack is up here."""
    for role in filter(None, (node.offers(RunsKubernetes) for node in cluster.nodes)):
        if role.mirror is not None:
            target = cluster.path.parent / role.mirror
            target.parent.mkdir(exist_ok=True)
            target.write_text(json.dumps(_MIRROR))


def _one_of_each_kind(cluster: Cluster) -> list[Node]:
    kinds = {(frozenset(node.options), node.sku.name, node.os.id, node.roles): node for node in cluster.nodes}
    return list(kinds.values())


def _changes(cluster: Cluster, node: Node) -> Iterable[tuple[str, str, str]]:
    reports = Reports()
    Driver([Site(cluster, node, offline=True)], _DEPLOY, reports, connector=EmptyNode).plan()
    plan = reports.plans[node.name]
    if plan.error is not None:
        raise RackwrightError(f"{node.name} of {cluster.name} cannot be rendered: {plan.error}")
    for operation in plan.operations:
        for change in operation.changes:
            if change.kind in KINDS and change.after is not None:
                yield operation.role, str(change.kind), change.target


def listed(targets: Iterable[str], most: int = 12) -> list[str]:
    """Targets in order; files of one folder that are more than `most`, or named by a digest, become that folder."""
    by_folder: dict[str, list[str]] = defaultdict(list)
    for target in sorted(targets):
        digest = _DIGEST.search(target)
        folder = target[: digest.start()] + "/DIGEST" if digest else target.rpartition("/")[0]
        by_folder[folder].append(target)
    shown: list[str] = []
    for folder, names in by_folder.items():
        whole = folder.endswith("/DIGEST") or (folder and len(names) > most)
        shown += [f"{folder}/ ({len(names)} files)"] if whole else names
    return shown
