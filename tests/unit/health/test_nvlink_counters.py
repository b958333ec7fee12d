"""NVLink's counters by generation: what is an error, what is judged by its increase, what is ignored."""

from __future__ import annotations

import json

import pytest

from rackwright.health import nvlink_counters
from rackwright.health.document import Document
from rackwright.health.guard.places import COUNTERS
from rackwright.health.history import counters_of, name
from rackwright.health.judge import judge
from rackwright.health.probe.nvlink import from_text, parse_errors, parse_status
from rackwright.status import Status
from tests.unit.health.bases import BASES
from tests.unit.health.fake_node import NOW, document

STATUS, ERRORS = "nvidia-smi nvlink -s", "nvidia-smi nvlink -e"
INACTIVE = "NVML: Unable to retrieve NVLink information as all links are inActive"


def of(base, check, *mutations):
    node = BASES[base].node
    for mutate in mutations:
        node = node.with_fault(mutate)
    return [one for one in judge(BASES[base].expected, document(node)) if one.check == check]


def edit(command, old, new, count=-1):
    return lambda node: node.edit(command, old, new, count)


def before(**counts):
    told = [{"at": NOW - 3000, "changed": {name("nvlink", 0, key): value for key, value in counts.items()}}]
    return lambda node: node.put(COUNTERS, json.dumps(told))


def test_every_counter_of_a_healthy_blackwell_is_known():
    counters = parse_errors(str(BASES["rack"].node.commands[ERRORS]))[0]
    assert all(nvlink_counters.is_known(counter) for counter in counters)
    assert counters["fec_errors_-_0"] > 10**9
    assert set(nvlink_counters.FATAL) <= set(counters)


def test_a_rate_is_no_count():
    counters = parse_errors(str(BASES["rack"].node.commands[ERRORS]))[0]
    assert not [counter for counter in counters if counter.endswith("_ber")]


def test_only_what_is_judged_is_kept_between_passes():
    kept = {key for key in counters_of(Document(document(BASES["rack"].node))) if key.startswith("nvlink/0/")}
    assert {key.rpartition("/")[2] for key in kept} <= set(nvlink_counters.JUDGED)
    assert kept


def test_fec_bins_and_raw_errors_of_a_busy_blackwell_are_no_fault():
    busy = edit(ERRORS, "FEC Errors - 2: 0", "FEC Errors - 2: 98765")
    assert {one.status for one in of("rack", "nvlink-errors", busy)} == {Status.PASS}


def test_a_total_since_the_reset_without_an_earlier_reading_is_a_warning():
    [found] = of(
        "full", "nvlink-errors", edit(ERRORS, "Link 3: Recovery Errors: 0", "Link 3: Recovery Errors: 2", 1)
    )
    assert (found.status, found.action.value) == (Status.WARN, "none")


def test_a_few_replays_are_no_fault():
    more = edit(ERRORS, "Link 3: Replay Errors: 0", "Link 3: Replay Errors: 60", 1)
    assert {one.status for one in of("full", "nvlink-errors", more, before(replay=0))} == {Status.PASS}


def test_a_counter_that_no_check_knows_is_a_warning():
    told = edit(ERRORS, "Link 3: Replay Errors: 0", "Link 3: Phase Errors: 9", 1)
    [found] = of("full", "nvlink-errors", told)
    assert (found.status, found.evidence) == (Status.WARN, "GPU 0: phase 9, an unknown counter")


def test_links_that_are_all_inactive_fail_with_what_nvidia_smi_prints():
    def down(node):
        heads = [line for line in str(node.commands[STATUS]).splitlines() if line.startswith("GPU 0")]
        rest = str(node.commands[STATUS]).partition("GPU 1:")
        node.commands[STATUS] = f"{heads[0]}\n{INACTIVE}\n{rest[1]}{rest[2]}"

    [found] = of("full", "nvlink-up", down)
    assert (found.status, found.evidence) == (Status.FAIL, f"GPU 0 has 0 of 18 links up; {INACTIVE}")


@pytest.mark.parametrize("said", ["\t Link 0: <inactive>", "Nvlink queries are not supported", INACTIVE])
@pytest.mark.parametrize("check", ["nvlink-up", "nvlink-speed", "nvlink-errors"])
def test_gpus_in_mig_mode_do_not_use_their_links(check, said):
    def divided(node):
        heads = [line for line in str(node.commands[STATUS]).splitlines() if line.startswith("GPU ")]
        node.commands[STATUS] = node.commands[ERRORS] = "".join(f"{head}\n{said}\n" for head in heads)

    assert {one.status for one in of("mig", check, divided)} == {Status.OUT_OF_SCOPE}
    assert Status.FAIL in {one.status for one in of("full", "nvlink-up", divided)}


def test_one_gpu_in_mig_mode_hides_no_other():
    down = edit(STATUS, "Link 5: 26.562 GB/s", "Link 5: <inactive>")
    first = edit("nvidia-smi -q -x", "<current_mig>Disabled", "<current_mig>Enabled", 1)
    found = of("full", "nvlink-up", down, first)
    assert {one.status for one in found} == {Status.FAIL}
    assert len(found) == 7


def test_the_recorded_speed_of_nvlink_5():
    speeds = {
        speed
        for links in parse_status(str(BASES["rack"].node.commands[STATUS])).values()
        for _, speed in links
    }
    assert speeds == {53.125}


def test_a_section_without_counters_tells_why():
    told = from_text("GPU 0: NVIDIA H100 (UUID: x)\n\t Link 0: 26.562 GB/s\n", None, "not found")
    assert told["gpus"][0]["errors"] is None
    assert told["errors_why"] == "not found"
