"""What a site can say: limits, kill switches, and mistakes refused with a sentence."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rackwright.health.declare import expected_of_sku
from rackwright.health.docs import page
from rackwright.health.judge import all_checks, judge, worst
from rackwright.health.limits import LIMITS
from rackwright.health.options import HealthOptions
from rackwright.health.verdict import Action
from rackwright.model.platforms import Capability
from rackwright.status import Status
from tests.unit.health.bases import BASES, CONTAINER, SKUS, Base, in_cluster
from tests.unit.health.bases import catalogue as skus
from tests.unit.health.fake_node import NOW, document
from tests.unit.health.faults import smi
from tests.unit.test_architecture import ROOT


def test_the_page_is_current():
    there = (ROOT / "docs" / "health-checks.md").read_text()
    assert there == page(there)


def test_a_status_is_its_word():
    assert f"{Status.OUT_OF_SCOPE}" == str(Status.OUT_OF_SCOPE) == "OUT OF SCOPE"
    assert f"{Status.PASS:<6}|" == "PASS  |"


def test_what_a_check_needs_is_a_capability():
    assert {need for check in all_checks() for need in check.needs} <= {need.value for need in Capability}


def test_every_limit_is_used_and_every_use_is_declared():
    used = {name for check in all_checks() for name in check.limits}
    assert used | {"document_age_s"} == set(LIMITS)


@pytest.mark.parametrize("base", ["full", "roce", "t4-4x"])
def test_a_check_uses_only_the_limits_it_names(base, monkeypatch):
    from rackwright.health.expected import Expected

    asked = []
    whole = Expected.limit
    monkeypatch.setattr(Expected, "limit", lambda self, name: asked.append(name) or whole(self, name))
    raw = document(BASES[base].node)
    from rackwright.health.document import Document

    for check in all_checks():
        if check.applies(BASES[base].expected):
            asked.clear()
            list(check.function(BASES[base].expected, Document(raw)))
            assert set(asked) <= set(check.limits), check.id


def test_claims_are_claims():
    claims = [check.claim for check in all_checks()]
    assert len(set(claims)) == len(claims)
    assert all(claim[0] not in " ." and not claim.endswith(".") for claim in claims)
    assert all(check.remedy and check.source for check in all_checks())


def warm(gpu_c, margin):
    return smi(
        0,
        "<gpu_temp>29 C</gpu_temp><gpu_temp_tlimit>58 C",
        f"<gpu_temp>{gpu_c} C</gpu_temp><gpu_temp_tlimit>{margin} C",
    )


@pytest.mark.parametrize(("margin", "status"), [(6, "PASS"), (4, "WARN"), (2, "FAIL")])
def test_a_threshold_has_two_steps(margin, status):
    base = SKUS["dgx-h100"]
    results = judge(base.expected, document(base.node.with_fault(warm(60 + margin, margin))))
    assert worst(one for one in results if one.check == "gpu-temperature").value == status


def test_a_site_sets_its_own_threshold():
    sku = skus()["dgx-h100"]
    base = Base(sku, expected_of_sku(sku, HealthOptions(limits={"gpu_margin_warn_c": 60})))
    results = judge(base.expected, document(base.node))
    assert {one.check for one in results if one.status is Status.WARN} == {"gpu-temperature"}


def test_an_unreliable_margin_is_not_known():
    base = SKUS["dgx-h100"]
    results = judge(base.expected, document(base.node.with_fault(warm(35, -3))))
    assert worst(one for one in results if one.check == "gpu-temperature") is Status.UNKNOWN


def test_the_fabric_of_a_container_is_out_of_scope():
    """A lab node is declared as its SKU is, and has no RDMA device: nothing there is missing."""
    results = judge(CONTAINER.expected, document(CONTAINER.node))
    fabric = {one.check: (one.status, one.evidence) for one in results if one.check.startswith("rdma-")}
    assert fabric["rdma-ports"] == (Status.OUT_OF_SCOPE, "a container cannot load kernel modules")
    assert {status for status, _ in fabric.values()} == {Status.OUT_OF_SCOPE}


def test_a_switched_off_check_is_shown_with_its_reason():
    options = HealthOptions(disabled={"gpu-persistence": "the vendor's image has it off, ticket 12"})
    base = in_cluster(skus()["dgx-h100"], options)
    broken = base.node.with_fault(smi(0, "<persistence_mode>Enabled", "<persistence_mode>Disabled"))
    [found] = [one for one in judge(base.expected, document(broken)) if one.check == "gpu-persistence"]
    assert (found.status, found.evidence, found.action) == (
        Status.DISABLED, "switched off: the vendor's image has it off, ticket 12", Action.NONE,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"limits": {"gpu_margin_wran_c": 3}}, "Unknown threshold gpu_margin_wran_c."),
        ({"disabled": {"gpu-cuont": "it is broken"}}, "There is no health check gpu-cuont."),
        ({"disabled": {"gpu-count": " "}}, "gpu-count is switched off without a reason; give a short one."),
        ({"pkeys": ("x8001",)}, "x8001 is not a partition key; write it like 0x8001."),
        ({"mounts": ({"target": "home"},)}, "String should match pattern"),
        ({"thresholds": {}}, "Extra inputs are not permitted"),
    ],
)
def test_mistakes_are_refused(values, words):
    with pytest.raises(ValidationError, match=words):
        HealthOptions(**values)


def test_a_document_of_another_node_or_of_yesterday_says_nothing():
    base = BASES["full"]
    raw = document(base.node)
    for results in (
        judge(base.expected, {**raw, "node": "gpu002"}),
        judge(base.expected, raw, now=NOW + 7200),
    ):
        assert {one.status for one in results} == {Status.UNKNOWN}
        assert len({one.evidence for one in results}) == 1
    assert worst(judge(base.expected, raw, now=NOW + 60)) is Status.PASS


def test_a_fast_document_is_judged_by_the_fast_checks_alone():
    base = BASES["full"]
    raw = document(base.node)
    from rackwright.health.probe.main import FAST

    fast = {**raw, "fast": True, "sections": {name: raw["sections"][name] for name in FAST}}
    results = judge(base.expected, fast)
    assert {one.check for one in results} == {
        check.id for check in all_checks() if check.fast and check.applies(base.expected)
    }
    assert worst(results) is Status.PASS
