"""The BMC in the probe: absent where a node has none, one slow question costs itself alone, nothing old fails a node."""

from __future__ import annotations

import pytest

from rackwright.health.judge import judge
from rackwright.health.probe.bmc import DEVICES, TOOL
from rackwright.health.probe.main import FAST, read
from rackwright.health.verdict import Action
from rackwright.model.types import Platform
from rackwright.status import Status
from tests.unit.health import ipmi
from tests.unit.health.bases import BASES, CONTAINER, catalogue, in_cluster
from tests.unit.health.fake_node import HANGS, document

BASE = BASES["full"]
REST = document(BASE.node)
LOG_CHECKS = ("bmc-log-memory", "bmc-log-processor", "bmc-log-pcie", "bmc-log-power", "bmc-log-drive")


def found(mutate=lambda node: None, expected=BASE.expected):
    """check -> its results, of the checks of the BMC."""
    told = judge(expected, document(BASE.node.with_fault(mutate), REST, ("bmc",)))
    return {one.check: one for one in told if one.area == "bmc"}


def statuses(results):
    return {one.status for one in results.values()}


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (TOOL, "ipmitool is not installed"),
        ("/dev/ipmi0", "the node cannot reach a BMC: /dev/ipmi0 is missing"),
    ],
)
def test_a_node_without_it_is_out_of_scope(path, why):
    results = found(lambda node: node.drop(path))
    assert len(results) == 13
    assert statuses(results) == {Status.OUT_OF_SCOPE}
    assert {one.evidence for one in results.values()} == {why}


def test_nothing_is_run_without_the_device():
    told = read(
        "bmc", BASE.node.with_fault(lambda node: (node.drop("/dev/ipmi0"), node.commands.clear())), {}, 0.0
    )
    assert told["ok"]
    assert told["data"]["device"] is None


@pytest.mark.parametrize("device", DEVICES[1:])
def test_the_device_has_other_names(device):
    assert statuses(found(lambda node: (node.drop("/dev/ipmi0"), node.put(device, "")))) == {Status.PASS}


@pytest.mark.parametrize("base", [CONTAINER, in_cluster(catalogue()["dgx-h100"], platform=Platform.VM)])
def test_a_platform_without_hardware_is_out_of_scope_whatever_was_read(base):
    results = found(
        lambda node: ipmi.add_event(node, 1, "Memory #0x02 | Uncorrectable ECC | Asserted"), base.expected
    )
    assert statuses(results) == {Status.OUT_OF_SCOPE}


def test_no_pass_under_the_scheduler_waits_for_a_bmc():
    assert "bmc" not in FAST


def test_a_bmc_that_hangs_fails_once_and_leaves_the_rest_unknown():
    results = found(lambda node: node.commands.update({"ipmitool mc info": HANGS}))
    assert (results["bmc-answers"].status, results["bmc-answers"].action) == (Status.FAIL, Action.NONE)
    assert {one.status for check, one in results.items() if check != "bmc-answers"} == {Status.UNKNOWN}
    assert "gave no answer" in results["bmc-fans"].evidence


@pytest.mark.parametrize(
    ("question", "concerned"),
    [
        ("sdr elist", {"bmc-supplies", "bmc-redundancy", "bmc-fans", "bmc-temperatures"}),
        (ipmi.LIST, set(LOG_CHECKS)),
        ("sel info", {"bmc-log-room"}),
        ("chassis status", {"bmc-chassis"}),
        ("dcmi power reading", {"bmc-power"}),
        ("sel time get", set()),
    ],
)
def test_one_slow_question_costs_itself_alone(question, concerned):
    results = found(lambda node: node.commands.update({f"ipmitool {question}": HANGS}))
    assert {check for check, one in results.items() if one.status is Status.UNKNOWN} == concerned
    assert {one.status for check, one in results.items() if check not in concerned} == {Status.PASS}


@pytest.mark.parametrize(
    "said",
    [
        (1, "", "DCMI request failed because: Invalid command (c1)"),
        "\n    DCMI request failed because: x (cc)\n",
    ],
)
def test_a_bmc_without_dcmi_makes_no_claim_of_power(said):
    one = found(lambda node: node.commands.update({"ipmitool dcmi power reading": said}))["bmc-power"]
    assert (one.status, one.evidence) == (Status.OUT_OF_SCOPE, "the BMC has no DCMI")


def test_a_bmc_without_such_sensors_makes_no_claim():
    blade = "CPU Temp | 01h | ok | 3.1 | 40 degrees C\n"
    results = found(lambda node: node.commands.update({"ipmitool sdr elist": blade}))
    aside = {check for check, one in results.items() if one.status is Status.OUT_OF_SCOPE}
    assert aside == {"bmc-supplies", "bmc-redundancy", "bmc-fans"}


UE = "Memory #0x02 | Uncorrectable ECC | Asserted"


@pytest.mark.parametrize(
    ("name", "mutate"),
    [
        ("older than a day and the boot", lambda node: ipmi.add_event(node, 25, UE)),
        ("from the future", lambda node: ipmi.add_event(node, -5, UE)),
        (
            "deasserted",
            lambda node: (ipmi.add_event(node, 2, UE), ipmi.add_event(node, 1, UE.replace("Asserted", "Deasserted"))),
        ),
        (
            "without a time",
            lambda node: node.edit(f"ipmitool {ipmi.LIST}", "Processor #0x04 | IERR", "Memory #0x02 | Uncorrectable ECC"),
        ),
        ("corrected", lambda node: ipmi.add_event(node, 1, UE.replace("Uncorrectable", "Correctable"))),
    ],
)  # fmt: skip
def test_what_fails_no_node(name, mutate):
    assert found(mutate)["bmc-log-memory"].status is Status.PASS


def test_events_are_dated_by_the_bmcs_own_clock():
    """Two hours off: local time instead of UTC."""

    def off(node):
        node.commands["ipmitool sel time get"] = ipmi.when(2).replace(" |", "") + "\n"
        ipmi.add_event(node, 25, "Processor #0x04 | IERR | Asserted")

    one = found(off)["bmc-log-processor"]
    assert (one.status, one.action) == (Status.FAIL, Action.DRAIN)
    assert one.evidence == "Processor #0x04: IERR, 23.0 h ago"


def test_a_bmc_without_a_clock_does_not_know_how_old_an_event_is():
    def unset(node):
        node.commands["ipmitool sel time get"] = "01/01/2000 00:20:00\n"

    results = found(unset)
    assert {check for check, one in results.items() if one.status is Status.UNKNOWN} == {
        "bmc-log-memory", "bmc-log-processor",
    }  # fmt: skip


def test_a_site_sets_another_window():
    from dataclasses import replace

    longer = replace(BASE.expected, limits={**BASE.expected.limits, "bmc_event_hours": 4000.0})
    assert found(expected=longer)["bmc-log-memory"].status is Status.FAIL


def test_no_lost_part_asks_for_more_than_a_repair():
    def broken(node):
        node.edit(
            "ipmitool sdr elist", "10.1 | Presence detected", "10.1 | Presence detected, Failure detected"
        )
        node.edit("ipmitool sdr elist", "21h | ok  | 29.1 | 8640 RPM", "21h | nr  | 29.1 | 0 RPM")
        node.edit("ipmitool sdr elist", "02h | ok  |  7.1 | 23", "02h | nr  |  7.1 | 61")

    failed = [one for one in found(broken).values() if one.status is Status.FAIL]
    assert {one.check for one in failed} == {"bmc-supplies", "bmc-fans", "bmc-temperatures"}
    assert {one.action for one in failed} == {Action.NONE}
    assert all(one.remedy for one in failed)
