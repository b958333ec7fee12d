"""MIG layouts of a node: what fits, what is refused, and who reads them."""

from __future__ import annotations

import pytest

from rackwright.catalog.mig import placed
from rackwright.catalog.read import catalogue
from rackwright.catalog.table_files import mig_table
from rackwright.clusterfile.load import load_cluster
from rackwright.health.declare import expected_of
from tests.unit.clusterfile.base_file import change, problems_of

H100 = next(row for row in mig_table().rows if row.gpu == "h100-80gb")


@pytest.mark.parametrize(
    ("layout", "where"),
    [
        ({"1g.10gb": 7}, tuple(("1g.10gb", start) for start in range(7))),
        ({"7g.80gb": 1}, (("7g.80gb", 0),)),
        ({"3g.40gb": 2}, (("3g.40gb", 0), ("3g.40gb", 4))),
        ({"3g.40gb": 1, "4g.40gb": 1}, (("4g.40gb", 0), ("3g.40gb", 4))),
        # the last memory slice has no compute slice, so the large instance has to go there
        (
            {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1},
            (("3g.40gb", 4), ("2g.20gb", 0), ("1g.10gb", 2), ("1g.10gb", 3)),
        ),
        ({"1g.20gb": 4}, tuple(("1g.20gb", start) for start in (0, 2, 4, 6))),
        (
            {"1g.10gb": 6, "1g.10gb+me": 1},
            (*(("1g.10gb", start) for start in range(6)), ("1g.10gb+me", 6)),
        ),
        ({"7g.80gb": 1, "1g.10gb": 1}, None),
        ({"4g.40gb": 1, "3g.40gb": 2}, None),
        ({"2g.20gb": 3, "1g.20gb": 2}, None),
    ],
)
def test_where_instances_lie(layout, where):
    assert placed(layout, H100) == where


def _with(mig, sku="dgx-h100"):
    return change(("switch: s[1-2]", f"sku: {sku}\n    mig: {mig}"), ("      ib: 10.3.0.11\n", ""))


@pytest.mark.parametrize(
    ("mig", "sku", "path", "message", "hint"),
    [
        ("{1g.10gb: 7}", "cpu-16c-64g", "", "cpu-16c-64g has no GPUs to partition.", None),
        (
            "{1g.10gb: 7}",
            "l40s-8x",
            "",
            "The catalogue has no MIG profiles of L40S (l40s-8x).",
            "see `rackwright catalog --table mig`",
        ),
        (
            "{9g.10gb: 1}",
            "dgx-h100",
            '["9g.10gb"]',
            "H100 SXM5 80GB has no MIG profile 9g.10gb.",
            "did you mean `1g.10gb`?",
        ),
        (
            "{3g.40gb: 3}",
            "dgx-h100",
            '["3g.40gb"]',
            "3g.40gb fits 2 times on H100 SXM5 80GB, not 3 times.",
            None,
        ),
        (
            "{4g.40gb: 1, 3g.40gb: 2}",
            "dgx-h100",
            "",
            "These MIG instances do not fit together on one H100 SXM5 80GB.",
            "e.g. `{1g.10gb: 2, 2g.20gb: 1, 3g.40gb: 1}`",
        ),
        (
            "all-balance",
            "dgx-h100",
            "",
            "dgx-h100 has no MIG configuration all-balance.",
            "did you mean `all-balanced`?",
        ),
        (
            "whole",
            "dgx-h100",
            "",
            "dgx-h100 has no MIG configuration whole.",
            (
                "its MIG configurations: all-disabled, all-balanced, all-1g.10gb, all-1g.20gb, all-2g.20gb, all-3g.40gb, "
                "all-4g.40gb, all-7g.80gb, all-1g.10gb.me"
            ),
        ),
        ("all-balanced", "cpu-16c-64g", "", "cpu-16c-64g has no GPUs to partition.", None),
        (
            "all-balanced",
            "l40s-8x",
            "",
            "The catalogue has no MIG profiles of L40S (l40s-8x).",
            "see `rackwright catalog --table mig`",
        ),
        ("{1g.10gb: 8}", "dgx-h100", '["1g.10gb"]', "The number must be at most 7.", None),
        ("{1g.10gb: 0}", "dgx-h100", '["1g.10gb"]', "The number must be at least 1.", None),
    ],
)
def test_layouts_that_are_refused(tmp_path, mig, sku, path, message, hint):
    (problem,) = problems_of(tmp_path, _with(mig, sku))
    model = catalogue()[sku].gpus
    expected = message if model is None else message.replace("H100 SXM5 80GB", model.model)
    assert (problem.path, problem.message, problem.hint) == (f"nodes[1].mig{path}", expected, hint)


@pytest.mark.parametrize(
    ("name", "sku", "layout"),
    [
        ("all-disabled", "dgx-h100", {}),
        ("all-disabled", "cpu-16c-64g", {}),
        ("all-balanced", "dgx-h100", {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}),
        ("all-balanced", "dgx-h200", {"1g.18gb": 2, "2g.35gb": 1, "3g.71gb": 1}),
        ("all-1g.10gb", "dgx-h100", {"1g.10gb": 7}),
        ("all-1g.10gb.me", "dgx-h100", {"1g.10gb+me": 1}),
        ("all-3g.40gb", "dgx-h100", {"3g.40gb": 2}),
    ],
)
def test_a_name_of_mig_parted_is_the_layout_of_the_nodes_own_gpus(tmp_path, name, sku, layout):
    file = tmp_path / "demo.yaml"
    file.write_text(_with(name, sku))
    assert load_cluster(file).by_name["w1"].mig == layout


def test_the_health_checks_expect_the_declared_layout(tmp_path):
    file = tmp_path / "demo.yaml"
    file.write_text(_with("{2g.20gb: 1, 1g.10gb: 3}"))
    cluster = load_cluster(file)
    gpus = expected_of(cluster, cluster.by_name["w1"]).the_gpus()
    assert gpus.mig == ("2g.20gb", "1g.10gb", "1g.10gb", "1g.10gb")
