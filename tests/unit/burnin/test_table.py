"""Reading nccl-tests: published outputs, and every way an output can be less than whole."""

import dataclasses
import json

import pytest

from rackwright.burnin.expectation import Expectation, doubling, judge_table, printed_size
from rackwright.burnin.floors import Floor, floor_for, judge_floor
from rackwright.burnin.table import Unreadable, parse_nccl_tests
from rackwright.burnin.transport import parse_transports
from rackwright.model.settings import Burnin
from rackwright.model.sku import BusbwFloor, Source
from rackwright.status import Status
from tests.factories import make_cluster, make_sku
from tests.unit.burnin import recorded

GH200 = Expectation("all_reduce", 8, ("nid005471", "nid005487"), doubling(8, 2**27))


def judged(text, expected=GH200):
    return judge_table(parse_nccl_tests(text), expected)


def test_published_all_reduce_is_read_whole():
    table = parse_nccl_tests(recorded.GH200_TWO_NODES)
    assert table.collective == "all_reduce_perf"
    assert table.hosts == ("nid005471",) * 4 + ("nid005487",) * 4
    assert [row.size for row in table.rows] == list(doubling(8, 2**27))
    assert (table.out_of_bounds, table.average_busbw_gbs, table.validated) == (0, 19.7866, True)
    row = table.largest
    assert (row.out_of_place.time_us, row.out_of_place.algbw_gbs, row.out_of_place.busbw_gbs) == (
        1916.4,
        70.04,
        122.57,
    )
    assert (row.in_place.busbw_gbs, row.in_place.wrong) == (123.11, 0)
    assert row.busbw_gbs == 122.57
    assert judged(recorded.GH200_TWO_NODES) == []


def test_published_busbw_is_algbw_times_2_n_minus_1_by_n():
    for row in parse_nccl_tests(recorded.GH200_TWO_NODES).rows[-6:]:
        assert row.out_of_place.busbw_gbs == pytest.approx(row.out_of_place.algbw_gbs * 2 * 7 / 8, rel=2e-3)


def test_labels_before_lines_are_no_part_of_them():
    table = parse_nccl_tests(recorded.P5_LABELLED_WITHOUT_FOOTER)
    assert [row.busbw_gbs for row in table.rows] == [436.95, 442.06, 464.33, 478.95]
    labelled = "".join(f"[1,0]<stdout>:{line}\n" for line in recorded.GH200_TWO_NODES.splitlines())
    assert judged(labelled) == []


def test_output_without_footer_and_ranks_is_unknown():
    expected = Expectation("all_reduce", 16, ("a", "b"), doubling(2**30, 2**33))
    findings = judged(recorded.P5_LABELLED_WITHOUT_FOOTER, expected)
    assert {finding.status for finding in findings} == {Status.UNKNOWN}
    texts = " ".join(finding.text for finding in findings)
    assert "ends before its summary" in texts
    assert "0 of 16 ranks took part" in texts


def test_not_checked_in_place_is_right_for_alltoall_only():
    expected = Expectation("alltoall", 1, ("GENOA-01",), (2**25,))
    assert judged(recorded.ALLTOALL_ONE_GPU, expected) == []
    (finding,) = judged(recorded.ALLTOALL_ONE_GPU, dataclasses.replace(expected, collective="all_reduce"))
    assert finding.status is Status.UNKNOWN
    assert "not checked (N/A) at 1 sizes" in finding.text


def test_an_old_run_that_checked_nothing_and_was_cut_is_unknown():
    table = parse_nccl_tests(recorded.OLD_ERROR_COLUMN)
    [row] = table.rows
    assert (row.size, row.redop, row.out_of_place.time_us, row.in_place.wrong) == (8, "none", 45.82, None)
    assert {one.status for one in judge_table(table, Expectation("broadcast", 2, (), ()))} == {Status.UNKNOWN}


