"""The cuda role."""

from __future__ import annotations

import subprocess

import pytest

from rackwright.roles.cuda.options import CudaOptions
from rackwright.roles.cuda.verify import CHECKS
from rackwright.roles.nvidia_driver.options import NvidiaDriverOptions
from tests.unit.roles.driver_sites import SKU, debian
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, judged, planned
from tests.unit.roles.stack_sites import site, worker
from tests.unit.roles.stack_tools import installed, xml

PROFILE = "/etc/profile.d/rackwright-cuda.sh"
PACKAGES = {"nvidia-cuda-toolkit": "11.8.89~11.8.0-5~deb12u1"}
INSTALLED = "the CUDA toolkit is installed as locked and held"
RELEASE = "nvcc is the locked release"
FOUND = "login shells find the locked toolkit"
RUNS = "the loaded driver can run the toolkit"
NVCC = "/usr/bin/nvcc --version"
SAYS = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 11.8, V11.8.89\n"
SHELL = "bash -lc 'command -v nvcc'"
OLD = ("<driver_version>580.173.02<", "<driver_version>418.226.00<")


@pytest.fixture
def cluster(tmp_path):
    return debian(tmp_path, {"cuda": CudaOptions()})


def test_debian_s_own_toolkit(cluster):
    plan = planned(cluster, cluster.by_name["gpu1"])
    assert [op.name for op in plan.operations if op.role == "cuda"] == [
        "Install the CUDA toolkit as locked",
        "Add the toolkit to PATH in login shells",
    ]
    (command,) = commands(plan, "Install the CUDA toolkit as locked")
    assert "install 'nvidia-cuda-toolkit=11.8.89~11.8.0-5~deb12u1'" in command
    assert "apt-mark hold nvidia-cuda-toolkit" in command
    assert content(plan, PROFILE) == (
        "# Written by rackwright; changes made here are undone.\nexport CUDA_HOME=/usr/lib/cuda\n"
    )
    plain = planned(cluster, cluster.by_name["cpu1"])
    assert not [op for op in plain.operations if op.role == "cuda"]
    assert claimed("cuda", CHECKS, cluster.by_name["cpu1"]) == ()


def _nvidia(folder):
    made = site(folder, {"cuda": CudaOptions()}, worker("gpu1", 11, SKU))
    text = made.lock_path.read_text()
    text = text.replace("  cuda: null\n", "  cuda: '13.0'\n").replace(
        "  packages:\n", "  packages:\n    cuda-toolkit-13-0: 13.0.3-1\n"
    )
    made.lock_path.write_text(
        text.replace("  components:\n", "  components:\n    cuda: [cuda-toolkit-13-0]\n")
    )
    return made


def test_nvidia_s_releases_stand_side_by_side(tmp_path):
    made = _nvidia(tmp_path)
    plan = planned(made, made.by_name["gpu1"])
    (command,) = commands(plan, "Make the locked toolkit the default")
    assert command == "update-alternatives --set cuda /usr/local/cuda-13.0"
    script = content(plan, PROFILE)
    shown = subprocess.run(
        ["sh", "-c", f'PATH=/usr/bin:/bin\n{script}{script}echo "$PATH $CUDA_HOME"'],
        capture_output=True, text=True, check=True, timeout=240,
    ).stdout  # fmt: skip
    assert shown == "/usr/local/cuda-13.0/bin:/usr/bin:/bin /usr/local/cuda-13.0\n"
    answers = {"/usr/local/cuda-13.0/bin/nvcc --version": SAYS.replace("11.8", "13.0")}
    assert judged("cuda", CHECKS, RELEASE, made, made.by_name["gpu1"], FakeHost(answers)).status == "PASS"


def test_without_the_path(tmp_path):
    made = debian(tmp_path, {"cuda": CudaOptions(profile=False)})
    plan = planned(made, made.by_name["gpu1"])
    assert "Add the toolkit to PATH in login shells" not in [op.name for op in plan.operations]
    assert FOUND not in claimed("cuda", CHECKS, made.by_name["gpu1"])


def test_what_is_refused(tmp_path):
    options = CudaOptions()
    made = debian(tmp_path, {"cuda": options}, cuda="none")
    assert [message for _, message, _ in options.lock_problems(made)] == [
        "The lock omits cuda for t4-4x on debian-12."
    ]
    alone = made.model_copy(update={"nodes": made.nodes[:1]})
    assert [message for _, message, _ in options.problems(alone)] == [
        "No node of the role cuda has NVIDIA's GPUs."
    ]
    nvidia = _nvidia(tmp_path)
    assert [hint for _, _, hint in options.problems(nvidia)] == ["add a section nvidia_driver"]
    both = site(tmp_path, {"cuda": options, "nvidia_driver": NvidiaDriverOptions()}, worker("gpu1", 11, SKU))
    assert list(options.problems(both)) == []


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (INSTALLED, installed(PACKAGES), "PASS", None),
        (INSTALLED, installed(PACKAGES, held=False), "FAIL", "nvidia-cuda-toolkit is not held"),
        (INSTALLED, {}, "UNKNOWN", None),
        (RELEASE, {NVCC: SAYS}, "PASS", "11.8"),
        (RELEASE, {NVCC: SAYS.replace("11.8", "12.4")}, "FAIL", "nvcc is release 12.4, not the locked 11.8"),
        (RELEASE, {NVCC: "?"}, "UNKNOWN", "nvcc reports no release: '?'"),
        (RELEASE, {}, "UNKNOWN", None),
        (FOUND, {SHELL: "/usr/bin/nvcc\n"}, "PASS", "/usr/bin/nvcc"),
        (FOUND, {SHELL: "/opt/cuda/bin/nvcc\n"}, "FAIL", "a login shell finds /opt/cuda/bin/nvcc, not /usr/bin/nvcc"),
        (FOUND, {SHELL: (1, "", "")}, "FAIL", "a login shell finds no nvcc, not /usr/bin/nvcc"),
        (FOUND, {}, "UNKNOWN", "cannot run `bash`: not found"),
        (RUNS, xml(SKU), "PASS", "driver 580.173.02, at least 450.80.02 is needed"),
        (RUNS, xml(SKU, OLD), "FAIL", "driver 418.226.00 is loaded, but CUDA 11.8 needs 450.80.02 or newer"),
        (RUNS, {}, "UNKNOWN", None),
    ],
)  # fmt: skip
def test_check(cluster, name, answers, status, evidence):
    found = judged("cuda", CHECKS, name, cluster, cluster.by_name["gpu1"], FakeHost(answers))
    assert (found.status, evidence or found.evidence) == (status, found.evidence)
