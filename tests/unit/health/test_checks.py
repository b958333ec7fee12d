"""Every check passes a healthy node, fails its seeded faults, and does not know when it cannot read."""

from __future__ import annotations

from functools import cache

import pytest

from rackwright.health.judge import all_checks, judge
from rackwright.health.registry import CHECKS
from rackwright.health.verdict import Action
from rackwright.status import Status
from tests.unit.health.bases import BASES
from tests.unit.health.fake_node import document
from tests.unit.health.faults import FAULTS

QUIET = (Status.PASS, Status.OUT_OF_SCOPE)
DAMAGED = ("full", "mig", "roce", "rack", "old", "t4-4x", "amd", "dgx-b200")


def outcome(results, check):
    """The statuses and evidence of one check."""
    return {result.status for result in results if result.check == check}, [
        result.evidence for result in results if result.check == check
    ]


@pytest.fixture(scope="module")
def documents():
    return {name: document(base.node) for name, base in BASES.items()}


@pytest.mark.parametrize("name", BASES)
def test_a_healthy_node_raises_nothing(name, documents):
    results = judge(BASES[name].expected, documents[name])
    assert [(one.check, one.status.value, one.evidence) for one in results if one.status not in QUIET] == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_the_check_fails_its_fault(fault, documents):
    base, reads = BASES[fault.base], CHECKS[fault.check].reads
    results = judge(base.expected, document(base.node.with_fault(fault.mutate), documents[fault.base], reads))
    statuses, evidence = outcome(results, fault.check)
    assert fault.finds in statuses, (statuses, evidence)
    failed = [one for one in results if one.check == fault.check and one.status is fault.finds]
    assert all(one.remedy and one.evidence for one in failed)


def test_every_check_has_a_healthy_node_a_fault_and_a_damage(documents):
    """The three proofs, for every check; what is missing is named."""
    passed = {
        one.check
        for name, base in BASES.items()
        for one in judge(base.expected, documents[name])
        if one.status is Status.PASS
    }
    names = {check.id for check in all_checks()}
    assert names - passed == set(), "no healthy node passes these"
    assert names - {fault.check for fault in FAULTS} == set(), "no fault is seeded for these"
    assert names - set(damaged()) == set(), "no damaged document makes these UNKNOWN"


@cache
def damaged():
    """check -> statuses, with each section it reads taken away in turn.

    But for the history: without it a counter that shows nothing is as good as with it.
    """
    found = {}
    for base in (BASES[name] for name in DAMAGED):
        whole = document(base.node)
        # a node without earlier readings is judged by what it counts now: a missing history is not damage
        for section in {section for check in all_checks() for section in check.reads} - {"history"}:
            told = {"ok": False, "why": "not read within 8.0 s", "seconds": 8.0}
            broken = {**whole, "sections": {**whole["sections"], section: told}}
            for one in judge(base.expected, broken):
                if section in CHECKS[one.check].reads:
                    found.setdefault(one.check, set()).add(one.status)
    return found


def test_a_section_that_is_gone_is_unknown_never_a_pass():
    silent = {Status.UNKNOWN, Status.OUT_OF_SCOPE}
    wrong = {check: found for check, found in damaged().items() if not {Status.UNKNOWN} <= found <= silent}
    assert wrong == {}


def test_a_lost_gpu_fails_though_the_node_observes_seven(documents):
    base = BASES["dgx-h100"]
    fault = next(fault for fault in FAULTS if fault.check == "gpu-count")
    results = judge(base.expected, document(base.node.with_fault(fault.mutate)))
    [found] = [one for one in results if one.check == "gpu-count"]
    assert (found.status, found.action) == (Status.FAIL, Action.REBOOT)
    assert found.evidence == "nvidia-smi lists 7 of 8 declared GPUs"
