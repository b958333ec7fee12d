"""What jobs print on a node that is broken or taken over: no figure of it is believed that its hardware cannot reach."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.burnin.alone import judge_diag, judge_gemm, parse_gemm
from rackwright.burnin.copies import TESTS, judge_copies
from rackwright.burnin.counters import parse_counters
from rackwright.burnin.engines import Mpi, NcclTests
from rackwright.burnin.evidence import Declared, evidence
from rackwright.burnin.expectation import Expectation, doubling, judge_table
from rackwright.burnin.finding import TEXT_MAX_CHARACTERS, Finding
from rackwright.burnin.floors import ceiling
from rackwright.burnin.measurement import Measurement
from rackwright.burnin.port_output import Asked, judge_ports
from rackwright.burnin.possible import BUSBW_MAX_GBS, busbw_max, copy_max, gemm_max
from rackwright.burnin.proof import judge_counters
from rackwright.burnin.rails import Rail
from rackwright.burnin.readings import reading_of
from rackwright.burnin.table import Unreadable, parse_nccl_tests
from rackwright.burnin.transport import parse_transports
from rackwright.catalog.read import catalogue
from rackwright.health.run import FleetHealth, NodeHealth
from rackwright.model.settings import Burnin
from rackwright.model.sku import Metric
from rackwright.model.types import LinkKind, NetworkPurpose
from rackwright.status import Status
from tests.factories import make_node
from tests.unit.answers import (
    any_text,
    few,
    hostile,
    is_harmless,
    lines,
    many,
    memory_limit,
    mutated,
    strings_of,
)
from tests.unit.burnin.recorded import GH200_TWO_NODES
from tests.unit.health.bases import SKUS
from tests.unit.health.fake_node import document

SKU = catalogue()["dgx-h100"]
PAIR = ("w1", "w2")
EXPECTED = Expectation("all_reduce", 8, ("nid005471", "nid005487"), doubling(8, 2**27))
JSON = {
    "nccl_version": 23003, "args": ["/x/all_reduce_perf"], "config": {"validation": 1, "devices": [{"rank": 0, "hostname": "a"}]},
    "results": [{
        "size": 1024, "count": 256, "type": "float", "redop": "sum",
        "out_of_place": {"time": 1.0, "alg_bw": 1.0, "bus_bw": 1.0, "nwrong": 0},
        "in_place": {"time": 1.0, "alg_bw": 1.0, "bus_bw": 1.0, "nwrong": 0},
    }],
    "out_of_bounds": {"count": 0, "okay": "true"}, "average_bus_bandwidth": {"bandwidth": 1.0},
}  # fmt: skip
NVBANDWIDTH = {"nvbandwidth": {"testcases": [
    {"name": name, "status": "Passed", "bandwidth_matrix": [["50.1"] * 8]} for name in TESTS
]}}  # fmt: skip
PORTS = (
    "w1 # rail 0 mlx5_0 host",
    "w1  #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]",
    "w1  65536      100            0.00               390.10               0.7",
)
GEMM = (
    "w1 Worker 0:0 [1004]: TensorEngineActive: generated ???, dcgm 0 (5.89e+05 gflops).",
    "w1 Worker 1:0 [1004]: no",
)
DIAG = (
    'w1 {"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "pcie", "results": [{"entity_id": 0, "status": "Pass"}]}]}]}}',
)


def nccl(text: str) -> list[Finding]:
    try:
        table = parse_nccl_tests(text)
    except Unreadable as error:
        return [Finding(Status.UNKNOWN, str(error))]
    findings = judge_table(table, EXPECTED)
    told = Measurement("all_reduce", table, tuple(findings), text).to_json()
    assert all(is_harmless(one, "\n\t") for one in strings_of(told))
    return findings


def counted(text: str) -> list[Finding]:
    state = parse_counters(text)
    said = evidence(None, state, Declared(RAIL, 400.0, 9000))
    return [Finding(Status.UNKNOWN, one) for one in said] + judge_counters(
        {}, {"w1": state}, {"w1": (RAIL,)}, 1
    )


RAIL = Rail(0, "fabric", LinkKind.ROCE, "mlx5_0", 1, None, "eth1")
ENTRIES: dict[str, tuple[Callable[[str], list[Finding]], st.SearchStrategy[str]]] = {
    "nccl-tests": (nccl, lines(*GH200_TWO_NODES.splitlines()[:14]).map("\n".join)),
    "nccl-tests as JSON": (nccl, mutated(JSON).map(lambda value: json.dumps(value, default=str))),
    "nvbandwidth": (
        lambda text: judge_copies("\n".join(f"w1 {line}" for line in text.split("\n")), ("w1",), 8, SKU)[1],
        mutated(NVBANDWIDTH).map(lambda value: json.dumps(value, default=str)),
    ),
    "ib_write_bw": (lambda text: judge_ports(text, PAIR, Asked(8, SKU.floor(Metric.IB_WRITE_GBPS), 400, latency=True))[2], lines(*PORTS).map("\n".join)),
    "gemm": (lambda text: judge_gemm(text, None, ("w1",), 8, SKU.floor(Metric.GEMM_BF16_TFLOPS)), lines(*GEMM).map("\n".join)),
    "dcgmi diag": (lambda text: judge_diag(text, None, ("w1",)), lines(*DIAG).map("\n".join)),
    "counters": (lambda text: counted(f"device mlx5_0\nport 1\n{text}\nend"), any_text()),
    "transport": (lambda text: [Finding(*found)] if (found := parse_transports(text).judge("NET/IB")) else [], any_text()),
}  # fmt: skip


def judged(name: str, text: str) -> None:
    judge, _ = ENTRIES[name]
    with memory_limit():
        findings = judge(text)
    for one in findings:
        assert is_harmless(one.text)
        assert len(one.text) <= TEXT_MAX_CHARACTERS
    assert findings, "garbage is never a pass"


def of(name: str) -> st.SearchStrategy[str]:
    return st.one_of(ENTRIES[name][1], any_text())


ONES = st.sampled_from(sorted(ENTRIES)).flatmap(lambda name: st.tuples(st.just(name), of(name)))


def is_told(name: str, text: str) -> None:
    judge, _ = ENTRIES[name]
    with memory_limit():
        for one in judge(text):
            assert is_harmless(one.text)
            assert len(one.text) <= TEXT_MAX_CHARACTERS


@given(ONES)
@few
def test_any_output(case: tuple[str, str]) -> None:
    is_told(*case)


@pytest.mark.proof
@given(ONES)
@many
def test_any_output_at_length(case: tuple[str, str]) -> None:
    is_told(*case)


@pytest.mark.parametrize("kind", sorted(hostile()))
@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_garbage_is_never_a_pass(name: str, kind: str) -> None:
    judged(name, hostile()[kind])


@pytest.mark.parametrize("figure", ["1e9", "inf", "1000000000.00", "99999"])
def test_a_bandwidth_beyond_the_hardware_is_no_pass(figure: str) -> None:
    text = GH200_TWO_NODES.rstrip().splitlines()
    last = max(number for number, line in enumerate(text) if line.split()[:1] == ["134217728"])
    cells = text[last].split()
    for column in (7, 11):
        told = list(cells)
        told[column] = figure
        found = judge_table(
            parse_nccl_tests("\n".join([*text[:last], " ".join(told), *text[last + 1 :]])), EXPECTED
        )
        assert Status.UNKNOWN in {one.status for one in found}
        assert any(
            "more than the 10000 that this hardware can reach: the figure is not used" in one.text
            for one in found
        )
    assert not any(
        "hardware can reach" in one.text for one in judge_table(parse_nccl_tests("\n".join(text)), EXPECTED)
    )


def test_the_engines_know_what_their_hardware_can_do() -> None:
    node = make_node("a", 1, sku=SKU)
    expected = NcclTests(Burnin(), node).expectation("all_reduce", ("a", "b"), 8, 2**20)
    assert expected.most_busbw_gbs == busbw_max(SKU) == 2700.0
    assert Mpi(Burnin(), SKU, 1).expectation("all_reduce", ("a", "b"), 8, 64).most_busbw_gbs == BUSBW_MAX_GBS


@pytest.mark.parametrize("sku", catalogue().values(), ids=lambda sku: sku.name)
def test_what_is_published_is_always_possible(sku: Any) -> None:
    """Every floor of the catalogue, and a ring over the ports, is far below the bound."""
    assert all(2 * row.busbw_gbs < busbw_max(sku) for row in sku.busbw_floors)
    assert all(1.3 * (ceiling(sku, nodes) or 0.0) < busbw_max(sku) for nodes in (2, 4, 1000))
    for metric in (Metric.H2D_GBS, Metric.D2H_GBS):
        floor = sku.floor(metric)
        assert floor is None or 2 * floor.floor < copy_max(sku)
    floor = sku.floor(Metric.GEMM_BF16_TFLOPS)
    assert floor is None or 8 * floor.floor < gemm_max(floor.floor)


@pytest.mark.parametrize(
    ("change", "most"),
    [({}, BUSBW_MAX_GBS), ({"pcie_generation": 4, "pcie_width": 16}, 96.0), ({"nvlink_gbs": 112}, 336.0)],
)
def test_cards_on_an_unknown_bus_are_not_bound_by_a_slow_port(change: dict[str, int], most: float) -> None:
    """A site's own SKU: L40S without NVLink, one port of 25 Gb/s."""
    sku = catalogue()["l40s-8x"]
    (port,) = [
        nic.model_copy(update={"purpose": NetworkPurpose.FABRIC, "speed_gbps": 25}) for nic in sku.nics[:1]
    ]
    assert sku.gpus is not None
    site = sku.model_copy(
        update={"nics": (port,), "busbw_floors": (), "gpus": sku.gpus.model_copy(update=change)}
    )
    assert busbw_max(site) == most
    assert busbw_max(site.model_copy(update={"busbw_floors": SKU.busbw_floors})) > 300


