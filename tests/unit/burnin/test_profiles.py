"""What each profile runs, with GPUs and without."""

from __future__ import annotations

import pytest

from rackwright.burnin import burnin
from rackwright.burnin.alone import judge_gemm
from rackwright.burnin.engines import engine_for
from rackwright.burnin.profiles import plan_of
from rackwright.catalog.read import catalogue
from rackwright.errors import ExitCode
from rackwright.model.interfaces import ProvidesCollectives
from rackwright.model.options import RoleOptions
from rackwright.model.settings import Burnin
from rackwright.model.sku import Metric
from rackwright.model.types import NodeRole
from rackwright.status import Status
from tests.factories import RunsSlurm, make_cluster, make_node
from tests.unit.burnin.head import Head, cluster_of, table
from tests.unit.burnin.test_alone import HasDcgm, diag_text, eight
from tests.unit.burnin.test_copies import H800, labelled
from tests.unit.burnin.test_ports import all_rails
from tests.unit.health.healthy import dcgm_diag

H100 = catalogue()["hgx-h100"]
GIB = 2**30


class HasPrograms(RoleOptions, ProvidesCollectives):
    @property
    def program_folders(self):
        return ("/opt/hpc/nccl-tests/bin", "/opt/hpc/bin")


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("rackwright.burnin.readiness.PATIENCE_SECONDS", 0)


def plan(asked, sku=H100, hours=None, **settings):
    node, declared = make_node("w1", 1, sku=sku), Burnin(**settings)
    return plan_of(declared, engine_for(declared, node), sku, asked, hours)


def test_profiles_on_gpus():
    quick, full, soak, none = (plan(name) for name in ("quick", "acceptance", "soak", None))
    assert (quick.collectives, quick.smallest, quick.largest) == (("all_reduce",), GIB, 8 * GIB)
    assert (quick.diag_level, quick.gemm_seconds, quick.copies, quick.ports) == (0, 0, False, False)
    assert (len(full.collectives), full.smallest, full.largest) == (6, 8, 16 * GIB)
    assert (full.diag_level, full.gemm_seconds, full.copies, full.ports) == (3, 60, True, True)
    assert (soak.collectives, soak.largest, soak.soak_hours) == (("all_reduce",), 8 * GIB, 24)
    assert (len(none.collectives), none.diag_level, none.copies) == (6, 0, False)
    assert plan("soak", hours=0.05).soak_hours == 0.05


def test_the_cluster_file_may_name_the_profile_and_more():
    assert plan(None, profile="quick").profile == "quick"
    assert plan("acceptance", profile="quick", diag_level=4, gemm_seconds=300).diag_level == 4
    assert plan("acceptance", gemm_seconds=300).gemm_seconds == 300
    assert plan(None, profile="soak", soak_hours=48).soak_hours == 48


def test_profiles_without_gpus_have_the_sizes_of_mpi():
    cpu = make_node("w1", 1).sku
    assert (plan("quick", cpu).smallest, plan("quick", cpu).largest) == (8 * 2**20, 64 * 2**20)
    assert (plan("acceptance", cpu).smallest, plan("acceptance", cpu).diag_level) == (8, 0)


def test_quick_without_gpus_is_each_node_then_all_of_them():
    head = Head(busbw=5.0)
    report = burnin(cluster_of(3), shell=head, profile="quick")
    assert report.exit_code is ExitCode.CLEAN
    assert head.together == [("w1", "w2", "w3")]
    assert "= 8388608, 67108864" in head.jobs[-1]
    assert report.to_json()["profile"] == "quick"


def test_acceptance_without_gpus_names_what_cannot_apply():
    report = burnin(cluster_of(3), shell=Head(), profile="acceptance")
    assert report.exit_code is ExitCode.CLEAN
    assert [found.text for found in report.groups[0].findings if found.status is Status.OUT_OF_SCOPE] == [
        "gemm: SKU test-node has no GPUs",
        "nvbandwidth: SKU test-node has no GPUs",
        "ib_write_bw: SKU test-node declares no fabric port",
    ]


class GpuHead(Head):
    """Two H100 nodes on which every program of an acceptance runs well."""

    collectives = 480.0

    def _srun(self, command):
        self.jobs.append(command)
        end = "# srun exit status 0\n"
        if "dcgmi diag" in command:
            return diag_text("w1", dcgm_diag(8)) + diag_text("w2", dcgm_diag(8)) + end
        if "dcgmproftester" in command:
            return "".join(eight(node).replace("2.53e+05", "7.71e+05") for node in ("w1", "w2")) + end
        if "nvbandwidth" in command:
            return labelled("w1", H800) + labelled("w2", H800) + end
        if "ib_write_bw" in command:
            return labelled("w1", all_rails(8, "host", "gpu")) + end
        nodes = ["w1", "w2"] if "--nodes=2" in command else [("w1", "w2")["nodelist=w2" in command]]
        collective = next(name for name in ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "sendrecv") if f"{name}_perf" in command)  # fmt: skip
        declared = Burnin()
        engine = engine_for(declared, make_node("w1", 1, sku=H100))
        alone = len(nodes) == 1
        sizes = engine.expectation(
            collective, tuple(nodes), GIB if alone else 8, (8 if alone else 16) * GIB
        ).sizes
        return table(nodes, sizes, self.collectives, per_node=8, collective=collective) + end


