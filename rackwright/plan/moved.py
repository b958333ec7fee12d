"""Whether a plan that was made and reviewed earlier still holds."""

from __future__ import annotations

from rackwright.plan.node_plan import NodePlan, PlannedOperation, PlanResult, changes_text


def moved_since(planned: PlanResult, now: PlanResult) -> list[str]:
    """Why a plan made earlier no longer holds, one sentence each; empty if it does."""
    moved = []
    if planned.cluster != now.cluster:
        return [f"the plan is for cluster {planned.cluster}, and this is {now.cluster}"]
    if planned.sha256 != now.sha256:
        moved.append(f"{now.file} was changed")
    elif planned.code != now.code:
        moved.append("rackwright's code, its templates, the secrets or the known host keys were changed")
    if set(planned.nodes) != set(now.nodes):
        moved.append("the plan is for other nodes than this run")
    for name, then in planned.nodes.items():
        today = now.nodes.get(name)
        if today is not None and (then.operations, then.reboot) != (today.operations, today.reboot):
            moved.append(f"{name}: {_difference(then, today)}")
    return moved


def _difference(then: NodePlan, today: NodePlan) -> str:
    if today.error is not None:
        return f"it cannot be planned now: {today.error}"
    before, after = set(then.operations) - set(today.operations), set(today.operations) - set(then.operations)
    planned, there = {_title(one) for one in before}, {_title(one) for one in after}
    gone = [f"{_title(one)} is not needed any more" for one in before if _title(one) not in there]
    new = [f"{_title(one)} is needed now" for one in after if _title(one) not in planned]
    for one in (one for one in after if _title(one) in planned):
        was = {change for other in before if _title(other) == _title(one) for change in other.changes}
        changes = changes_text(change for change in one.changes if change not in was)
        new.append(f"{_title(one)} would change something else: {changes or 'less'}")
    if then.reboot != today.reboot:
        reasons = (changes_text(plan.reboot) or "nothing" for plan in (then, today))
        new.append("a reboot is due for another reason: {}, now {}".format(*reasons))
    return "; ".join(sorted(gone) + sorted(new)) or "the order of its operations changed"


def _title(operation: PlannedOperation) -> str:
    return f"`{operation.role}: {operation.name}`"
