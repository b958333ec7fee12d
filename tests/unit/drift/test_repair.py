"""Which drift is repaired, and what is left."""

from __future__ import annotations

import pytest

from rackwright.drift import repair as repairing
from rackwright.drift.repair import refuse_read_only, repair, repairable
from rackwright.engine.run import Applied
from rackwright.errors import RackwrightError
from rackwright.model.options import RoleOptions
from rackwright.model.settings import Ssh
from rackwright.plan.changes import Change
from rackwright.plan.node_plan import ApplyResult, NodeOutcome, NodePlan, PlannedOperation, PlanResult
from tests.factories import make_cluster, make_node

OPTIONS = {"base": RoleOptions(), "time": RoleOptions(drift="repair"), "tuning": RoleOptions(drift="repair")}


def operation(role: str, *, disruptive: bool = False) -> PlannedOperation:
    return PlannedOperation(role, "Do it", (Change("file", "/x", "a", "b", disruptive=disruptive),), ())


@pytest.mark.parametrize(
    ("operations", "roles", "left"),
    [
        ((), set(), False),
        ((operation("base"),), set(), False),
        ((operation("base"), operation("time")), {"time"}, False),
        ((operation("time"), operation("tuning")), {"time", "tuning"}, False),
        ((operation("base", disruptive=True), operation("time")), {"time"}, False),
        ((operation("time", disruptive=True),), {"time"}, True),
        ((operation("tuning"), operation("time", disruptive=True)), {"tuning", "time"}, True),
        ((operation("stranger"),), set(), False),
    ],
)
def test_what_is_repairable(operations, roles, left):
    found, why_not = repairable(make_node("n", 9, options=OPTIONS), NodePlan("n", operations))
    assert (set(found), why_not is not None) == (roles, left)


def test_nodes_with_the_same_roles_go_together_and_disruption_is_never_agreed_to(monkeypatch):
    names = {"n1": (operation("time"),), "n2": (operation("time"),), "n3": (operation("tuning"),)}
    names["n4"] = (operation("time", disruptive=True),)
    nodes = [make_node(name, number, options=OPTIONS) for number, name in enumerate(names, 20)]
    cluster = make_cluster(*nodes)
    calls = []

    def apply(cluster, *, limit, roles, agree, watch):
        calls.append((limit, sorted(roles)))
        surprising = limit == "n3"
        plans = {
            name: NodePlan(name, (operation("time", disruptive=surprising),))
            for name in (["n3"] if surprising else ["n1", "n2"])
        }
        plan = PlanResult("test", "f", "0", plans)
        if not agree(plan):
            return Applied(plan, None)
        outcomes = {
            name: NodeOutcome(name, name == "n1", operations=plans[name].operations) for name in plans
        }
        return Applied(plan, ApplyResult("test", outcomes))

    monkeypatch.setattr(repairing, "apply", apply)
    plans = {name: NodePlan(name, operations) for name, operations in names.items()}
    done = repair(cluster, PlanResult("test", "f", "0", plans))
    assert calls == [("n[1-2]", ["time"]), ("n3", ["tuning"])]
    assert done.done == {"n1": 1, "n2": 1}
    assert done.left == {
        "n4": "it would be disruptive (time: Do it)",
        "n2": "it failed",
        "n3": "a disruptive operation was found when it was planned again",
    }


def test_the_read_only_user_is_refused_in_words():
    with pytest.raises(RackwrightError, match="may only check nodes for drift"):
        refuse_read_only(make_cluster(ssh=Ssh(user="rackwright-drift")))