def test_copies_beyond_the_bus_are_no_figures() -> None:
    said = json.loads(json.dumps(NVBANDWIDTH).replace("50.1", "1e9"))
    figures, findings = judge_copies("\n".join(f"w1 {line}" for line in [json.dumps(said)]), ("w1",), 8, SKU)
    assert figures == []
    assert {one.status for one in findings} == {Status.UNKNOWN}
    assert "GPU 0 of w1 reads 1e+09 GB/s, more than the" in findings[0].text


def test_ports_beyond_their_speed_are_no_figures() -> None:
    text = "\n".join(PORTS)
    figures, _, findings = judge_ports(text, PAIR, Asked(1, SKU.floor(Metric.IB_WRITE_GBPS), 400))
    assert ([one.gbps for one in figures], findings) == ([390.1], [])
    figures, _, findings = judge_ports(text.replace("390.10", "999999.0"), PAIR, Asked(1, None, 400))
    assert figures == []
    assert {one.status for one in findings} == {Status.UNKNOWN}
    assert "more than the 800 that this hardware can reach" in findings[0].text


def test_a_gpu_beyond_its_product_is_no_figure_and_other_names_are_none() -> None:
    floor = SKU.floor(Metric.GEMM_BF16_TFLOPS)
    text = GEMM[0].replace("5.89e+05", "9e+15") + "\n" + GEMM[0].replace("w1", "w9")
    findings = judge_gemm(text, None, ("w1",), 1, floor)
    assert {one.status for one in findings} == {Status.UNKNOWN}
    assert "GPU 0 of w1 reads 9e+12 TFLOPS" in findings[0].text
    assert {one.node for one in parse_gemm(text)} == {"w1", "w9"}
    assert not any("w9" in one.text and "GPU" in one.text and "reads" not in one.text for one in findings)


