"""The burn-in through ray.util.collective: its driver over threads in place of actors, and what is judged of it."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rackwright.burnin.expectation import judge_table
from rackwright.burnin.rails import Rail
from rackwright.burnin.ray_collective import RayCollective
from rackwright.burnin.run import _engine
from rackwright.burnin.table import parse_nccl_tests
from rackwright.errors import BurninError
from rackwright.model.settings import Burnin
from rackwright.model.types import LinkKind, NodeRole, Workload
from rackwright.roles.ray.options import RayOptions
from rackwright.status import Status
from tests.factories import make_cluster, make_gpu_sku, make_node
from tests.unit.burnin.recorded import NCCL_LOG_IB

THREADS = Path(__file__).with_name("ray_in_threads.py")
GPU_NODE, CPU_NODE = make_node("w1", 11, sku=make_gpu_sku()), make_node("w1", 11)
NODES = ("w1", "w2")


def gloo(ranks=2):
    return RayCollective(Burnin(iterations=3), CPU_NODE, ranks)


def ran(step, *, here="w1", **settings):
    """Its driver over threads: output, messages, exit status."""
    program = step.command[1].replace("platform.node()", repr(here))
    environment = {"FAKE_RAY": json.dumps({"nodes": NODES, **settings}), "RAY_ADDRESS": "10.0.0.1:6379"}
    given = {"RACKWRIGHT_STEP_ENVIRONMENT": json.dumps(dict(step.environment))}
    done = subprocess.run(
        [sys.executable, THREADS, program],
        env=os.environ | environment | given,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.stdout, done.stderr.strip(), done.returncode


def options(text):
    return [json.loads(line.partition(" ")[2]) for line in text.splitlines() if line.startswith("#options")]


def test_ray_chooses_the_engine_and_gpus_the_backend():
    roles = {"ray": RayOptions()}
    head = make_node("head1", 10, NodeRole.HEAD, options=roles)
    for node, name, ranks in ((GPU_NODE, "ray-nccl", 8), (CPU_NODE, "ray-gloo", 1)):
        worker = make_node("w1", 11, sku=node.sku, workload=Workload.RAY, options=roles)
        engine = _engine(make_cluster(head, worker), worker, 1)
        assert (engine.name, engine.ranks_per_node(2)) == (name, ranks)
    on_cpus = RayCollective(Burnin(engine="mpi"), GPU_NODE, 1)
    assert (on_cpus.name, on_cpus.ranks_per_node(1), on_cpus.ranks_per_node(2)) == ("ray-gloo", 2, 1)
    with pytest.raises(BurninError, match="ranks per node exceed"):
        RayCollective(Burnin(), CPU_NODE, 100_000)


def test_a_sound_run_is_a_table_without_findings():
    engine = gloo()
    text, messages, status = ran(engine.step("all_reduce", NODES[:1], 8, 2**22))
    assert (status, messages) == (0, "")
    table = parse_nccl_tests(text)
    assert judge_table(table, engine.expectation("all_reduce", NODES[:1], 8, 2**22)) == []
    assert (table.hosts, table.out_of_bounds, table.malformed) == (("w1", "w1"), 0, ())
    assert table.versions["ray"] == "2.60.0"
    assert table.versions["torch"] == "2.13.0"


def test_ranks_take_all_cpus_of_their_nodes_and_stay_there():
    text, _, _ = ran(gloo().step("all_reduce", NODES, 8, 8))
    assert [found[:3] for found in options(text)] == [
        ["id-w1", 4, 0],
        ["id-w1", 4, 0],
        ["id-w2", 4, 0],
        ["id-w2", 4, 0],
    ]
    assert all(found[3] == {} for found in options(text))


def test_groups_reduce_separately_and_the_slowest_counts():
    engine = gloo(1)
    step, expected = engine.side_by_side("all_reduce", [("w1",), ("w2",)], 2**18, 2**20)
    assert (step.nodes, step.start, expected.ranks) == (("w1", "w2"), "driver", 4)
    text, _, status = ran(step)
    assert status == 0
    table = parse_nccl_tests(text)
    assert (len(table.hosts), [row.size for row in table.rows]) == (4, [2**18, 2**19, 2**20])
    assert all(row.busbw_gbs > 0 for row in table.rows)


def test_wrong_values_are_counted_in_every_chunk():
    engine = gloo()
    text, _, status = ran(engine.step("all_reduce", ("w1",), 2**11, 2**13), corrupt=True)
    assert status == 1
    found = judge_table(parse_nccl_tests(text), engine.expectation("all_reduce", ("w1",), 2**11, 2**13))
    assert [(one.status, one.text) for one in found][:1] == [
        (Status.FAIL, "wrong values: 2 at 4096 B, 2 at 8192 B")
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"nodes": ["w1"]}, "error: not alive in Ray: w2"),
        (
            {"lacking": ["torch"]},
            "error: Ray's environment has no torch, which its collectives need here: give the role ray a `lock` that has it",
        ),
        (
            {"busy": ["w2"]},
            "error: ranks did not start within 2 s, as other work has the CPUs or GPUs, on w2",
        ),
    ],
)
def test_what_stops_a_run_is_said(settings, message, monkeypatch):
    monkeypatch.setattr("rackwright.burnin.ray_collective.START_SECONDS", 1)
    _, messages, status = ran(gloo().step("all_reduce", NODES, 8, 64), **settings)
    assert (status, messages) == (1, message)


def test_gpus_reduce_with_nccl_whose_log_is_printed(tmp_path, monkeypatch):
    """numpy stands for cupy: what NCCL itself does needs GPUs."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    log = tmp_path / "nccl.log"
    log.write_text(NCCL_LOG_IB)
    monkeypatch.setenv("NCCL_DEBUG_FILE", str(log))
    settings = Burnin(iterations=2, nccl_env={"NCCL_IB_HCA": "mlx5_0"}, transport="NET/IB")
    engine = RayCollective(settings, make_node("w1", 11, sku=make_gpu_sku()), 1)
    step = engine.step("all_reduce", NODES, 8, 64)
    assert step.environment == {"NCCL_IB_HCA": "mlx5_0"}
    text, messages, status = ran(step)
    assert (status, messages) == (0, "")
    assert len(options(text)) == 16
    for number, (_, cpus, gpus, environment) in enumerate(options(text)):
        assert (cpus, gpus) == (1, 1)
        given = environment["env_vars"]
        assert given.pop("NCCL_DEBUG_FILE").endswith(f"-{number % 8}")
        assert given == {"NCCL_IB_HCA": "mlx5_0", "NCCL_DEBUG": "INFO"}
    assert engine.judge_transport(text, NODES, 2) == []
    assert engine.judge_transport(text.replace("NET/IB", "NET/Socket"), NODES, 2)[0].status == Status.FAIL
    table = parse_nccl_tests(text)
    assert table.malformed == ()
    assert table.versions["cupy"] == "14.2.0"


def test_gloo_measures_no_declared_rdma_device():
    rail = Rail(0, "fabric", LinkKind.ROCE, "rxe_rail0", 1, None)
    [found] = RayCollective(Burnin(), CPU_NODE, 1, [rail]).judge_transport("", NODES, 2)
    assert (found.status, found.text) == (
        Status.UNKNOWN,
        "gloo uses TCP and proves no transport; roce is declared",
    )


def test_gloo_proves_no_transport():
    [found] = RayCollective(Burnin(transport="NET/IB"), CPU_NODE, 1).judge_transport("", NODES, 2)
    assert found.status == Status.UNKNOWN
    assert RayCollective(Burnin(), CPU_NODE, 1).judge_transport("", NODES, 2) == []


def test_the_driver_fits_an_argument():
    program = (
        gloo().step("all_reduce", tuple(f"gpu{number:04}" for number in range(1000)), 8, 2**26).command[1]
    )
    ast.parse(program)
    assert len(program) < 64_000