OLD = """\
#   Rank  0 Pid  1 on a device  0 [0x00] Tesla V100-SXM2-32GB
#   Rank  1 Pid  2 on b device  0 [0x00] Tesla V100-SXM2-32GB
#   Rank  2 Pid  3 on c device  0 [0x00] Tesla V100-SXM2-32GB
#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error
   536870912     134217728     float     sum   244833    2.19    4.32  2e-06   244844    2.19    4.32  2e-06
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 4.32
"""
"""The columns of nccl-tests before 2.13.0, with the figures of an 8-node run on V100."""
NAMES = ("a", "b", "c")


def judged_old(text):
    return [one.text for one in judge_table(parse_nccl_tests(text), Expectation("all_reduce", 3, NAMES, ()))]


def test_the_old_error_column_is_a_deviation():
    assert judged_old(OLD) == []
    assert judged_old(OLD.replace("2e-06   244844", "2e-05   244844")) == []  # 1e-5 for each rank but one
    assert judged_old(OLD.replace("2e-06   244844", "3e-05   244844")) == ["wrong values: 1 at 536870912 B"]
    assert judged_old(OLD.replace("float", "int32")) == ["wrong values: 2 at 536870912 B"]
    assert judged_old(OLD.replace("0 OK", "1 FAILED")) == ["out of bounds values: 1"]
    with pytest.raises(Unreadable, match="deviation of the values is nan"):
        parse_nccl_tests(OLD.replace("2e-06", "nan"))


@pytest.mark.parametrize("columns", ["float", "float     sum", "float       0", "float     sum       0"])
def test_old_collectives_have_the_columns_they_need(columns):
    [row] = parse_nccl_tests(OLD.replace("float     sum", columns)).rows
    assert (row.type, row.out_of_place.time_us, row.in_place.busbw_gbs) == ("float", 244833, 4.32)


def test_an_old_run_without_its_ranks_is_as_right_as_its_own_count_says():
    unlisted = "".join(line for line in OLD.splitlines(keepends=True) if "Rank" not in line)
    [row] = parse_nccl_tests(unlisted.replace("2e-06", "1e-03")).rows
    assert row.in_place.wrong == 0


def test_rccl_tests_name_algorithm_protocol_and_channels():
    row = "     1048576        262144     float     sum      -1    76.26   13.75   25.78      0    76.43   13.72   25.72      0"
    [plain] = parse_nccl_tests(row).rows
    assert parse_nccl_tests(row + "  Direct    SIMPLE          32").rows == (plain,)
    assert parse_nccl_tests(row + "  Direct    SIMPLE").malformed


def test_own_mpi_output_reads_the_same():
    table = parse_nccl_tests(recorded.MPI_TWO_RANKS)
    assert judge_table(table, Expectation("all_reduce", 2, ("vm",), doubling(8, 2**26))) == []
    assert table.largest.busbw_gbs == 1.51
    assert table.versions["openmpi"] == "5.0.11"
    assert {"numpy", "mpi4py", "kernel"} <= table.versions.keys()


# What follows is the published table with one thing changed: synthetic.

ROW = "   134217728      33554432     float     sum      -1   1916.4   70.04  122.57      0   1907.8   70.35  123.11      0\n"


