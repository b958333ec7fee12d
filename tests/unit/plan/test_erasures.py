"""Disks that a plan erases: each needs its serial, and only with the content that was shown."""

from __future__ import annotations

import pytest

from rackwright.errors import RackwrightError
from rackwright.plan.changes import Change
from rackwright.plan.erasures import allowed, checked, erasures
from rackwright.plan.node_plan import NodePlan, PlannedOperation, PlanResult

OLD = "ext4 LABEL=old"


def plan(**disks: tuple[str, str]) -> PlanResult:
    """Node -> serial and content of a disk that is erased on it."""
    nodes = {}
    for node, (serial, content) in disks.items():
        change = Change("disk", f"/dev/sda (serial {serial}, 1.0 GB)", content, "xfs", erases=serial)
        blank = Change("disk", "/dev/sdb (serial Z, 1.0 GB)", "no signature", "xfs")
        nodes[node] = NodePlan(node, (PlannedOperation("storage_layout", "Make it", (change, blank), ()),))
    return PlanResult("c", "c.yaml", "", nodes)


def test_each_disk_that_holds_something_is_named():
    assert [str(one) for one in erasures(plan(n1=("A", OLD)))] == [f"n1: /dev/sda (serial A, 1.0 GB): {OLD}"]


def test_it_survives_the_plan_file():
    again = PlanResult.from_json(plan(n1=("A", OLD)).to_json())
    assert erasures(again) == erasures(plan(n1=("A", OLD)))


def test_what_was_typed_is_allowed():
    now = plan(n1=("A", OLD))
    typed = allowed(now, ["A", "A"])
    assert typed == {"n1": {"A": OLD}}
    assert checked(now, typed) is typed
    assert checked(plan(), {}) == {}


@pytest.mark.parametrize(
    "typed", [{}, {"n1": {}}, {"n1": {"B": OLD}}, {"n2": {"A": OLD}}, {"n1": {"A": "xfs"}}]
)
def test_what_was_not_typed_is_refused(typed):
    with pytest.raises(RackwrightError, match="serials were not typed") as refused:
        checked(plan(n1=("A", OLD)), typed)
    assert "n1: /dev/sda (serial A, 1.0 GB): ext4 LABEL=old" in refused.value.message
    assert refused.value.hint == "to erase them: --erase A"


def test_one_of_two_is_not_enough():
    with pytest.raises(RackwrightError, match="n2: /dev/sda") as refused:
        checked(plan(n1=("A", OLD), n2=("B", OLD)), {"n1": {"A": OLD}})
    assert refused.value.hint == "to erase them: --erase B"


@pytest.mark.parametrize("serial", ["a", "A ", "Z", "", "*"])
def test_a_serial_that_the_plan_does_not_erase(serial):
    with pytest.raises(RackwrightError, match="would be erased by this plan; nothing was changed"):
        allowed(plan(n1=("A", OLD)), [serial])


def test_a_serial_of_two_nodes_says_of_neither():
    with pytest.raises(RackwrightError, match="Disks of n1, n2 have the serial 'A'"):
        allowed(plan(n1=("A", OLD), n2=("A", OLD)), ["A"])
