"""Host copies by nvbandwidth: published outputs, and what they are judged to be."""

from __future__ import annotations

import json

import pytest

from rackwright.burnin.copies import judge_copies, measure_copies, parse_nvbandwidth
from rackwright.catalog.read import catalogue
from rackwright.model.settings import Burnin
from rackwright.status import Status
from rackwright.workload.protocol import Output
from tests.factories import make_gpu_sku, make_node

H100 = catalogue()["hgx-h100"]

# Recorded. 8 H800, nvbandwidth v0.2, public log of 2023 (CUDA 11.8, driver 525.105.17), read 2026-11-23; the two
# tests that are run here, whole.
H800 = """\
CUDA Runtime Version: 11080
CUDA Driver Version: 12000
Driver Version: 525.105.17

Device 0: NVIDIA H800
Device 1: NVIDIA H800

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
          0         1         2         3         4         5         6         7
0     55.28     55.30     55.32     55.30     55.31     55.34     55.32     55.34

SUM host_to_device_memcpy_ce 442.52

Running device_to_host_memcpy_ce.
memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)
          0         1         2         3         4         5         6         7
0     55.15     55.15     55.15     55.15     55.09     55.13     55.10     55.13

SUM device_to_host_memcpy_ce 441.05
"""

# Recorded. nvbandwidth v0.10.0, CUDA 13.2, driver 595.71.05, eight GPUs, public log, read 2026-11-23: one direction.
V010 = """\
nvbandwidth Version: v0.10.0
Built from Git version: v0.10.0

CUDA Runtime Version: 13.2 (13020)
CUDA Driver Version (API): 13.2 (13020)
Driver Version: 595.71.05

Running device_to_host_memcpy_ce.
memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)
           0         1         2         3         4         5         6         7
 0     55.20     55.20     55.18     55.18     55.25     55.25     55.26     55.20

SUM device_to_host_memcpy_ce 441.72
COEFFICIENT_OF_VARIATION device_to_host_memcpy_ce 0.00

NOTE: The reported results may not reflect the full capabilities of the platform.
Performance can vary with software drivers, hardware clocks, and system topology.
"""

# Recorded. One GPU, nvbandwidth v0.8, driver 572.83, public log, read 2026-11-23: tests without a peer are waived.
LAPTOP = """\
nvbandwidth Version: v0.8
Built from Git version: v0.8

Device 0: NVIDIA GeForce RTX 3050 Laptop GPU (00000000:01:00)

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0
 0     12.98

SUM host_to_device_memcpy_ce 12.98

Running device_to_host_memcpy_ce.
memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)
           0
 0     13.17

SUM device_to_host_memcpy_ce 13.17

Waived: 
Waived: 
"""

# Recorded. `--json -v`, driver 565.02, from a public test of a wrapper around nvbandwidth, read 2026-11-23.
AS_JSON = """{
 "nvbandwidth" : { "CUDA Runtime Version" : 12070, "Driver Version" : "565.02", "git_version" : "", "testcases" : [
   { "average" : 12.396361291250001, "bandwidth_description" : "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s) ",
     "bandwidth_matrix" : [ [ "12.3964" ] ], "max" : 12.396361291250001, "min" : 12.396361291250001,
     "name" : "host_to_device_memcpy_ce", "status" : "Passed", "sum" : 12.396361291250001 },
   { "average" : 13.200093726, "bandwidth_description" : "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s) ",
     "bandwidth_matrix" : [ [ "13.2001" ] ], "max" : 13.200093726, "min" : 13.200093726,
     "name" : "device_to_host_memcpy_ce", "status" : "Passed", "sum" : 13.200093726 } ] } }"""

EIGHT = {0: 55.28, 1: 55.3, 2: 55.32, 3: 55.3, 4: 55.31, 5: 55.34, 6: 55.32, 7: 55.34}


def labelled(node, text):
    return "".join(f"{node} {line}\n" for line in text.splitlines())


