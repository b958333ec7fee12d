"""Where a deploy gets its secrets: made up for a plan, from the store for an apply, placeholders offline."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from rackwright.data import Site
from rackwright.errors import SecretsError
from rackwright.model.options import RoleOptions
from rackwright.secrets.store import SecretStore
from tests.factories import make_cluster


class Declares(RoleOptions):
    """A role with a secret."""

    secrets: ClassVar[tuple[str, ...]] = ("x_password",)


@pytest.fixture
def site(file: Path) -> Site:
    cluster = make_cluster(path=file)
    node = cluster.nodes[0].model_copy(update={"options": {"x": Declares()}})
    return Site(cluster, node)


def variant(site: Site, **changes: object) -> Site:
    return Site(site.cluster, site.node, **changes)  # type: ignore[arg-type]


def test_a_run_that_may_change_something_makes_nothing_up(site: Site):
    with pytest.raises(SecretsError, match="Cluster test has no secrets yet"):
        site.secret("x_password")


def test_a_plan_makes_up_what_a_role_declares_and_nothing_else(site: Site):
    planning = variant(site, plans_only=True)
    assert len(planning.secret("x_password").reveal()) == 32
    with pytest.raises(SecretsError):
        planning.secret("upstream_password")


def test_a_value_that_is_missing_is_asked_of_the_operator(site: Site):
    SecretStore(site.cluster.path, "test").ensure(["x_password"])
    for planning in (site, variant(site, plans_only=True)):
        with pytest.raises(SecretsError, match="has no secret upstream_password") as caught:
            planning.secret("upstream_password")
        assert "rackwright secrets put upstream_password FILE" in (caught.value.hint or "")


def test_the_plan_of_a_rotation_has_another_value(site: Site):
    SecretStore(site.cluster.path, "test").ensure(["x_password"])
    value = site.secret("x_password")
    renewed = variant(site, plans_only=True, renewed=frozenset({"x_password"}))
    assert renewed.secret("x_password") != value
    assert site.secret("x_password") == value


def test_offline_it_is_a_placeholder(site: Site):
    assert variant(site, offline=True).secret("x_password").reveal() == "(secret x_password)"
