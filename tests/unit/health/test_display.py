"""A GPU for screens alone is in no count and judged by no check."""

from __future__ import annotations

from copy import deepcopy

import pytest

from rackwright.claims.check import CheckContext
from rackwright.claims.gpu import declared_gpus, listed_gpus
from rackwright.health.display import computing
from rackwright.health.judge import judge
from rackwright.status import Status
from tests.factories import make_cluster, make_node
from tests.unit.health.bases import BASES, SKUS
from tests.unit.health.fake_node import document

STATION = SKUS["dgx-station-a100"]
ADDRESS = "0000:c1:00.0"


def with_display(base=STATION):
    """The node's document with the display GPU as nvidia-smi, the bus and `topo -m` show it, index 3 of 5."""
    raw = deepcopy(document(base.node))
    data = {name: section["data"] for name, section in raw["sections"].items() if section["ok"]}
    gpus, links, matrix = data["gpus"]["gpus"], data["nvlink"]["gpus"], data["topology"]["matrix"]
    display = {
        **deepcopy(gpus[3]),
        "name": "NVIDIA DGX Display",
        "pci_id": "1fb0",
        "address": ADDRESS,
        "uuid": "GPU-d",
    }
    gpus[3]["index"] = links[3]["index"] = 4
    gpus.insert(3, display)
    data["gpus"]["attached"] = 5
    links.insert(
        3, {"index": 3, "said": "NVML: Unable to retrieve NVLink information", "links": [], "errors": {}}
    )
    for row in matrix.values():
        row["GPU4"], row["GPU3"] = row["GPU3"], "SYS"
    matrix["GPU4"] = {**matrix["GPU3"], "GPU3": "SYS", "GPU4": " X "}
    matrix["GPU3"] = {**dict.fromkeys(matrix, "SYS"), "GPU3": " X "}
    bus = deepcopy(next(one for one in data["pci"]["devices"] if one["device"] == "20b2"))
    data["pci"]["devices"].append({**bus, "class": "0300", "address": ADDRESS, "device": "1fb0"})
    data["pci"]["nvidia_gpus"] = 5
    return raw


def test_a_healthy_station_raises_nothing():
    results = judge(STATION.expected, with_display())
    quiet = (Status.PASS, Status.OUT_OF_SCOPE)
    assert [(one.check, one.evidence) for one in results if one.status not in quiet] == []
    counts = {one.check: one.evidence for one in results if one.check in ("gpu-count", "gpu-on-bus")}
    assert counts == {"gpu-count": "4 GPUs", "gpu-on-bus": "4 GPUs on the bus"}


def test_the_display_stands_for_no_lost_gpu():
    raw = with_display()
    gpus = raw["sections"]["gpus"]["data"]
    del gpus["gpus"][0]
    gpus["attached"] = 4
    [found] = [one for one in judge(STATION.expected, raw) if one.check == "gpu-count"]
    assert (found.status, found.evidence) == (Status.FAIL, "nvidia-smi lists 3 of 4 declared GPUs")


def test_where_none_is_declared_it_is_one_gpu_too_many():
    other = BASES["dgx-a100"].expected
    raw = with_display()
    assert computing(other, raw) is raw
    assert "gpu-model" in {one.check for one in judge(other, raw) if one.status is Status.FAIL}


@pytest.mark.parametrize(
    "raw", [None, [], {}, {"sections": []}, {"sections": {"gpus": None, "pci": {"ok": True}}}]
)
def test_what_is_no_document_stays_as_it_is(raw):
    assert computing(STATION.expected, raw) == raw


def test_what_the_tools_list():
    node = make_node("head1", 10, sku=STATION.sku, primary=True)
    context = CheckContext(make_cluster(node), node, None, None, None)  # type: ignore[arg-type]
    assert (declared_gpus(context), listed_gpus(context)) == (4, 5)