def gpu_cluster(**options):
    roles = {"slurm": RunsSlurm(), "dcgm": HasDcgm(), **options}
    workers = [make_node(f"w{n}", 20 + n, sku=H100, options=roles, switch="leaf1") for n in (1, 2)]
    return make_cluster(make_node("head1", 10, NodeRole.HEAD, options={"slurm": RunsSlurm()}), *workers)


def test_an_acceptance_of_two_sound_nodes_passes_by_the_floors_of_the_catalogue():
    head = GpuHead()
    report = burnin(gpu_cluster(), shell=head, profile="acceptance")
    [group] = report.groups
    [few] = group.all_findings
    assert few.status is Status.OUT_OF_SCOPE
    assert few.text.startswith("nodes alone through their ports: measured, not judged: ")
    assert [one.busbw_gbs for one in group.loopback] == [480.0, 480.0]
    assert sum("NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 " in job for job in head.jobs) == 2
    assert report.exit_code is ExitCode.CLEAN
    programs = ("dcgmi diag", "dcgmproftester", "nvbandwidth", "ib_write_bw", "--nodes=1", "--nodes=2")
    first = [next(n for n, job in enumerate(head.jobs) if program in job) for program in programs[:5]]
    assert first == sorted(first), "static, alone, ports, then the collectives of a node, then of all"
    assert "-r 3 -j" in head.jobs[0]
    assert "dcgmproftester" in head.jobs[1]
    assert "-d 60" in head.jobs[1]
    assert (len(group.gemm), len(group.copies), len(group.ports), len(group.measurements)) == (16, 32, 16, 6)
    assert group.floor.busbw_gbs == 400


def test_an_acceptance_without_the_tools_is_unknown_by_name():
    class Bare(GpuHead):
        def _srun(self, command):
            if "nvbandwidth" in command or "ib_write_bw" in command:
                tool = "nvbandwidth" if "nvbandwidth" in command else "ib_write_bw"
                return (
                    "".join(f"{node} {tool}: not found\n" for node in ("w1", "w2")) + "# srun exit status 0\n"
                )
            return super()._srun(command)

    report = burnin(gpu_cluster(), shell=Bare(), profile="acceptance")
    assert report.exit_code is ExitCode.UNKNOWN
    texts = [found.text for found in report.groups[0].findings]
    assert any(text.endswith("0 of 8 GPUs of w1 have a figure: nvbandwidth: not found") for text in texts)
    assert any(
        text.endswith("0 of 8 rails of w1 -> w2 have a figure: ib_write_bw: not found") for text in texts
    )


def test_a_node_whose_nvlink_is_slow_fails_before_the_fabric_is_measured():
    head = GpuHead()
    head.collectives = 430.0  # over the floor of two nodes, under that of one
    report = burnin(gpu_cluster(), shell=head, profile="quick")
    assert report.exit_code is ExitCode.CHECK_FAILED
    assert (
        "w1 alone: 430 GB/s at 8589934592 B is below the floor of 460 GB/s (Azure"
        in report.groups[0].findings[0].text
    )
    assert not any("--nodes=2" in job for job in head.jobs)


def test_programs_are_looked_for_in_the_folders_of_their_role_first():
    node = make_node("w1", 1, sku=H100, options={"hpc_stack": HasPrograms()})
    step = engine_for(Burnin(), node).step("all_reduce", ("w1",), 8, 64)
    assert step.command[-1].startswith('PATH="/opt/hpc/nccl-tests/bin:/opt/hpc/bin:$PATH:/usr/local/bin:')
    bare = engine_for(Burnin(), make_node("w1", 1, sku=H100)).step("all_reduce", ("w1",), 8, 64)
    assert bare.command[-1].startswith('PATH="$PATH:/usr/local/bin:/opt/nccl-tests/build:')


def test_timing_alone_checks_no_values_and_says_so():
    engine = engine_for(Burnin(check_values=False), make_node("w1", 1, sku=H100))
    assert "-c 0" in engine.step("all_reduce", ("w1",), 8, 64).command[-1]
    assert engine.expectation("all_reduce", ("w1",), 8, 64).values_checked is False


FLOOR = H100.floor(Metric.GEMM_BF16_TFLOPS)


def gemm(value, slow=None, slow_value="2.31e+05"):
    return judge_gemm(eight("w1", slow, slow_value).replace("2.53e+05", value), None, ("w1",), 8, FLOOR)


def test_a_gpu_under_the_catalogues_floor_fails_although_it_is_near_the_median():
    [found] = gemm("7.60e+05", slow=5, slow_value="7.10e+05")  # 6.6 % below the median, under 715
    assert found.status is Status.FAIL
    assert found.text.startswith("gemm: GPU 5 of w1 reaches 710.0 TFLOPS, below the floor of 715 TFLOPS (")


def test_a_fleet_under_the_floor_is_unknown_and_one_over_it_passes():
    [found] = gemm("6.00e+05")
    assert found.status is Status.UNKNOWN
    assert "the median of 8 GPUs is 600.0 TFLOPS, below the floor of 715 TFLOPS" in found.text
    assert gemm("7.60e+05") == []
