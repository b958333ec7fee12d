"""A job opens the device files of the GPUs it asked for, and no others: Slurm's cgroup of a real kernel.

The files are of NVIDIA's major number and no driver has it, so that a file a job may open is answered with ENXIO and
any other with EPERM.
"""

from __future__ import annotations

import pytest

from tests.racks.site import Site
from tests.racks.slurm_jobs import as_ada, cancel, run_job, submit
from tests.racks.vm_gpu.conftest import GPUS, SLURM

pytestmark = [pytest.mark.lab, pytest.mark.proof]
_OPEN = f"for number in $(seq 0 {GPUS - 1}); do LC_ALL=C cat /dev/nvidia$number 2>&1 || :; done"
_MAY, _MAY_NOT = "No such device or address", "Operation not permitted"


def _answers(said: str) -> list[str]:
    """Of each device file in turn."""
    *lines, status = said.strip().split("\n")
    assert status == "status 0", said
    assert [line.split(": ")[1] for line in lines] == [f"/dev/nvidia{number}" for number in range(GPUS)], said
    return [line.split(": ")[2] for line in lines]


def test_outside_of_a_job_the_kernel_refuses_none(slurm: Site) -> None:
    assert _answers(as_ada(slurm, SLURM, _OPEN)) == [_MAY, _MAY]


def test_a_job_without_gpus_opens_none(slurm: Site) -> None:
    assert _answers(run_job(slurm, SLURM, "--mem=128", _OPEN)) == [_MAY_NOT, _MAY_NOT]


def test_a_job_opens_the_gpus_it_asked_for(slurm: Site) -> None:
    assert _answers(run_job(slurm, SLURM, "--mem=128 --gres=gpu:t4:2", _OPEN)) == [_MAY, _MAY]


def test_two_jobs_of_one_gpu_each_open_different_ones(slurm: Site) -> None:
    answers = _answers(run_job(slurm, SLURM, "--mem=128 --gres=gpu:t4:1", _OPEN))
    assert sorted(answers) == [_MAY, _MAY_NOT]
    other = submit(slurm, SLURM, 900, "--gres=gpu:t4:1")
    try:
        held = slurm.on(SLURM, f"scontrol show job -d {other} | grep -o 'IDX:[0-9]*'").strip()
        beside = _answers(run_job(slurm, SLURM, "--mem=128 --gres=gpu:t4:1", _OPEN))
        assert beside == [_MAY_NOT if held == f"IDX:{number}" else _MAY for number in range(GPUS)]
    finally:
        cancel(slurm, other)
