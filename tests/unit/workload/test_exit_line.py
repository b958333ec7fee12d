"""The exit status of a step arrives through every filter that the burn-in gives its output."""

from __future__ import annotations

import subprocess

import pytest

from rackwright.burnin import alone, engines
from rackwright.command import CommandResult
from rackwright.workload.exit_line import ExitLine
from rackwright.workload.kubernetes.step_objects import EXIT as MPIRUN
from rackwright.workload.protocol import JobStep
from rackwright.workload.slurm.srun import srun_line, srun_output

FILTERS = {"none": None, "gemm": alone._FILTER, "nccl": engines.NCCL_FILTER}


@pytest.mark.parametrize("launcher", ["srun", "mpirun", "Ray's driver"])
@pytest.mark.parametrize("status", [0, 7, 124])
@pytest.mark.parametrize("used", FILTERS)
def test_the_status_passes_every_filter(used, status, launcher):
    line = ExitLine(launcher)
    words = f"sh -c 'echo (1e5 gflops); exit {status}'".replace("(1e5", '"(1e5').replace(
        "gflops)", 'gflops)"'
    )
    done = subprocess.run(
        ["sh", "-c", line.shell_line(words, FILTERS[used])],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    output = line.output(CommandResult("", done.returncode, done.stdout, done.stderr))
    assert (output.text.strip(), output.exit_status) == ("(1e5 gflops)", status)
    assert (output.problem is None) == (status == 0)


def test_a_matrix_product_of_sound_gpus_is_not_cut_off(tmp_path, monkeypatch):
    """Its filter keeps lines with figures and errors alone."""
    (tmp_path / "srun").write_text(
        '#!/bin/sh\necho "n1 Worker 0:0 [1004]: x: (1.89e+05 gflops)"\necho chatter\n'
    )
    (tmp_path / "srun").chmod(0o755)
    step = JobStep(("n1",), 1, ("true",), 60, output_filter=alone._FILTER)
    done = subprocess.run(
        ["sh", "-c", f"PATH={tmp_path}:$PATH; {srun_line(step, 'job', None)}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    output = srun_output(CommandResult("", done.returncode, done.stdout, done.stderr))
    assert output.problem is None
    assert output.text.splitlines()[0].endswith("(1.89e+05 gflops)")
    assert "chatter" not in output.text


def test_an_output_that_ends_before_it_is_not_sound():
    found = MPIRUN.output(CommandResult("", 0, "a figure\n", ""))
    assert (found.exit_status, found.problem) == (None, "the job's output is truncated")
