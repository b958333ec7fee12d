"""One rotation, from its plan to the removal of the old value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rackwright.engine.head_lock import HeadLock
from rackwright.engine.journal import Journal
from rackwright.engine.run import Applied, Notice, apply, plan
from rackwright.engine.run_lock import run_lock, who
from rackwright.engine.session import Watcher
from rackwright.errors import RunFailed, RunLocked, SecretsError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import SharedKey, SharesKey
from rackwright.model.ranges import fold
from rackwright.model.selection import pick
from rackwright.plan.node_plan import PlanResult
from rackwright.rotation import on_nodes, stored
from rackwright.rotation.supplied import refuse_supplied
from rackwright.secrets.store import store_of
from rackwright.ssh import Pool


@dataclass(frozen=True)
class Rotation:
    """A rotation, planned."""

    cluster: Cluster
    name: str
    roles: frozenset[str]
    """Roles that put the secret on nodes; none: it is nowhere but in the store and in what the operator configures."""
    nodes: tuple[Node, ...]
    shared: bool
    """All nodes change at once."""
    unfinished: bool
    """An earlier one was interrupted after the secret had been replaced in the store."""
    plan: PlanResult | None = None

    @property
    def limit(self) -> str:
        """The nodes as a NodeSet."""
        return fold([node.name for node in self.nodes])

    def steps(self) -> list[str]:
        """What will be done, in this order."""
        if not self.roles:
            return ["store a new value; no role writes it to nodes"]
        if not self.shared:
            return [
                "store the new value and keep the old one as `previous`",
                f"apply {', '.join(sorted(self.roles))} on {self.limit}, in the waves of the cluster file",
                "delete the old value",
            ]
        return [
            (
                f"write the new key next to the old one on {self.limit}; nothing uses it yet, and a failing node "
                "stops the rotation here"
            ),
            "store the new value and keep the old one as `previous`",
            (
                f"switch the key and restart its unit on all {len(self.nodes)} nodes in parallel: nodes with different "
                "keys reject each other, so canaries and waves do not apply; running jobs continue, and messages that fail "
                "in the meantime are sent again"
            ),
            "compare every node with the declaration and delete the old value",
        ]


Agree = Callable[[Rotation], bool]


def rotate(
    cluster: Cluster,
    name: str,
    *,
    without: str | None = None,
    agree: Agree,
    watch: Watcher | None = None,
    notice: Notice = lambda text: None,
) -> Applied | None:
    """Replace a secret; safe to run again after it was interrupted. None: it was declined.

    + without: nodes that are known to be down; they get the new value by the next apply
    """
    stored.is_unfinished(store_of(cluster), name)  # the secret exists
    refuse_supplied(cluster, name)
    if _is_shared(cluster, name):
        return _rotate_shared(cluster, name, without, agree, watch, notice)
    rotation = _planned(cluster, name, without, watch)
    if not agree(rotation):
        return None
    store = store_of(cluster)
    stored.begin(store, name)
    stored.commit(store, name)
    if not rotation.roles:
        stored.finish(store, name)
        return Applied(PlanResult(cluster.name, str(cluster.path), cluster.sha256, {}), None)
    applied = apply(cluster, limit=rotation.limit, roles=rotation.roles, watch=watch, notice=notice)
    _refuse_failures(rotation, _failed(applied))
    stored.finish(store, name)
    return applied


def _planned(cluster: Cluster, name: str, without: str | None, watch: Watcher | None) -> Rotation:
    unfinished = stored.is_unfinished(store_of(cluster), name)
    left_out = {node.name for node in pick(cluster, without)} if without is not None else set()
    users = [
        (node, role, isinstance(options, SharesKey) and options.shared_secret == name)
        for node in cluster.nodes
        for role, options in node.options.items()
        if name in options.secrets and node.name not in left_out
    ]
    used_by = {node.name for node, _, _ in users}
    rotation = Rotation(
        cluster,
        name,
        frozenset(role for _, role, _ in users),
        tuple(node for node in cluster.nodes if node.name in used_by),
        any(shared for _, _, shared in users),
        unfinished,
    )
    if not rotation.roles:
        return rotation
    if not unfinished:
        _refuse_changes(rotation, plan(cluster, limit=rotation.limit, roles=rotation.roles, watch=watch))
    planned = plan(
        cluster,
        limit=rotation.limit,
        roles=rotation.roles,
        watch=watch,
        renewed=frozenset() if unfinished else frozenset({name}),
    )
    return replace(rotation, plan=planned)


def _refuse_changes(rotation: Rotation, found: PlanResult) -> None:
    """The rotation changes one secret and nothing else."""
    if found.failed:
        failures = {node.node: node.error or "unknown" for node in found.failed}
        raise RunFailed(
            f"{rotation.name} cannot be rotated while nodes cannot be compared: {on_nodes.reasons(failures)}.",
            hint=f"repair them, or exclude them until their next apply: --without {fold(list(failures))}",
        )
    if found.changes:
        changed = fold([name for name, node in found.nodes.items() if node.changes])
        raise SecretsError(
            f"{rotation.name} cannot be rotated while {changed} differs from its declaration in "
            f"{', '.join(sorted(rotation.roles))}.",
            hint=f"apply first: rackwright apply {rotation.cluster.path}",
        )


def _is_shared(cluster: Cluster, name: str) -> bool:
    return any(
        isinstance(options, SharesKey) and options.shared_secret == name
        for node in cluster.nodes
        for options in node.options.values()
    )


def _rotate_shared(
    cluster: Cluster, name: str, without: str | None, agree: Agree, watch: Watcher | None, notice: Notice
) -> Applied | None:
    """Locked from the plan on: a run of another operator in between would split the cluster."""
    limit = fold([node.name for node in cluster.nodes])
    journal = Journal(cluster.name, cluster.path, limit=limit, roles=None, deploy=None, policy=None)
    by, lost = {"run": journal.run, **who()}, list[str]()
    with run_lock(cluster.name), HeadLock(cluster, by, lost=lost.append, notice=notice) as head:

        def still_locked() -> None:
            head.confirm(now=True)
            if lost:
                raise RunLocked(
                    f"This run lost the lock of cluster {cluster.name}: {lost[0].rstrip('.')}. {name} was not replaced.",
                    hint=f"once no other run is active: rackwright secrets rotate {name} {cluster.path}",
                )

        rotation = _planned(cluster, name, without, watch)
        if not agree(rotation):
            return None
        still_locked()
        journal.mirror = head.send
        return _switch_all(rotation, watch, journal, still_locked)


def _switch_all(
    rotation: Rotation, watch: Watcher | None, journal: Journal, still_locked: Callable[[], None]
) -> Applied:
    cluster, name = rotation.cluster, rotation.name
    store = store_of(cluster)
    with journal:
        if rotation.plan is not None:
            journal.planned(rotation.plan)
        keys = _keys(rotation, stored.begin(store, name))
        with Pool(cluster) as pool:
            journal.write("rotation", sync=True, secret=name, step="stage", nodes=list(keys))
            if failures := on_nodes.stage(pool, keys):
                on_nodes.unstage(pool, {node: key for node, key in keys.items() if node not in failures})
                _refuse_staging(rotation, failures)
            journal.write("rotation", sync=True, secret=name, step="switch", nodes=list(keys))
            still_locked()  # what was staged stays: it may be the other run's by now
            stored.commit(store, name)
            failures = on_nodes.switch(pool, keys)
        journal.write("rotation", sync=True, secret=name, step="switched", failed=sorted(failures))
        _refuse_failures(rotation, failures)
    found = plan(cluster, limit=rotation.limit, watch=watch)
    _refuse_failures(rotation, _not_in_sync(rotation, found))
    stored.finish(store, name)
    return Applied(found, None)


def _keys(rotation: Rotation, value: str) -> dict[str, SharedKey]:
    return {
        node.name: options.shared_key(node, value)
        for node in rotation.nodes
        for options in node.options.values()
        if isinstance(options, SharesKey) and options.shared_secret == rotation.name
    }


def _refuse_staging(rotation: Rotation, failures: on_nodes.Failures) -> None:
    raise RunFailed(
        f"Cannot write the new {rotation.name} on {fold(list(failures))}: {on_nodes.reasons(failures)}. No node uses it.",
        hint=f"repair the nodes and run again, or exclude them: --without {fold(list(failures))}",
    )


def _refuse_failures(rotation: Rotation, failures: on_nodes.Failures) -> None:
    if failures:
        raise RunFailed(
            f"{rotation.name} was replaced in the store, but not on {fold(list(failures))}: {on_nodes.reasons(failures)}.",
            hint=f"run it again to finish: rackwright secrets rotate {rotation.name} {rotation.cluster.path}",
        )


def _failed(applied: Applied) -> on_nodes.Failures:
    failures = {node.node: node.error or "unknown" for node in applied.plan.failed}
    if applied.result is not None:
        failures |= {node.node: node.error or "unknown" for node in applied.result.failed}
    return failures


def _not_in_sync(rotation: Rotation, found: PlanResult) -> on_nodes.Failures:
    failures = {node.node: node.error or "unknown" for node in found.failed}
    for name, node in found.nodes.items():
        for operation in node.operations:
            if operation.role in rotation.roles:
                failures[name] = f"after the switch it still differs: {operation.name}"
    return failures