@pytest.mark.parametrize(
    ("old", "new", "status", "says"),
    [
        ("122.57      0", "122.57     12", Status.FAIL, "wrong values: 12 at 134217728 B"),
        ("123.11      0", "123.11  1e+06", Status.FAIL, "wrong values: 1000000 at 134217728 B"),
        ("122.57      0", "122.57    0.4", Status.FAIL, "wrong values: 1 at"),
        ("values : 0 OK", "values : 3 FAILED", Status.FAIL, "out of bounds values: 3"),
        ("values : 0 OK", "values : 0 FAILED", Status.FAIL, "out of bounds values: 1"),
        ("122.57      0", "122.57    N/A", Status.UNKNOWN, "not checked (N/A) at 1 sizes"),
        ("validation: 1", "validation: 0", Status.UNKNOWN, "did not check values"),
        (ROW, "", Status.UNKNOWN, "1 rows are missing: 134217728 B"),
        (ROW, ROW * 2, Status.UNKNOWN, "a size appears twice"),
        ("122.57      0   1907.8", "122.57      0   nid", Status.UNKNOWN, "a line cannot be read"),
        ("70.04  122.57", "70.04     nan", Status.UNKNOWN, "reads nan"),
        ("70.04  122.57", "70.04    0.00", Status.UNKNOWN, "reads 0.0"),
        ("# Out of bounds values : 0 OK\n", "", Status.UNKNOWN, "ends before its summary"),
        ("# Avg bus bandwidth    : 19.7866 \n", "", Status.UNKNOWN, "ends before its summary"),
        ("starting: all_reduce_perf", "starting: broadcast_perf", Status.UNKNOWN, "output of broadcast_perf"),
        ("#  Rank  7 Group", "#  Lost  7 Group", Status.UNKNOWN, "7 of 8 ranks took part"),
        ("on  nid005487", "on  nid005471", Status.UNKNOWN, "no rank ran on nid005487"),
    ],
)  # fmt: skip
def test_less_than_whole_is_never_a_pass(old, new, status, says):
    assert old in recorded.GH200_TWO_NODES
    findings = judged(recorded.GH200_TWO_NODES.replace(old, new))
    assert findings
    assert findings[0].status is status
    assert any(says in finding.text for finding in findings), findings


@pytest.mark.parametrize("cut", range(1000, len(recorded.GH200_TWO_NODES) - 60, 97))
def test_cut_off_anywhere_is_unknown(cut):
    findings = judged(recorded.GH200_TWO_NODES[:cut])
    assert findings
    assert all(finding.status is Status.UNKNOWN for finding in findings)


@pytest.mark.parametrize(
    "text", ["", "\n", "srun: error: no such partition", "{", "[]", '{"config": 1}', "\x00\xff"]
)
def test_something_else_is_unreadable(text):
    with pytest.raises(Unreadable):
        parse_nccl_tests(text)


def test_infinite_count_of_wrong_values_is_unreadable():
    with pytest.raises(Unreadable, match="wrong values is inf"):
        parse_nccl_tests(recorded.GH200_TWO_NODES.replace("122.57      0", "122.57    inf"))


@pytest.fixture
def document():
    """Synthetic: keys, nesting and types as src/util.cu of nccl-tests 2.19 writes them (version 3)."""
    row = {"size": 1024, "count": 256, "type": "float", "redop": "sum", "root": "    -1"}
    side = {"time": 10.0, "alg_bw": 100.0, "bus_bw": 150.0, "nwrong": 0.0}
    return {
        "version": 3,
        "args": ["/opt/nccl-tests/build/all_reduce_perf", "-b", "1024"],
        "env": ["HOME=/root"],
        "nccl_version": 23003,
        "config": {
            "nthreads": 1,
            "validation": 1,
            "devices": [
                {"rank": 1, "group": 0, "pid": 2, "hostname": "b", "device": 0},
                {"rank": 0, "group": 0, "pid": 1, "hostname": "a", "device": 0},
            ],
        },
        "results": [
            row | {"out_of_place": side, "in_place": side | {"bus_bw": 140.0}, "actual_iterations": 20}
        ],
        "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {"bandwidth": 145.0, "okay": "unchecked"},
    }


TWO = Expectation("all_reduce", 2, ("a", "b"), (1024,))


def test_json_reads_like_text(document):
    table = parse_nccl_tests(json.dumps(document))
    assert judge_table(table, TWO) == []
    assert (table.hosts, table.largest.busbw_gbs, table.versions) == (("a", "b"), 140.0, {"nccl": "2.30.3"})


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda d: d["results"][0]["in_place"].update(nwrong=2.0), Status.FAIL),
        (lambda d: d["results"][0]["in_place"].update(nwrong=None), Status.UNKNOWN),
        (lambda d: d["results"][0]["in_place"].update(bus_bw="nan"), Status.UNKNOWN),
        (lambda d: d["out_of_bounds"].update(count=0, okay="false"), Status.FAIL),
        (lambda d: d.pop("out_of_bounds"), Status.UNKNOWN),
        (lambda d: d["results"].clear(), Status.UNKNOWN),
        (lambda d: d["config"].update(validation=0), Status.UNKNOWN),
        (lambda d: d["config"]["devices"].pop(), Status.UNKNOWN),
    ],
)
def test_json_less_than_whole(document, change, status):
    change(document)
    assert status in {finding.status for finding in judge_table(parse_nccl_tests(json.dumps(document)), TWO)}


