"""What a burn-in starts on the nodes, its shell line against a real shell, and what it asks Slurm."""

import ast
import os
import subprocess
from dataclasses import replace

import pytest

from rackwright.burnin.engines import NCCL_FILTER, NcclTests, cpus_per_task, engine_for
from rackwright.burnin.rails import Rail
from rackwright.burnin.readiness import not_ready
from rackwright.burnin.verbs import over_verbs
from rackwright.command import CommandResult
from rackwright.errors import BurninError, WorkloadError
from rackwright.model.ranges import fold
from rackwright.model.settings import Burnin
from rackwright.model.types import LinkKind
from rackwright.render import render
from rackwright.status import Status
from rackwright.workload.protocol import GpuRequest, JobStep
from rackwright.workload.slurm.control import Slurm
from rackwright.workload.slurm.gres import gres
from rackwright.workload.slurm.srun import srun_line
from tests.factories import SKU, make_gpu_sku, make_node
from tests.unit.burnin.head import Head, cluster_of
from tests.unit.burnin.recorded import NCCL_LOG_IB, NCCL_LOGS_OF_DEVICES

GPU_SKU = make_gpu_sku()
GPU_NODE = make_node("w1", 11, sku=GPU_SKU)
CPU_NODE = make_node("w1", 11)


def test_nccl_steps():
    engine = engine_for(
        Burnin(nccl_env={"NCCL_IB_HCA": "mlx5_0,mlx5_3"}, transport="NET/IB/GDRDMA"), GPU_NODE
    )
    assert isinstance(engine, NcclTests)
    step = engine.step("all_gather", ("a", "b", "c"), 8, 2**34)
    assert (step.tasks_per_node, step.gpus, step.cpus_per_task) == (8, (GpuRequest(8),), 24)
    assert gres(GPU_NODE, step.gpus) == "gpu:h100:8"
    assert step.environment == {"NCCL_DEBUG": "INFO", "NCCL_IB_HCA": "mlx5_0,mlx5_3"}
    assert "exec all_gather_perf -b 512 -e 17179869184 -f 2 -g 1 -n 20 -w 5 -c 1" in step.command[-1]
    expected = engine.expectation("all_gather", ("a", "b", "c"), 8, 2**34)
    assert expected.ranks == 24
    assert expected.sizes[:2] == (384, 768)
    assert engine.expectation("all_reduce", ("a",), 8, 64).sizes == (8, 16, 32, 64)
    assert engine.judge_transport("", ("a",), 1) == []
    [found] = engine.judge_transport("", ("a", "b"), 2)
    assert found.status is Status.UNKNOWN


RAILS = (
    Rail(0, "fabric", LinkKind.ROCE, "rxe_rail0", 1, None),
    Rail(1, "fabric", LinkKind.ROCE, "rxe_rail1", 1, None),
)


def test_groups_side_by_side_are_communicators_of_their_own(tmp_path):
    engine = engine_for(Burnin(), GPU_NODE)
    step, expected = engine.side_by_side("all_reduce", [("w1", "w2.site"), ("w3", "w4")], 8, 64)
    assert (step.nodes, step.tasks_per_node, expected.ranks) == (("w1", "w2.site", "w3", "w4"), 8, 32)
    assert expected.sizes == (8, 16, 32, 64)
    (tmp_path / "all_reduce_perf").write_text('#!/bin/sh\necho "$NCCL_TESTS_SPLIT $*"\n')
    for node, split in (("w1", 65535), ("w2", 65535), ("w4", 131071)):
        (tmp_path / "hostname").write_text(f"#!/bin/sh\necho {node}\n")
        for program in ("hostname", "all_reduce_perf"):
            (tmp_path / program).chmod(0o755)
        done = subprocess.run(
            step.command,
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        )
        assert done.stdout == f"OR {split} -b 8 -e 64 -f 2 -g 1 -n 20 -w 5 -c 1 -a 3\n"
    assert 31 | 65535 == 65535, "the number of a process disappears in the ones"


def test_groups_of_the_mpi_engine_are_told_by_the_program():
    step, expected = engine_for(Burnin(), CPU_NODE, 2).side_by_side(
        "all_reduce", [("w1", "w2"), ("w3", "w4")], 8, 64
    )
    assert "GROUPS = {'w1': 0, 'w2': 0, 'w3': 1, 'w4': 1}" in step.command[-1]
    assert (expected.ranks, step.tasks_per_node) == (8, 2)
    ast.parse(step.command[-1])