def test_published_outputs_are_read():
    found = parse_nvbandwidth(H800)
    assert found["host_to_device_memcpy_ce"] == EIGHT
    assert min(found["device_to_host_memcpy_ce"].values()) == 55.09
    assert parse_nvbandwidth(V010)["device_to_host_memcpy_ce"][6] == 55.26
    assert parse_nvbandwidth(LAPTOP) == {
        "host_to_device_memcpy_ce": {0: 12.98},
        "device_to_host_memcpy_ce": {0: 13.17},
    }
    assert parse_nvbandwidth(AS_JSON) == {
        "host_to_device_memcpy_ce": {0: 12.3964},
        "device_to_host_memcpy_ce": {0: 13.2001},
    }
    for broken in ("", "{", "{}", "[]", '{"nvbandwidth": {"testcases": [3]}}', "sh: nvbandwidth: not found"):
        assert parse_nvbandwidth(broken) == {}


def test_a_node_over_its_floors_passes():
    figures, findings = judge_copies(labelled("w1", H800), ("w1",), 8, H100)
    assert findings == []
    assert (len(figures), figures[0].gbs, figures[8].test) == (16, 55.28, "device_to_host_memcpy_ce")


def test_a_slow_gpu_is_named_with_its_direction_and_the_floor():
    slow = H800.replace(
        "55.31     55.34     55.32     55.34\n\nSUM h", "55.31     26.10     55.32     55.34\n\nSUM h"
    )
    [found] = judge_copies(labelled("w1", slow), ("w1",), 8, H100)[1]
    assert found.status is Status.FAIL
    assert found.text.startswith(
        "nvbandwidth: host_to_device_memcpy_ce: GPU 5 of w1 reaches 26.1 GB/s, below the floor of 48 (Azure"
    )


def test_missing_figures_are_unknown():
    one = labelled("w1", V010) + "w2 sh: 1: nvbandwidth: not found\n"
    texts = [found.text for found in judge_copies(one, ("w1", "w2", "w3"), 8, H100)[1]]
    assert texts[0].startswith("nvbandwidth: host_to_device_memcpy_ce: 0 of 8 GPUs of w1 have a figure")
    assert texts[1].endswith("0 of 8 GPUs of w2 have a figure: sh: 1: nvbandwidth: not found")
    assert texts[3].endswith("0 of 8 GPUs of w3 have a figure: no output")
    assert len(texts) == 5


def test_without_a_floor_it_is_unknown():
    found = judge_copies(labelled("w1", H800), ("w1",), 8, make_gpu_sku())[1]
    assert [(one.status, one.text) for one in found] == [
        (Status.UNKNOWN, "nvbandwidth: host_to_device_memcpy_ce: SKU gpu-node declares no floor h2d_gbs"),
        (Status.UNKNOWN, "nvbandwidth: device_to_host_memcpy_ce: SKU gpu-node declares no floor d2h_gbs"),
    ]


class Manager:
    def __init__(self, text="", exit_status=0):
        self.output, self.steps = Output(text, exit_status), []

    def run(self, step):
        self.steps.append(step)
        return self.output


def test_one_job_measures_all_nodes():
    manager = Manager(labelled("w1", H800) + labelled("w2", H800))
    members = tuple(make_node(f"w{n}", n, sku=H100) for n in (1, 2))
    figures, findings = measure_copies(manager, Burnin(), members, lambda text: None)
    assert (len(figures), findings) == (32, ())
    [step] = manager.steps
    assert "nvbandwidth -t host_to_device_memcpy_ce device_to_host_memcpy_ce" in step.command[-1]
    assert step.nodes == ("w1", "w2")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "nvbandwidth: SKU test-node has no GPUs"),
        (
            {"sku": H100, "mig": {"1g.10gb": 7}},
            "nvbandwidth: the GPUs are in MIG mode, and the floors are for whole GPUs",
        ),
        ({"sku": catalogue()["mi300x-8x"]}, "nvbandwidth: MI300X is an AMD GPU, and the program is NVIDIA's"),
    ],
)
def test_out_of_scope_by_name(changes, says):
    manager = Manager()
    [found] = measure_copies(manager, Burnin(), (make_node("w1", 1, **changes),), lambda text: None)[1]
    assert (found.status, manager.steps) == (Status.OUT_OF_SCOPE, [])
    assert found.text.replace(catalogue()["mi300x-8x"].gpus.model, "MI300X") == says


def test_json_with_an_error_is_no_figure():
    document = json.loads(AS_JSON)
    document["nvbandwidth"]["testcases"][0]["status"] = "Error"
    assert set(parse_nvbandwidth(json.dumps(document))) == {"device_to_host_memcpy_ce"}
