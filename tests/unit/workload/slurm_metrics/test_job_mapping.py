"""The prolog and epilog that say to dcgm-exporter which job has which GPU, run with what slurmd sets."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from rackwright.render import render

SLURMD = {
    "PATH": "/usr/bin:/bin",
    "CUDA_VISIBLE_DEVICES": "0,1",
    "SLURMD_NODENAME": "worker1",
    "SLURM_JOB_ACCOUNT": "physics",
    "SLURM_JOB_GID": "3001",
    "SLURM_JOB_NODELIST": "worker[1-2]",
    "SLURM_JOB_UID": "3001",
    "SLURM_JOB_USER": "bob",
    "SLURM_JOB_WORK_DIR": "/tmp",
}
"""Some of what a prolog and an epilog of slurmd had with Slurm 24.11.5 (lab rack, 2026-11-27), besides job and GPUs."""


class Node:
    """A node's folder, and its slurmd."""

    def __init__(self, tmp_path):
        self.folder = tmp_path / "run" / "dcgm-jobs"
        self.log = tmp_path / "log"
        bin_ = tmp_path / "bin"
        bin_.mkdir()
        (bin_ / "logger").write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{self.log}\n')
        (bin_ / "logger").chmod(0o755)
        self.path = f"{bin_}:{SLURMD['PATH']}"

    def run(self, stage, job, gpus=None, shell="sh"):
        text = render(f"dcgm_exporter/job-mapping-{stage}.j2", folder=self.folder)
        environment = {**SLURMD, "PATH": self.path}
        environment |= {} if job is None else {"SLURM_JOB_ID": job}
        environment |= {} if gpus is None else {"SLURM_JOB_GPUS": gpus}
        done = subprocess.run(
            [shell, "-c", text], env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        return done.returncode, done.stdout

    @property
    def files(self):
        return {name: (self.folder / name).read_text() for name in sorted(os.listdir(self.folder))}


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_job_from_its_prolog_to_its_epilog(node, shell):
    assert node.run("prolog", "1556", "0,1,2", shell) == (0, "")
    assert node.run("prolog", "1558", "3", shell) == (0, "")
    assert node.files == {"0": "1556\n", "1": "1556\n", "2": "1556\n", "3": "1558\n"}
    assert oct((node.folder / "0").stat().st_mode & 0o777) == "0o644"
    assert node.run("epilog", "1556", "0,1,2", shell) == (0, "")
    assert node.files == {"0": "", "1": "", "2": "", "3": "1558\n"}, "emptied and not removed"
    assert node.run("epilog", "1558", "3", shell) == (0, "")
    assert set(node.files.values()) == {""}


def test_a_job_without_gpus(node):
    assert node.run("prolog", "3") == (0, "")
    assert not node.folder.exists()
    assert node.run("epilog", "3") == (0, "")


def test_a_job_whose_epilog_never_ran_is_replaced(node):
    node.run("prolog", "7", "0,1")
    node.run("prolog", "8", "1")
    assert node.files == {"0": "7\n", "1": "8\n"}
    node.run("epilog", "7", "0,1")
    assert node.files == {"0": "", "1": "8\n"}, "what is another job's by now stays"


def test_numbers_that_are_the_beginning_of_others(node):
    node.run("prolog", "15", "1")
    node.run("prolog", "155", "11")
    node.run("epilog", "15", "1")
    assert node.files == {"1": "", "11": "155\n"}


@pytest.mark.parametrize("stage", ["prolog", "epilog"])
@pytest.mark.parametrize("job", [None, "", "1;touch x", "$(id)", "../1", "1\n2", "-1"])
def test_what_is_no_job(node, stage, job):
    node.folder.mkdir(parents=True)
    (node.folder / "0").write_text("7\n")
    assert node.run(stage, job, "0,1") == (0, "")
    assert node.files == {"0": "7\n"}


@pytest.mark.parametrize("gpus", ["../../etc", "0-3", "*", "$(id)", "1 2", "GPU-1234", "MIG-5"])
def test_what_is_no_gpu(node, gpus, tmp_path):
    assert node.run("prolog", "7", f"0,{gpus},,5") == (0, "")
    assert node.files == {"0": "7\n", "5": "7\n"}
    assert node.log.read_text() == (
        f"-p daemon.warning -t slurm-prolog job 7: not the number of a GPU: {gpus}\n"
    )
    assert sorted(os.listdir(tmp_path)) == ["bin", "log", "run"]


@pytest.mark.parametrize("stage", ["prolog", "epilog"])
def test_a_folder_that_cannot_be_drains_no_node(node, stage):
    node.folder.parent.mkdir(parents=True)
    node.folder.write_text("a file")
    assert node.run(stage, "7", "0")[0] == 0


def test_other_files_are_left_alone(node):
    node.folder.mkdir(parents=True)
    for name in ("README", "0.old", "x0"):
        (node.folder / name).write_text("7\n")
    node.run("prolog", "7", "0")
    node.run("epilog", "7", "0")
    assert node.files == {"0": "", "0.old": "7\n", "README": "7\n", "x0": "7\n"}


def test_jobs_that_start_and_end_at_once(node):
    jobs = [(str(100 + gpu), str(gpu)) for gpu in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda job: node.run("prolog", *job), jobs)) == {(0, "")}
        assert node.files == {gpu: f"{job}\n" for job, gpu in jobs}
        assert set(pool.map(lambda job: node.run("epilog", *job), jobs)) == {(0, "")}
    assert node.files == {gpu: "" for _, gpu in jobs}
