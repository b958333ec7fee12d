"""The verdicts on public outputs of nccl-tests 2.13 to 2.19, one case each in published.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rackwright.burnin.expectation import Expectation, doubling, judge_table, printed_size
from rackwright.burnin.floors import FULL_SIZE, Floor, judge_floor
from rackwright.burnin.table import parse_nccl_tests

HERE = Path(__file__).parent
CASES = yaml.safe_load((HERE / "published.yaml").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['file']}-{case['sizes'][1]}")
def test_published(case):
    table = parse_nccl_tests((HERE / "published" / f"{case['file']}.txt").read_text())
    smallest, largest = case["sizes"]
    sizes = (printed_size(case["collective"], size, case["ranks"]) for size in doubling(smallest, largest))
    expected = Expectation(
        case["collective"],
        case["ranks"],
        tuple(case.get("nodes", ())),
        tuple(dict.fromkeys(sizes)),
        case.get("values_checked", True),
    )
    said = [f"{found.status.value}: {found.text}" for found in judge_table(table, expected)]
    assert len(said) == len(case["says"]), said
    for one, begins in zip(said, case["says"], strict=True):
        assert one.startswith(begins)
    assert table.largest.busbw_gbs == case["busbw"]
    assert table.reduced_to == case.get("reduced_to")
    floor = Floor(case["floor"]["busbw"], "a floor of the test", FULL_SIZE, case["floor"]["nodes"])
    judged = judge_floor(table.largest, floor)
    assert (judged.status.value if judged is not None else "PASS") == case["floor"]["verdict"]


def test_every_copy_has_a_case_and_a_source():
    assert {path.stem for path in (HERE / "published").iterdir()} == {case["file"] for case in CASES}
    assert all(len(case["source"]) > 30 or "above" in case["source"] for case in CASES)


REDUCED = (HERE / "published" / "gb10-all-gather-2-nodes.txt").read_text()


def test_a_reduction_below_all_sizes_prints_one_odd_row_and_is_judged_by_it():
    """2.19 lowers minBytes to maxBytes; a table without any row is never a pass."""
    begun = REDUCED.replace(
        "#       size", "# Reducing maxBytes to 1073741820 due to memory limitation\n#       size"
    )
    expected = Expectation("all_gather", 2, ("spark-fb97", "spark-4440"), (2147483648, 4294967296))
    rows = [line for line in begun.splitlines() if not line.lstrip().startswith(("2147483648", "4294967296"))]
    odd = parse_nccl_tests("\n".join(rows).replace("1073741824 ", "1073741792 "))
    assert [found.status.value for found in judge_table(odd, expected)] == ["OUT OF SCOPE"]
    assert (
        judge_floor(odd.largest, Floor(19, "s", FULL_SIZE, 2)) is None
    )  # more than the whole floor, at any size
    assert judge_floor(odd.largest, Floor(25, "s", FULL_SIZE, 2)).status.value == "UNKNOWN"
    none = parse_nccl_tests("\n".join(line for line in rows if "1073741824 " not in line))
    assert "UNKNOWN: no row has a size" in [
        f"{one.status}: {one.text}" for one in judge_table(none, expected)
    ]