def test_mpi_uses_declared_devices_alone():
    engine = engine_for(Burnin(transport="NET/IB"), CPU_NODE, 1, RAILS)
    assert engine.step("all_reduce", ("w1", "w2"), 8, 64).environment == {
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_pml": "ucx",
        "OMPI_MCA_pml_ucx_tls": "any",
        "OMPI_MCA_pml_ucx_devices": "any",
        "UCX_TLS": "rc,ud,sm,self",
        "UCX_NET_DEVICES": "rxe_rail0:1,rxe_rail1:1",
    }
    assert engine.judge_transport("", ("w1", "w2"), 2) == [], "counters prove it"
    software = tuple(replace(rail, software=True, netdev=f"rail{rail.rail}") for rail in RAILS)
    assert over_verbs(software) == over_verbs(RAILS) | {
        "UCX_TLS": "rc_verbs,tcp,sm,self",
        "UCX_NET_DEVICES": "rxe_rail0:1,rxe_rail1:1,rail0,rail1",
        "UCX_IB_ASYNC_EVENTS": "n",
        "UCX_RC_RETRY_COUNT": "6",
    }
    assert (
        "time.sleep(3)"
        in engine_for(Burnin(), CPU_NODE, 1, software).step("all_reduce", ("w1",), 8, 8).command[2]
    )
    assert "time.sleep" not in engine.step("all_reduce", ("w1",), 8, 8).command[2]
    other = tuple(replace(rail, kind=LinkKind.EFA) for rail in RAILS)
    assert over_verbs(other) == over_verbs(()) == {}


def test_where_devices_are_declared_tcp_in_nccls_log_is_a_failure():
    engine = engine_for(Burnin(), GPU_NODE, 1, RAILS)
    nodes = ("node01", "node03")
    assert engine.judge_transport(NCCL_LOG_IB, nodes, 2) == []
    [found] = engine.judge_transport(NCCL_LOG_IB.replace("NET/IB/1", "NET/Socket/1", 1), nodes, 2)
    assert found.status is Status.FAIL
    assert found.text == "transport: roce is declared, and NCCL used TCP for 1 of 4 connections (NET/Socket)"
    by_tcp = NCCL_LOG_IB.replace("NET/IB", "NET/Socket")
    assert engine_for(Burnin(), GPU_NODE).judge_transport(by_tcp, nodes, 2) == []
    assert engine.judge_transport("", nodes, 2) == []


def test_devices_that_nccl_found_are_compared_with_those_that_it_was_meant_to_use():
    nodes = ("dgxh100-3.site", "dgxh100-4.site")
    log = "\n".join(NCCL_LOGS_OF_DEVICES)

    def judged(text, *meant, where=nodes):
        engine = engine_for(Burnin(), GPU_NODE, 1, RAILS, meant)
        return [(found.status, found.text) for found in engine.judge_transport(text, where, len(where))]

    both = "mlx5_10:1", "mlx5_11:1"
    assert judged(log, *both) == []
    assert judged(log, *both, where=nodes[:1]) == [], "one node alone exchanges no data over the fabric"
    assert judged(log, *both, "mlx5_12:1") == [
        (
            Status.FAIL,
            f"transport: NCCL did not find mlx5_12:1 on {fold(nodes)}; declared: mlx5_10:1, mlx5_11:1, mlx5_12:1",
        )
    ]
    one_less = log.replace(" [1]mlx5_11:1/RoCE", "", 1)
    assert judged(one_less, "mlx5_10:1", "mlx5_11:1") == [
        (
            Status.FAIL,
            "transport: NCCL did not find mlx5_11:1 on dgxh100-4.site; declared: mlx5_10:1, mlx5_11:1",
        )
    ]
    other = "mlx5_10:1", "mlx5_3:1"
    assert judged(log, *other) == [
        (
            Status.FAIL,
            f"transport: NCCL did not find mlx5_3:1 and uses mlx5_11:1 too on {fold(nodes)}; declared: {', '.join(other)}",
        )
    ]
    assert judged(NCCL_LOGS_OF_DEVICES[0], *both) == [
        (
            Status.UNKNOWN,
            "transport: NCCL's log does not list the devices of dgxh100-3.site; declared: mlx5_10:1, mlx5_11:1",
        )
    ]
    assert judged(NCCL_LOG_IB, "mlx4_0:1", "mlx4_0:2", where=("node01", "node03"))[0][0] is Status.UNKNOWN
    merged = "n1:1:2 [0] NCCL INFO NET/IB : Using [0]={[0] mlx5_10:1/IB, [1] mlx5_11:1/IB} [RO]; OOB e:1<0>"
    assert judged(f"{merged}\n{merged.replace('n1', 'n2')}", *both, where=("n1", "n2")) == []


def test_on_mig_nodes_each_instance_is_a_rank_and_the_gres_is_the_one_of_slurm_conf():
    node = make_node("w1", 11, sku=GPU_SKU, mig={"1g.10gb": 7})
    engine = engine_for(Burnin(), node)
    step = engine.step("all_reduce", ("w1", "w2"), 8, 2**20)
    assert (step.tasks_per_node, engine.ranks_per_node(2), step.gpus) == (
        56,
        56,
        (GpuRequest(56, "1g.10gb"),),
    )
    assert gres(node, step.gpus) == gres(node) == "gpu:1g.10gb:56"
    assert engine.expectation("all_reduce", ("w1", "w2"), 8, 2**20).ranks == 112