def test_json_without_in_place_or_cut_off_is_unreadable(document):
    with pytest.raises(Unreadable, match="truncated"):
        parse_nccl_tests(json.dumps(document)[:-10])
    del document["results"][0]["in_place"]
    with pytest.raises(Unreadable, match="lacks"):
        parse_nccl_tests(json.dumps(document))


def test_published_transport():
    transports = parse_transports(recorded.NCCL_LOG_IB)
    assert transports.connections == {"NET/IB": 4}
    assert transports.judge("NET/IB") is None
    status, text = transports.judge("NET/IB/GDRDMA")
    assert status is Status.FAIL
    assert text == "4 of 4 connections via NET/IB; NET/IB/GDRDMA is declared"


@pytest.mark.parametrize(
    ("lines", "declared", "status"),
    [
        (["NET/IB/0/GDRDMA", "NET/IB/3(7)/GDRDMA/Shared"], "NET/IB/GDRDMA", None),
        (["NET/IB/0/GDRDMA"], "NET/IB", None),
        (["NET/IB/0/GDRDMA", "NET/IB/1"], "NET/IB/GDRDMA", Status.FAIL),
        (["NET/IB/0/GDRDMA", "NET/Socket/0"], "NET/IB", Status.FAIL),
        (["NET/AWS Libfabric/0"], "NET/IB", Status.FAIL),
        ([], "NET/IB", Status.UNKNOWN),
    ],
)
def test_transport_is_proven_by_every_connection(lines, declared, status):
    log = "".join(f"n1:1:2 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via {way}\n" for way in lines)
    judged = parse_transports(log).judge(declared)
    assert (judged[0] if judged else None) is status


def test_sizes_as_nccl_tests_rounds_them():
    # alltoall over 16 ranks prints 1024 for -b 1k; all_gather over 24 ranks rounds down to 384s
    assert printed_size("alltoall", 1024, 16) == 1024
    assert printed_size("all_gather", 1024, 24) == 768
    assert printed_size("all_gather", 64, 16) == 0
    assert printed_size("all_reduce", 8, 24) == 8


def floor(gbs, **nodes):
    return BusbwFloor(busbw_gbs=gbs, source=Source(text="a document", read="2026-11-01"), **nodes)


def test_floor_of_the_cluster_file_comes_first_then_the_skus_for_so_many_nodes_then_none():
    sku = make_sku(busbw_floors=(floor(100, nodes_max=1), floor(50, nodes_min=2, nodes_max=8)))
    plain = make_cluster()
    assert floor_for(plain, sku, 1) == Floor(100, "a document, read 2026-11-01", 2**33, 1)
    assert floor_for(plain, sku, 8).busbw_gbs == 50
    assert floor_for(plain, sku, 9) is None
    declared = make_cluster(burnin=Burnin(floor_busbw_gbs=3, floor_source="measured 2026-11-02"))
    assert floor_for(declared, sku, 1) == Floor(3, "measured 2026-11-02", 0, 1)


def test_floor_is_judged_at_the_lower_of_both_placements():
    row = parse_nccl_tests(recorded.GH200_TWO_NODES).largest
    assert judge_floor(row, Floor(122.57, "s")) is None
    under = judge_floor(row, Floor(122.58, "a document, read 2026-11-01"))
    assert under.status is Status.FAIL
    assert "below the floor of 122.58 GB/s (a document, read 2026-11-01)" in under.text
    unknown = judge_floor(row, None)
    assert unknown.status is Status.UNKNOWN
    assert "no floor is declared" in unknown.text
