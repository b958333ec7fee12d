"""The decision: every case of what is found, what Slurm says and what is remembered."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from rackwright.health.guard.policy import (
    REASON_MAX_CHARACTERS,
    Found,
    GuardAction,
    Memory,
    Outcome,
    Policy,
    concerns_manager,
    condemned,
    counted,
    decide,
    excused,
    found_in,
)
from rackwright.health.judge import all_checks
from rackwright.health.verdict import Action, HealthResult
from rackwright.status import Status
from rackwright.workload.slurm.output import node_state
from rackwright.workload.states import HEALTH_PREFIX, DrainShare

NOW = 1_795_000_000.0
POLICY = Policy()
OURS = node_state("IDLE+DRAIN", HEALTH_PREFIX + "gpu-count FAIL reboot: 7 of 8")
HUMAN = node_state("IDLE+DRAIN", "ada looks at the fan", "ada@now")
ROLLOUT = node_state("MIXED+DRAIN", "rackwright: 20261121T120000Z", "root@now")
IDLE = node_state("IDLE")
DOWN = node_state("DOWN+NOT_RESPONDING", "Not responding")
SHARE = (DrainShare("main", 100, 0),)
FULL = (DrainShare("main", 100, 10),)


def result(status=Status.FAIL, check="gpu-count", action=Action.REBOOT, evidence="7 of 8"):
    shown = action if status is Status.FAIL else Action.NONE
    return HealthResult("gpu1", check, "claim", "gpu", status, evidence, shown)


BAD = found_in([result()])
UNKNOWN = found_in([result(Status.UNKNOWN)])
CLEAN = found_in([result(Status.PASS)])


def go(found, node=IDLE, memory=None, shares=SHARE, policy=POLICY):
    return decide(policy, counted(memory or Memory(), found), found, node, shares, NOW)


def test_what_counts_against_a_node():
    assert (BAD.outcome, UNKNOWN.outcome, CLEAN.outcome) == (Outcome.BAD, Outcome.UNKNOWN, Outcome.CLEAN)
    assert found_in([]).outcome is Outcome.UNKNOWN, "nothing judged is nothing known"
    harmless = next(check.id for check in all_checks() if check.action is Action.NONE)
    for status in (Status.FAIL, Status.UNKNOWN):
        assert found_in([result(status, harmless, Action.NONE)]).outcome is Outcome.CLEAN
    assert found_in([result(action=Action.RESTART_JOB)]).outcome is Outcome.CLEAN
    assert found_in([result(Status.UNKNOWN), result()]).outcome is Outcome.BAD
    for status in (Status.WARN, Status.DISABLED, Status.OUT_OF_SCOPE):
        assert found_in([result(status)]).outcome is Outcome.CLEAN
    assert found_in([result(Status.UNKNOWN, "of-another-version")]).outcome is Outcome.UNKNOWN


def test_a_bad_node_is_drained_with_a_reason_that_says_why():
    found = go(BAD)
    assert (found.action, found.reason) == (
        GuardAction.DRAIN,
        "rackwright-health: gpu-count FAIL reboot: 7 of 8",
    )
    assert found.memory.drained
    assert not found.past_share


def test_reasons_are_one_short_line_that_breaks_no_table():
    many = [result(check=f"check-{n}", evidence='a|b "c"\n' + "\u2026" * 400) for n in range(40)]
    reason = found_in(many).reason
    assert reason.startswith(f"{HEALTH_PREFIX}check-0,check-1,")
    assert ",... FAIL reboot: a/b c" in reason
    assert len(reason) <= REASON_MAX_CHARACTERS
    assert not set('|"\n\\') & set(reason)
    hardest = found_in([result(check="a", action=Action.DRAIN), result(check="b", action=Action.RMA)])
    assert hardest.reason.startswith(f"{HEALTH_PREFIX}b,a FAIL rma: ")


@pytest.mark.parametrize("node", [HUMAN, ROLLOUT, DOWN])
@pytest.mark.parametrize("found", [BAD, UNKNOWN, CLEAN])
@pytest.mark.parametrize("memory", [Memory(), Memory(clean=99, unknown=99), Memory(drained=True, clean=99)])
def test_what_somebody_else_took_out_of_service_is_left_alone(node, found, memory):
    assert go(found, node, memory).action is GuardAction.KEEP


def test_a_healthy_node_in_service_is_left_alone_and_slurm_is_not_asked():
    assert go(CLEAN).action is GuardAction.KEEP
    for clean in (0, 1, 3, 50):
        memory = counted(Memory(clean=clean), CLEAN)
        assert not concerns_manager(POLICY, memory, CLEAN)
    lost = counted(Memory(clean=2), CLEAN)
    assert concerns_manager(POLICY, lost, CLEAN), "memory may have been lost while it was drained"
    assert concerns_manager(POLICY, counted(Memory(drained=True), CLEAN), CLEAN)
    assert concerns_manager(POLICY, counted(Memory(), BAD), BAD)
    assert not concerns_manager(POLICY, counted(Memory(), UNKNOWN), UNKNOWN)


def test_our_drain_is_lifted_after_clean_passes_in_a_row():
    memory = Memory(drained=True)
    steps = []
    for found in (CLEAN, CLEAN, UNKNOWN, CLEAN, CLEAN, BAD, CLEAN, CLEAN, CLEAN):
        decision = go(found, OURS, memory)
        memory = decision.memory
        steps.append(decision.action)
    assert steps == [GuardAction.KEEP] * 8 + [GuardAction.RESUME]
    assert not memory.drained


def test_memory_that_was_lost_does_not_leave_a_node_drained_for_ever():
    memory = Memory()
    for expected in (GuardAction.KEEP, GuardAction.KEEP, GuardAction.RESUME):
        decision = go(CLEAN, OURS, memory)
        memory = replace(decision.memory, drained=False)
        assert decision.action is expected


@pytest.mark.parametrize(("unknown", "step"), [("drain", GuardAction.DRAIN), ("keep", GuardAction.KEEP)])
def test_unknown_drains_if_it_lasts_and_the_site_wants_it(unknown, step):
    policy, memory = replace(POLICY, unknown=unknown), Memory()
    for expected in (GuardAction.KEEP, GuardAction.KEEP, step):
        decision = go(UNKNOWN, IDLE, memory, policy=policy)
        memory = decision.memory
        assert decision.action is expected
    assert step is GuardAction.KEEP or decision.reason.startswith(f"{HEALTH_PREFIX}gpu-count UNKNOWN none: ")


@pytest.mark.parametrize("unknown", ["drain", "keep"])
def test_unknown_never_resumes(unknown):
    memory = Memory(drained=True, clean=99, unknown=0)
    for _ in range(10):
        decision = go(UNKNOWN, OURS, memory, policy=replace(POLICY, unknown=unknown))
        memory = decision.memory
        assert decision.action is GuardAction.KEEP, "the reason stays what was seen last"


def test_no_more_than_the_share_is_drained():
    found = go(BAD, shares=FULL)
    assert found.action is GuardAction.KEEP
    assert found.past_share
    assert found.memory.alert == (
        "not drained: 10 of 100 nodes of main are drained by health checks, 10 may be; "
        "gpu-count FAIL reboot: 7 of 8"
    )
    assert go(BAD, shares=(DrainShare("main", 100, 9),)).action is GuardAction.DRAIN
    assert go(BAD, shares=(*SHARE, DrainShare("long", 100, 10))).action is GuardAction.KEEP, (
        "of every partition"
    )
    assert go(BAD, memory=found.memory, shares=SHARE).memory.alert is None


@pytest.mark.parametrize(
    ("nodes", "percent", "allowed"),
    [(1, 10, 1), (2, 50, 1), (2, 100, 2), (9, 10, 1), (20, 10, 2), (1000, 2.5, 25)],
)
def test_the_share_in_nodes(nodes, percent, allowed):
    assert DrainShare("main", nodes, 0).allowed(percent) == allowed


def test_our_reason_is_kept_true():
    other = found_in([result(check="nvlink-up", evidence="link 5")])
    assert go(other, OURS, Memory(drained=True)).action is GuardAction.REASON
    more = found_in([result(evidence="6 of 8")])
    assert go(more, OURS, Memory(drained=True)).action is GuardAction.KEEP, "only evidence changed"


def test_who_resumes_a_node_has_seen_what_the_kernel_said():
    assert excused(Memory(drained=True), IDLE, NOW) == Memory(excused_until=NOW)
    for node in (OURS, HUMAN, DOWN):
        assert excused(Memory(drained=True), node, NOW) == Memory(drained=True)
    assert excused(Memory(), IDLE, NOW) == Memory()


REBOOTS = replace(POLICY, reboots_a_day=3)


def test_reboots_are_off_unless_asked_for():
    assert go(BAD, OURS, Memory(drained=True)).action is GuardAction.KEEP


def test_a_drained_and_empty_node_is_rebooted_at_most_so_often():
    memory, at, steps = Memory(drained=True), NOW, []
    for _ in range(5):
        decision = decide(REBOOTS, memory, BAD, OURS, (), at)
        memory, at = decision.memory, at + 600
        steps.append(decision.action)
    assert steps == [GuardAction.REBOOT] * 3 + [GuardAction.KEEP] * 2
    assert memory.alert == "3 reboots in 24 h did not help: gpu-count FAIL reboot: 7 of 8"
    later = decide(REBOOTS, memory, BAD, OURS, (), NOW + 86400 + 1)
    assert (later.action, len(later.memory.reboots)) == (GuardAction.REBOOT, 3)


@pytest.mark.parametrize(
    ("found", "node"),
    [
        (BAD, IDLE),
        (BAD, node_state("MIXED+DRAIN", OURS.reason)),
        (BAD, node_state("IDLE+DRAIN+REBOOT_REQUESTED", OURS.reason)),
        (BAD, HUMAN),
        (found_in([result(action=Action.RMA)]), OURS),
        (found_in([result(action=Action.DRAIN)]), OURS),
        (UNKNOWN, OURS),
        (CLEAN, OURS),
    ],
)
def test_nothing_else_is_rebooted(found, node):
    assert (
        decide(REBOOTS, Memory(drained=True, unknown=9), found, node, SHARE, NOW).action
        is not GuardAction.REBOOT
    )


def test_over_all_cases_the_rules_hold():
    """Every combination of the above, against the rules and not against the code."""
    nodes, memories = (IDLE, OURS, HUMAN, ROLLOUT, DOWN), (
        Memory(), Memory(clean=3), Memory(drained=True), Memory(drained=True, clean=2), Memory(unknown=2), Memory(clean=50),
    )  # fmt: skip
    policies = [replace(REBOOTS, unknown=word, reboots_a_day=n) for word in ("drain", "keep") for n in (0, 3)]
    seen = set()
    for policy, found, node, memory, shares in product(
        policies, (BAD, UNKNOWN, CLEAN), nodes, memories, (SHARE, FULL, ())
    ):
        after = counted(memory, found)
        step = decide(policy, after, found, node, shares, NOW).action
        seen.add(step)
        others = node.drained and not node.drained_by_health
        assert not (others and step is not GuardAction.KEEP)
        if step is GuardAction.RESUME:
            assert found.outcome is Outcome.CLEAN
            assert node.drained_by_health
            assert after.clean >= policy.clean_passes
        if step is GuardAction.DRAIN:
            assert condemned(policy, after, found)
            assert not node.drained
            assert shares is not FULL
        if step is GuardAction.REBOOT:
            assert policy.reboots_a_day
            assert node.drained_by_health
            assert not node.busy
    assert seen == {GuardAction.KEEP, GuardAction.DRAIN, GuardAction.RESUME, GuardAction.REBOOT}


def test_memory_survives_json():
    memory = Memory(3, 1, True, NOW, (NOW, NOW - 5), "an alert")
    assert Memory.from_json(memory.to_json()) == memory
    assert Memory.from_json({}) == Memory()


def test_found_without_a_result_still_has_a_reason():
    assert Found(Outcome.UNKNOWN).reason == f"{HEALTH_PREFIX}nothing UNKNOWN none: no check ran"
