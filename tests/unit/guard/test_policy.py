"""The decision: every case of what is found, what Slurm says and what is remembered."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from rackwright.health.guard.found import REASON_MAX_CHARACTERS, Found, Outcome, found_in
from rackwright.health.guard.memory import Memory, Policy, counted, excused, lasting, learned, uncounted
from rackwright.health.guard.policy import (
    GuardAction,
    against,
    concerns_manager,
    decide,
    not_asked,
    topic,
    unknown_alert,
)
from rackwright.health.judge import all_checks
from rackwright.health.verdict import Action, HealthResult
from rackwright.status import Status
from rackwright.workload.slurm.output import node_state
from rackwright.workload.states import HEALTH_PREFIX, DrainShare

NOW = 1_795_000_000.0
POLICY = Policy(act=True)
OBSERVE = Policy()
KNOWN = ("gpu-count",)
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
@pytest.mark.parametrize(
    "memory",
    [Memory(), Memory(clean=99, unknown={"gpu-count": 99}, passed=KNOWN), Memory(drained=True, clean=99)],
)
def test_what_somebody_else_took_out_of_service_is_left_alone(node, found, memory):
    assert go(found, node, memory).action is GuardAction.KEEP


def test_a_healthy_node_in_service_is_left_alone_and_slurm_is_not_asked():
    assert go(CLEAN).action is GuardAction.KEEP
    for clean in (0, 1, 2, 3, 50):
        memory = counted(Memory(clean=clean, confirmed=True), CLEAN)
        assert not concerns_manager(POLICY, memory, CLEAN)
    for clean, asks in ((1, False), (2, True), (3, True)):
        lost = counted(Memory(clean=clean), CLEAN)
        assert concerns_manager(POLICY, lost, CLEAN) is asks, "memory may have been lost while it was drained"
    assert go(CLEAN, memory=Memory(clean=2)).memory.confirmed
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


@pytest.mark.parametrize("policy", [POLICY, replace(POLICY, unknown="drain")])
@pytest.mark.parametrize("passed", [KNOWN, ()])
def test_unknown_drains_if_it_lasts_the_site_wants_it_and_it_was_known_before(policy, passed):
    memory, steps, alerts = Memory(passed=passed), [], []
    for _ in range(4):
        counts = counted(memory, UNKNOWN)
        decision = decide(policy, counts, UNKNOWN, IDLE, SHARE, NOW)
        steps.append(decision.action)
        alerts.append(unknown_alert(policy, counts, UNKNOWN))
        memory = replace(decision.memory, drained=False)
    drains = policy.unknown == "drain" and passed == KNOWN
    assert steps == [GuardAction.KEEP] * 2 + [GuardAction.DRAIN if drains else GuardAction.KEEP] * 2
    assert alerts == [None] * 2 + ["UNKNOWN in 3 passes in a row: gpu-count: 7 of 8"] * 2
    assert not drains or decision.reason.startswith(f"{HEALTH_PREFIX}gpu-count UNKNOWN none: ")


def test_unknown_is_counted_by_check():
    """Three tools that are each slow once in three passes are not three UNKNOWN passes in a row."""
    memory = Memory(passed=("a", "b", "c"))
    for check in ("a", "b", "c", "a"):
        found = found_in([result(Status.UNKNOWN, check)])
        memory = counted(memory, found)
        assert against(replace(POLICY, unknown="drain"), memory, found) is None
    assert memory.unknown == {"a": 1}
    both = found_in([result(Status.UNKNOWN, "a"), result(Status.UNKNOWN, "b")])
    for _ in range(2):
        memory = counted(memory, both)
    assert against(replace(POLICY, unknown="drain"), memory, both).checks == ("a",)


def test_nothing_judged_for_long_raises_an_alert_and_drains_nothing():
    memory, nothing = Memory(), found_in([])
    for _ in range(3):
        memory = counted(memory, nothing)
    assert lasting(POLICY, memory, nothing) == nothing
    assert unknown_alert(POLICY, memory, nothing) == "UNKNOWN in 3 passes in a row: nothing: no check ran"
    assert against(replace(POLICY, unknown="drain"), memory, nothing) is None


def test_a_prolog_or_epilog_ends_a_row_of_clean_passes_and_counts_nothing():
    memory = Memory(clean=2, unknown={"a": 1})
    assert uncounted(memory, CLEAN) == memory
    assert uncounted(memory, UNKNOWN) == uncounted(memory, BAD) == replace(memory, clean=0)


def test_what_has_passed_is_remembered_until_something_else_is_judged():
    memory = learned(Memory(), [result(Status.PASS, "a"), result(Status.WARN, "b")], "driver 1")
    assert (memory.passed, memory.basis) == (("a",), "driver 1")
    mixed = [result(Status.UNKNOWN, "a"), result(Status.PASS, "c"), result(Status.UNKNOWN, "c")]
    assert learned(memory, mixed, "driver 1").passed == ("a",), "passed before; half an answer is none"
    assert learned(memory, mixed, "driver 2").passed == ()


def test_an_alert_keeps_its_topic_while_its_numbers_change():
    one = "UNKNOWN in 3 passes in a row: gpu-count: no answer within 19.9 s"
    assert topic(one) == topic(one.replace("19.9", "20.0")) != topic("not drained: 1 of 10")
    assert topic(None) is None


@pytest.mark.parametrize("unknown", ["alert", "drain"])
def test_unknown_never_resumes(unknown):
    memory = Memory(drained=True, clean=99, passed=KNOWN)
    for _ in range(10):
        decision = go(UNKNOWN, OURS, memory, policy=replace(POLICY, unknown=unknown))
        memory = decision.memory
        assert decision.action is GuardAction.KEEP, "the reason stays what was seen last"


def test_a_site_that_observes_drains_reboots_and_renames_nothing():
    policy = replace(OBSERVE, reboots_a_day=3, unknown="drain")
    for found, node in product((BAD, UNKNOWN), (IDLE, OURS, DOWN, HUMAN)):
        memory = Memory(unknown={"gpu-count": 9}, passed=KNOWN)
        decision = go(found, node, memory, policy=policy)
        assert decision.action is GuardAction.KEEP
    assert go(BAD, policy=policy).why == f"would drain: {BAD.reason}"


def test_a_site_that_observes_asks_nothing_about_a_node_in_service():
    counts = counted(Memory(), BAD)
    assert not concerns_manager(OBSERVE, counts, BAD)
    assert not_asked(OBSERVE, counts, BAD).why == f"would drain: {BAD.reason}"
    assert not_asked(OBSERVE, Memory(), CLEAN).why == "clean"


def test_a_node_drained_before_the_site_observes_is_resumed_by_its_clean_passes():
    memory, steps = Memory(drained=True), []
    for found in (BAD, CLEAN, CLEAN, CLEAN):
        assert concerns_manager(OBSERVE, counted(memory, found), found)
        decision = go(found, OURS, memory, policy=OBSERVE)
        memory = decision.memory
        steps.append(decision.action)
    assert steps == [GuardAction.KEEP] * 3 + [GuardAction.RESUME]


def test_no_more_than_the_share_is_drained():
    found = go(BAD, shares=FULL)
    assert found.action is GuardAction.KEEP
    assert found.past_share
    assert found.memory.alert == (
        "not drained: 10 of 100 nodes of main are already drained by health checks, at most 10 may be; "
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
    assert memory.alert == "3 reboots within 24 h did not help: gpu-count FAIL reboot: 7 of 8"
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
        decide(
            REBOOTS, Memory(drained=True, unknown={"gpu-count": 9}, passed=KNOWN), found, node, SHARE, NOW
        ).action
        is not GuardAction.REBOOT
    )


def test_over_all_cases_the_rules_hold():
    """Every combination of the above, against the rules and not against the code."""
    nodes, memories = (IDLE, OURS, HUMAN, ROLLOUT, DOWN), (
        Memory(), Memory(clean=3), Memory(drained=True), Memory(drained=True, clean=2), Memory(unknown={"gpu-count": 2}, passed=KNOWN), Memory(clean=50),
    )  # fmt: skip
    policies = [
        replace(REBOOTS, unknown=word, reboots_a_day=n, act=act)
        for word, n, act in product(("drain", "alert"), (0, 3), (True, False))
    ]
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
            assert policy.act
            assert found.outcome is Outcome.BAD or (policy.unknown == "drain" and after.passed == KNOWN)
            assert not node.drained
            assert shares is not FULL
        if step is GuardAction.REBOOT:
            assert policy.act
            assert policy.reboots_a_day
            assert node.drained_by_health
            assert not node.busy
    assert seen == {GuardAction.KEEP, GuardAction.DRAIN, GuardAction.RESUME, GuardAction.REBOOT}


def test_memory_survives_json():
    memory = Memory(3, {"gpu-count": 1}, True, True, NOW, (NOW, NOW - 5), "an alert", KNOWN, "driver 1")
    assert Memory.from_json(memory.to_json()) == memory
    assert Memory.from_json({}) == Memory()
    assert Memory.from_json({"clean": 2, "unknown": 1}) == Memory(clean=2), "as earlier versions wrote it"


def test_found_without_a_result_still_has_a_reason():
    assert Found(Outcome.UNKNOWN).reason == f"{HEALTH_PREFIX}nothing UNKNOWN none: no check ran"
