"""What only a reboot brings: in the plan, in no operation, never in sync, and waited for."""

from __future__ import annotations

import pytest

from rackwright.plan.changes import Change

DUE = """
from rackwright.operations import reboots, settings
reboots.due(name="See whether the kernel runs", target="running kernel", read="echo old", want="{want}")
settings.setting(
    name="Load it", target="module", read="cat {folder}/module", want="loaded",
    write="echo loaded >{folder}/module", after_reboot=True,
)
settings.setting(name="Set it", target="x", read="cat {folder}/x", want="1", write="echo 1 >{folder}/x")
"""


@pytest.fixture
def deploy(tmp_path):
    return lambda want: DUE.format(folder=tmp_path, want=want)


def test_a_due_reboot_is_no_operation_and_others_wait_for_it(one, deploy, tmp_path):
    plan = one.plan(deploy("new"))["node1"]
    assert plan.reboot == (Change("reboot", "running kernel", "old", "new", disruptive=True),)
    assert [operation.name for operation in plan.operations] == ["Set it"]
    assert plan.after_reboot == ("Load it",)


def test_an_apply_does_all_that_does_not_wait_and_reports_the_reboot(one, deploy, tmp_path):
    outcome = one.apply(deploy("new"))["node1"]
    assert (outcome.ok, outcome.changed, outcome.as_declared) == (True, 1, False)
    assert [change.target for change in outcome.reboot] == ["running kernel"]
    assert (tmp_path / "x").exists()
    assert not (tmp_path / "module").exists()


def test_without_a_reboot_due_nothing_waits(one, deploy, tmp_path):
    outcome = one.apply(deploy("old"))["node1"]
    assert (outcome.changed, outcome.reboot) == (2, ())
    assert (tmp_path / "module").read_text() == "loaded\n"
    plan = one.plan(deploy("old"))["node1"]
    assert plan.as_declared


def test_a_node_whose_reboot_is_due_is_never_stored_as_in_sync(one, deploy, tmp_path, monkeypatch):
    stored = []
    monkeypatch.setattr(
        "rackwright.pyinfra_driver.driver.Driver._store",
        lambda self, host, *, in_sync: stored.append(in_sync),
    )
    one.apply(deploy("new"))
    for want in ("new", "old"):
        one.plan(deploy(want))
    assert stored == [False, False, False]
    one.apply(deploy("old"))
    one.plan(deploy("old"))
    assert stored[-1] is True
