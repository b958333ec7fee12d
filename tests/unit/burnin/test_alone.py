"""DCGM's diagnostic and load generator on every node. Not yet run on GPUs: output as published, by its source."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from rich.console import Console

from rackwright.burnin import burnin
from rackwright.burnin.alone import GpuFigure, by_node, judge_diag, judge_gemm, parse_gemm
from rackwright.cli.burnin_view import show_burnin
from rackwright.errors import ExitCode
from rackwright.model.interfaces import RunsDcgm
from rackwright.model.options import RoleOptions
from rackwright.model.settings import Burnin
from rackwright.model.types import NodeRole
from rackwright.status import Status
from tests.factories import RunsSlurm, make_cluster, make_gpu_sku, make_node
from tests.unit.burnin.head import Head
from tests.unit.health.healthy import dcgm_diag

NOTICES = "Skipping CreateDcgmGroups() since DCGM validation is disabled\n"


class HasDcgm(RoleOptions, RunsDcgm):
    @property
    def dcgm_host(self) -> str:
        return "127.0.0.1:5555"


def figures(
    node,
    gpu,
    *gflops,
    form="Worker {gpu}:0 [1004]: TensorEngineActive: generated ???, dcgm 0 ({gflops} gflops).",
):
    """Lines of dcgmproftester (dcgmproftester/PhysicalGpu.cpp of NVIDIA/DCGM; published logs of 3.x and 4.x)."""
    return "".join(f"{node} {form.format(gpu=gpu, gflops=one)}\n" for one in gflops)


def eight(node, slow=None, value="2.31e+05"):
    return "".join(
        figures(node, gpu, "1.2e+05", *[value if gpu == slow else "2.53e+05"] * 3) for gpu in range(8)
    )


def test_the_first_figure_is_left_out_and_the_median_kept():
    old = "Worker {gpu}:0[1004]: TensorEngineActive: generated ???, dcgm 0.000 ({gflops} gflops)"
    text = f"w1 {NOTICES}" + figures("w1", 0, "1.78e+05", "1.89e+05", "1.90e+05", "1.89e+05")
    text += figures("w2", 3, "250362.2", "252917.0", "253971.7", "253700.2", form=old)
    assert parse_gemm(text) == [GpuFigure("w1", 0, 189.0), GpuFigure("w2", 3, 253.7)]
    assert parse_gemm(NOTICES) == []


def test_a_slow_gpu_is_named():
    [found] = judge_gemm(eight("w1") + eight("w2", slow=5), None, ("w1", "w2"), 8)
    assert found.status is Status.FAIL
    assert found.text == (
        "gemm: GPU 5 of w2 reaches 231.0 TFLOPS, 8.7 % below the median of 253.0 (most 7 %)"
    )


def test_a_gpu_within_seven_percent_is_not():
    assert judge_gemm(eight("w1", slow=5, value="2.36e+05"), None, ("w1",), 8) == []


def test_a_gpu_without_a_figure_is_unknown():
    some = "".join(figures("w1", gpu, "2.5e+05", "2.5e+05") for gpu in range(7))
    some += "w1 sh: dcgmproftester13: not found\n"
    found = judge_gemm(some, "srun exited 1", ("w1", "w2"), 8)
    assert [(one.status, one.text) for one in found] == [
        (Status.UNKNOWN, "gemm: 7 of 8 GPUs of w1 have a figure: sh: dcgmproftester13: not found"),
        (Status.UNKNOWN, "gemm: 0 of 8 GPUs of w2 have a figure: no output"),
        (Status.UNKNOWN, "gemm: srun exited 1"),
    ]


def diag_text(node, told):
    return "".join(f"{node} {line}\n" for line in json.dumps(told, indent=1).splitlines())


def test_diagnostics_are_judged_by_node():
    ecc = {"warning": "double-bit ECC error", "error_severity": 6}
    text = diag_text("w1", dcgm_diag(8)) + diag_text("w2", dcgm_diag(8, status="Fail", warnings=[ecc]))
    assert set(by_node(text)) == {"w1", "w2"}
    found = judge_diag(text, None, ("w1", "w2", "w3"))
    assert [one.status for one in found] == [Status.FAIL, Status.UNKNOWN]
    assert found[0].text == "dcgmi diag: w2: GPU 7: memory: double-bit ECC error"
    assert found[1].text.startswith("dcgmi diag: w3: ")
    assert judge_diag(diag_text("w1", dcgm_diag(8)), None, ("w1",)) == []


def test_a_diagnostic_that_skipped_everything_is_unknown():
    skipped = json.loads(json.dumps(dcgm_diag(2)).replace("Pass", "Skip"))
    [found] = judge_diag(diag_text("w1", skipped), None, ("w1",))
    assert (found.status, found.text) == (Status.UNKNOWN, "dcgmi diag: w1: no test passed")


class GpuHead(Head):
    """A head whose nodes have GPUs; the collectives print nothing that can be read."""

    def _srun(self, command):
        self.jobs.append(command)
        if "dcgmi diag" in command:
            return diag_text("w1", dcgm_diag(8)) + diag_text("w2", dcgm_diag(8)) + "# srun exit status 0\n"
        if "dcgmproftester" in command:
            return eight("w1") + eight("w2", slow=5) + "# srun exit status 0\n"
        return "# srun exit status 0\n"


def gpu_cluster(dcgm=True, **settings):
    options = {"slurm": RunsSlurm(), **({"dcgm": HasDcgm()} if dcgm else {})}
    workers = [make_node(f"w{n}", 20 + n, sku=make_gpu_sku(), options=options) for n in (1, 2)]
    head = make_node("head1", 10, NodeRole.HEAD, options={"slurm": RunsSlurm()})
    return make_cluster(head, *workers, burnin=Burnin(**settings))


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("rackwright.burnin.readiness.PATIENCE_SECONDS", 0)


def test_a_burn_in_names_the_slow_gpu_before_the_collectives():
    head = GpuHead()
    report = burnin(gpu_cluster(diag_level=2, gemm_seconds=10), shell=head)
    assert report.exit_code is ExitCode.CHECK_FAILED
    diag, gemm = head.jobs[:2]
    assert "dcgmi diag --host 127.0.0.1:5555 -r 2 -j" in diag
    assert "--no-dcgm-validation -t 1004 -d 10" in gemm
    for job in (diag, gemm):
        assert "--ntasks-per-node=1" in job
        assert "--gres=gpu:h100:8" in job
    [group] = report.groups
    assert [one.text for one in group.findings if one.status is Status.FAIL] == [
        "gemm: GPU 5 of w2 reaches 231.0 TFLOPS, 8.7 % below the median of 253.0 (most 7 %)"
    ]
    assert group.to_json()["gemm"][0] == {"node": "w1", "gpu": 0, "tflops": 253.0}
    shown = StringIO()
    show_burnin(report, Console(file=shown, width=200))
    assert "gemm: 231.0 (GPU 5 of w2) to 253.0 TFLOPS" in shown.getvalue()


def test_neither_runs_unless_it_is_asked_for():
    head = GpuHead()
    burnin(gpu_cluster(), shell=head)
    assert not [job for job in head.jobs if "dcgm" in job]


def test_without_the_role_it_is_unknown():
    head = GpuHead()
    report = burnin(gpu_cluster(dcgm=False, gemm_seconds=10), shell=head)
    assert not [job for job in head.jobs if "dcgm" in job]
    assert report.groups[0].findings[0].text == ("gemm: needs the dcgm role, which w[1-2] lacks")
