"""A plan makes secrets up, an apply stores them, and neither replaces those that nodes have."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

import pytest

from rackwright.engine import run
from rackwright.errors import SecretsError
from rackwright.factcache.cache import version_key
from rackwright.model.cluster import Cluster
from rackwright.model.interfaces import SharesKey
from rackwright.model.options import RoleOptions
from rackwright.plan.changes import Change
from rackwright.plan.node_plan import NodePlan, PlannedOperation, PlanResult
from rackwright.secrets.store import SecretStore, store_path
from tests.factories import make_cluster

KEY = "/etc/munge/munge.key"
FRESH = Change("file", KEY, None, "file 400 munge:munge, content (sensitive)")
REPLACED = Change("file", KEY, "file 400 munge:munge", "file 400 munge:munge, content (sensitive)")
ACCESS = Change("file", KEY, "file 644 munge:munge", "file 400 munge:munge")


class MungeLike(SharesKey, RoleOptions):
    """Options with a secret."""

    secrets: ClassVar[tuple[str, ...]] = ("munge_key",)
    shared_secret: ClassVar[str] = "munge_key"


class Plain(RoleOptions):
    """Options without one."""


class FakeSession:
    """Plans what it was told to; an apply is noted and does nothing."""

    stopped = None
    planned: ClassVar[PlanResult]
    given: ClassVar[dict[str, object]]

    def __init__(self, cluster: Cluster, **given: object) -> None:
        FakeSession.given = given

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def add_watcher(self, _: object) -> None:
        pass

    def plan(self) -> PlanResult:
        return FakeSession.planned


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(run, "Session", FakeSession)
    monkeypatch.setattr(run, "put_back", lambda *_: None)
    (tmp_path / "site").mkdir()
    cluster = make_cluster(path=tmp_path / "site" / "c.yaml")
    options = {"munge": MungeLike(), "base": Plain()}
    nodes = tuple(node.model_copy(update={"options": options}) for node in cluster.nodes)
    return cluster.model_copy(update={"nodes": nodes})


def plans(cluster: Cluster, change: Change | None, *, role: str = "munge", **errors: str) -> None:
    """What the fake session plans on every node."""
    operations = () if change is None else (PlannedOperation(role, "Write the munge key", (change,), ()),)
    nodes = {
        node.name: NodePlan(node.name, () if node.name in errors else operations, error=errors.get(node.name))
        for node in cluster.nodes
    }
    FakeSession.planned = PlanResult(cluster.name, str(cluster.path), cluster.sha256, nodes)


def new_store(cluster: Cluster) -> SecretStore:
    return SecretStore(cluster.path, cluster.name)


class Rolled:
    """Stands for the rollout of a plan that was agreed to."""

    stopped = None
    left_drained = frozenset[str]()
    notes: tuple[str, ...] = ()

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def run(self) -> None:
        return None


def test_a_plan_of_a_new_cluster_stores_nothing(cluster: Cluster):
    plans(cluster, FRESH)
    assert run.plan(cluster).changes == 3
    assert FakeSession.given["plans_only"] is True
    assert list(cluster.path.parent.iterdir()) == []


def test_an_apply_of_a_new_cluster_stores_them_and_says_so(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run, "Rollout", Rolled)
    plans(cluster, FRESH)
    applied = run.apply(cluster)
    store = new_store(cluster)
    assert applied.notes[0] == (
        f"secrets: generated munge_key in {store.path}; keep a copy: rackwright secrets backup"
    )
    assert store.get("munge_key").reveal()
    assert (store.is_unused(), store.new_names()) == (False, ())
    assert run.apply(cluster).notes == ()


def test_the_plan_made_before_the_secrets_still_holds(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run, "Rollout", Rolled)
    plans(cluster, FRESH)
    code = version_key(cluster)
    run.apply(cluster)
    assert FakeSession.given["code"] == code
    assert version_key(cluster) != code, "the key covers the store"
    run.apply(cluster)
    assert FakeSession.given["code"] is None


def test_the_key_covers_the_store_under_its_name(cluster: Cluster):
    store = new_store(cluster)
    store.ensure(["munge_key"])
    before = version_key(cluster)
    store.put("munge_key", "another")
    assert version_key(cluster) != before
    assert store_path(cluster) == store.path


def test_declined_they_are_removed_again(cluster: Cluster):
    plans(cluster, FRESH)
    assert run.apply(cluster, agree=lambda _: False).result is None
    assert list(cluster.path.parent.iterdir()) == []


@pytest.mark.parametrize("limit", [None, "head1", "worker1"])
def test_a_plan_that_would_replace_what_nodes_have_is_refused(cluster: Cluster, limit: str | None):
    plans(cluster, REPLACED)
    with pytest.raises(SecretsError, match=f"lacks munge_key, but nodes .* already: head1: {KEY}") as caught:
        run.plan(cluster, limit=limit)
    assert "--new-secrets" in (caught.value.hint or "")


def test_so_is_an_apply_and_nothing_is_left_behind(cluster: Cluster):
    plans(cluster, REPLACED)
    with pytest.raises(SecretsError, match=r"Nothing was changed\."):
        run.apply(cluster)
    assert list(cluster.path.parent.iterdir()) == []


def test_it_is_carried_out_when_asked_for(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run, "Rollout", Rolled)
    plans(cluster, REPLACED)
    run.apply(cluster, new_secrets=True)
    assert new_store(cluster).get("munge_key").reveal()


@pytest.mark.parametrize(("change", "role"), [(ACCESS, "munge"), (REPLACED, "base"), (None, "munge")])
def test_other_changes_are_not_refused(cluster: Cluster, change: Change | None, role: str):
    plans(cluster, change, role=role)
    run.plan(cluster)
    run.apply(cluster, agree=lambda _: False)


def test_secrets_that_are_in_use_may_be_put_back_on_a_node(cluster: Cluster):
    new_store(cluster).ensure(["munge_key"])
    new_store(cluster).mark_applied(["munge_key"])
    plans(cluster, REPLACED)
    assert run.plan(cluster).changes == 3


@pytest.mark.parametrize(
    ("limit", "errors", "why"),
    [
        ("worker1", {"head1": "-"}, "cannot be planned"),
        (None, {"head1": "no answer"}, "cannot be planned"),
    ],
)
def test_without_the_head_it_is_unknown_whether_they_exist(
    cluster: Cluster, limit: str | None, errors: dict[str, str], why: str
):
    plans(cluster, FRESH, **errors)
    with pytest.raises(SecretsError, match=f"head1 {why}, so it is unknown whether the cluster has secrets"):
        run.apply(cluster, limit=limit)
    assert list(cluster.path.parent.iterdir()) == []


def test_a_run_of_workers_alone_generates_none(cluster: Cluster):
    plans(cluster, FRESH)
    nodes = {name: node for name, node in FakeSession.planned.nodes.items() if name != "head1"}
    FakeSession.planned = PlanResult(cluster.name, str(cluster.path), cluster.sha256, nodes)
    with pytest.raises(SecretsError, match="head1 is not part of this run"):
        run.apply(cluster, limit="worker[1-2]")


def test_roles_without_secrets_need_none(cluster: Cluster):
    plans(cluster, None)
    run.apply(cluster, roles=frozenset({"base"}))
    assert list(cluster.path.parent.iterdir()) == []


def test_an_unfinished_rotation_of_a_shared_key_stops_every_apply(cluster: Cluster):
    store = new_store(cluster)
    store.ensure(["munge_key", "x_password"])
    plans(cluster, None)
    store.update(lambda content: content.model_copy(update={"previous": {"x_password": "old"}}))
    run.apply(cluster)
    store.update(lambda content: content.model_copy(update={"previous": {"munge_key": "old"}}))
    with pytest.raises(
        SecretsError, match="The rotation of munge_key of cluster test was interrupted"
    ) as caught:
        run.apply(cluster)
    assert caught.value.hint == f"finish it: rackwright secrets rotate munge_key {cluster.path}"