def test_engines_are_chosen_by_gpus():
    assert engine_for(Burnin(), CPU_NODE).name == "mpi"
    assert engine_for(Burnin(engine="mpi"), GPU_NODE).name == "mpi"
    with pytest.raises(BurninError, match="nccl-tests needs GPUs"):
        engine_for(Burnin(engine="nccl-tests"), CPU_NODE)
    [found] = engine_for(Burnin(transport="NET/IB"), CPU_NODE).judge_transport("", ("w1", "w2"), 2)
    assert found.status is Status.UNKNOWN
    assert cpus_per_task(SKU, 2) == 1


def test_variables_are_names():
    with pytest.raises(WorkloadError, match="not a valid name of an environment variable"):
        srun_line(JobStep(("a",), 1, ("true",), 60, environment={"X; rm -rf": "1"}), "job", None)


def test_the_line_in_a_real_shell_keeps_the_status_and_thins_out_the_log(tmp_path):
    """`srun` is a script here; sh and awk are this machine's."""
    stub = tmp_path / "srun"
    info = "n1:1:2 [0] NCCL INFO"
    stub.write_text(
        "#!/bin/sh\n"
        "echo \"$NCCL_X\"\n"
        f"echo '{info} Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA'\n"
        f"echo '{info} Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA'\n"
        f"echo '{info} Channel 01/0 : 0[0] -> 1[0] [send] via NET/Socket/1'\n"
        f"echo '{info} Trees [0] 1/-1/-1'\n"
        f"echo '{info} NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB e0:10.0.0.1<0>'\n"
        f"echo '{info} NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB e0:10.0.0.1<0>'\n"
        f"echo '{info} NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB e0:10.0.0.1<0>'\n"
        "echo 'n1: NCCL WARN something' >&2\n"
        "exit 3\n"
    )  # fmt: skip
    stub.chmod(0o755)
    line = srun_line(
        JobStep(
            ("n1", "n2"),
            1,
            ("sh", "-c", "echo 'a b'"),
            60,
            environment={"NCCL_X": "it's $HOME"},
            output_filter=NCCL_FILTER,
        ),
        "job",
        None,
    )
    done = subprocess.run(
        ["sh", "-c", line],
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert done.stdout.splitlines() == [
        "it's $HOME",
        f"{info} Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA",
        f"{info} Channel 01/0 : 0[0] -> 1[0] [send] via NET/Socket/1",
        f"{info} NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB e0:10.0.0.1<0>",
        f"{info} NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB e0:10.0.0.1<0>",
        "n1: NCCL WARN something",
        "# srun exit status 3",
    ]


MPI_PROGRAM = render(
    "burnin/all_reduce.py.j2",
    smallest=8,
    largest=2**26,
    iterations=20,
    seconds_per_size=0.05,
    groups={"w1": 0},
    linger_seconds=0,
)


def test_the_mpi_program_is_python_and_fits_an_argument():
    ast.parse(MPI_PROGRAM)
    assert len(MPI_PROGRAM) < 16_000


@pytest.mark.parametrize(
    ("figure", "printed"),
    [(0.004905, "0.0049"), (0.0999, "0.0999"), (1.506, "  1.51"), (123.4, "123.40"), (12345.6, " 12346")],
)
def test_the_mpi_program_prints_figures_of_slow_machines_too(figure, printed):
    [number] = [
        node
        for node in ast.parse(MPI_PROGRAM).body
        if isinstance(node, ast.FunctionDef) and node.name == "number"
    ]
    names = {}
    exec(compile(ast.Module([number], []), "number", "exec"), names)  # noqa: S102 - the program under test
    assert names["number"](figure, 6) == printed


class Clock:
    """Stands for the module time: sleeping takes no time."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("rackwright.burnin.readiness.time", clock)
    return clock


def test_waiting_for_idle_is_patient(clock):
    head = Head(w1="completing")
    slurm = Slurm(cluster_of(), head)
    assert not_ready(slurm, ("w1",), 30) == {"w1": "completing"}
    assert clock.now == pytest.approx(1030.0)
    assert len(head.commands) > 10
    assert not_ready(slurm, ("w2",), 30) == {}
    assert clock.now == pytest.approx(1030.0)


def test_nobody_waits_for_a_node_that_is_down(clock):
    head = Head(w1="down*")
    assert not_ready(Slurm(cluster_of(), head), ("w1", "w2"), 30) == {"w1": "down*"}
    assert (clock.now, len(head.commands)) == (1000.0, 1)


def test_debians_name_of_slurm_is_no_part_of_its_version():
    class Debian(Head):
        def run(self, node, command, **_):
            return CommandResult(command, 0, "slurm-wlm 24.11.5\n", "")

    assert Slurm(cluster_of(), Debian()).version() == "24.11.5"