def test_a_temperature_that_no_gpu_has_is_not_the_hottest() -> None:
    raw = document(SKUS["dgx-h100"].node)
    for number, heat in enumerate((True, 1e300, "90", [1], -273, 71)):
        raw["sections"]["gpus"]["data"]["gpus"][number]["temperature"]["gpu_c"] = heat
    raw["sections"]["gpus"]["data"]["gpus"][5]["index"] = "\x1b[2J"
    reading = reading_of(FleetHealth("x", (NodeHealth("a", raw, ()),)))
    assert (reading.hottest_c, reading.hottest) == (71.0, "GPU '\\x1b[2J' of a")


def test_figures_that_json_cannot_hold_are_null() -> None:
    from rackwright.burnin.measurement import finite

    assert finite({"a": [float("nan"), 1.5, (float("inf"),)]}) == {"a": [None, 1.5, [None]]}


def test_an_error_while_reading_a_table_is_no_table() -> None:
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(1000)
    try:
        text = f"# Collective test starting: all_reduce_perf\n# Reducing maxBytes to {'9' * 2000} due to memory limitation"
        [found] = nccl(text)
    finally:
        sys.set_int_max_str_digits(limit)
    assert (found.status, found.text.split(":")[0]) == (Status.UNKNOWN, "ValueError")


def test_a_finding_is_one_printable_line() -> None:
    found = Finding(Status.UNKNOWN, "said \x1b[2J\r\n" + "x" * 9999)
    assert found.text.startswith("said \\x1b[2J\\x0d\\x0a")
    assert len(found.text) == TEXT_MAX_CHARACTERS
