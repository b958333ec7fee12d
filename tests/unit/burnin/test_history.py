"""A run against earlier ones: what fell by more than noise, what cannot be told, and the plot."""

import pytest

from rackwright.burnin.history import LEAST_RUNS, Point, Series, compare, judge
from rackwright.cli.burnin_compare_view import plot, sentence

VERSIONS = {"nccl": "2.23.4", "kernel": "6.12.1"}


def document(day, busbw, *, versions=VERSIONS, nodes=("w1", "w2"), alone=480.0, latency=2.0):
    row = {"size": 8, "out_of_place": {"busbw_gbs": 0.1}, "in_place": {"busbw_gbs": 0.1}}
    largest = {"size": 2**33, "out_of_place": {"busbw_gbs": busbw + 1}, "in_place": {"busbw_gbs": busbw}}
    group = {
        "engine": "nccl-tests",
        "nodes": list(nodes),
        "versions": versions,
        "measurements": [{"collective": "all_reduce", "rows": [row, largest]}],
        "per_node": [{"node": "w1", "busbw_gbs": alone, "size": 2**33}],
        "ports": [{"nodes": ["w1", "w2"], "rail": 3, "gbps": 390.0, "memory": "host", "way": "leaf"}],
        "latencies": [{"nodes": ["w1", "w2"], "rail": 3, "typical_us": latency, "way": "leaf"}],
    }
    return {"kind": "rackwright.burnin", "started": f"2026-11-{day:02}T10:00:00+00:00", "groups": [group]}


EARLIER = [document(day, busbw) for day, busbw in enumerate((448.0, 452.0, 450.0, 449.0, 451.0), 1)]


def test_a_fall_beyond_noise_is_a_regression_by_name():
    [group] = compare([*EARLIER, document(9, 405.0)])
    [fallen] = group.regressions
    assert (fallen.name, fallen.value, fallen.middle, fallen.change_percent) == (
        "all_reduce at 8589934592 B", 405.0, 450.0, -10.0,
    )  # fmt: skip
    assert (group.earlier_runs, group.judged, len(group.series)) == (5, 4, 4)
    assert sentence(fallen) == (
        "all_reduce at 8589934592 B: 405 GB/s, 10 % below the median of 5 earlier runs (450); noise reaches to 427.5"
    )


def test_what_is_within_noise_is_none():
    assert compare([*EARLIER, document(9, 428.0)])[0].regressions == (), "5 % at least"
    noisy = [document(day, busbw) for day, busbw in enumerate((400.0, 440.0, 380.0, 450.0, 420.0), 1)]
    assert compare([*noisy, document(9, 360.0)])[0].regressions == (), "runs that differ much allow more"


def test_one_bad_run_before_does_not_hide_the_next():
    assert compare([*EARLIER, document(8, 200.0), document(9, 405.0)])[0].regressions != ()


def test_times_regress_upwards():
    [group] = compare([*EARLIER, document(9, 450.0, latency=3.0)])
    assert [one.name for one in group.regressions] == ["read latency: rail 3 of w1 -> w2 (leaf)"]
    assert compare([*EARLIER, document(9, 450.0, latency=1.0)])[0].regressions == ()


def test_a_slow_node_is_named_although_the_whole_is_as_fast():
    [group] = compare([*EARLIER, document(9, 450.0, alone=430.0)])
    assert [one.name for one in group.regressions] == ["w1 alone at 8589934592 B"]


@pytest.mark.parametrize("few", range(LEAST_RUNS))
def test_of_few_runs_nothing_is_known(few):
    [group] = compare([*EARLIER[:few], document(9, 100.0)])
    assert (group.judged, group.regressions, group.earlier_runs) == (0, (), few)


def test_other_versions_and_other_nodes_are_not_compared():
    older = [document(day, 450.0, versions={**VERSIONS, "nccl": "2.21.5"}) for day in range(1, 6)]
    [group] = compare([*older, document(9, 100.0)])
    assert (group.earlier_runs, group.other_versions, group.judged) == (0, 5, 0)
    others = [document(day, 450.0, nodes=("w1", "w3")) for day in range(1, 6)]
    assert compare([*others, document(9, 100.0)])[0].earlier_runs == 0


def test_the_latest_runs_count():
    old = [document(day, 300.0) for day in range(1, 6)]
    [group] = compare([*old, *EARLIER, document(9, 450.0)], 5)
    assert [point.value for point in group.series[0].earlier] == [448.0, 452.0, 450.0, 449.0, 451.0]


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"groups": None},
        {"groups": [{"nodes": 5, "measurements": [{"rows": [{"size": 8, "in_place": 3}]}], "ports": [7]}]},
        {"groups": [{"nodes": ["w1"], "per_node": [{"busbw_gbs": True}, {"busbw_gbs": float("nan")}]}]},
    ],
)
def test_a_broken_document_is_passed_over(broken):
    compare([broken, *EARLIER, document(9, 450.0)])
    assert all(group.series == () for group in compare([*EARLIER, broken]))


def test_the_plot_shows_each_run_the_median_and_the_limit():
    earlier = tuple(
        Point(f"2026-11-0{day}T10:00:00+00:00", value) for day, value in enumerate((448, 452, 450, 450), 1)
    )
    lines = plot(judge(Series("all_reduce at 8 B", "GB/s", 405.0, earlier)), "2026-11-09T10:00:00+00:00")
    assert [line[:27] for line in lines] == [
        "2026-11-01 10:00        448", "2026-11-02 10:00        452", "2026-11-03 10:00        450",
        "2026-11-04 10:00        450", "2026-11-09 10:00        405", " " * 27,
    ]  # fmt: skip
    assert lines[4][28] == "o", "the lowest figure is at the left end"
    assert lines[1].endswith("|o") or lines[1].endswith("| o")
    assert all(":" in line[28:] for line in lines[:5])
    assert lines[5].split() == ["405", "452"]
    flat = judge(Series("x at 8 B", "GB/s", 5.0, ()))
    assert len(plot(flat, "2026-11-09T10:00:00+00:00")) == 2
