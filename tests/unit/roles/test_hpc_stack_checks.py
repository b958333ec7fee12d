"""The hpc_stack role's checks: each seen to pass, to fail and not to know.

`ompi_info` is recorded on Debian 13 with Open MPI 5.0.7 (2026-11-23), its lines about UCX and CUDA; what ldd prints of
all_reduce_perf is made after what it prints of ompi_info there.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from rackwright.roles.hpc_stack import texts
from rackwright.roles.hpc_stack.options import HpcStackOptions
from rackwright.roles.hpc_stack.recipes import recipes
from rackwright.roles.hpc_stack.releases import Release
from rackwright.roles.hpc_stack.verify import _JOB, CHECKS
from rackwright.roles.slurm.options import SlurmOptions
from tests.unit.roles.container_site import never_passes
from tests.unit.roles.fake_facts import answer, files
from tests.unit.roles.fake_host import FakeHost, claimed, judged
from tests.unit.roles.hpc_sites import NCCL, WHOLE, cpu_site, gpu_site
from tests.unit.roles.sites import site as plain_site
from tests.unit.roles.stack_tools import installed

PACKAGES = "the packages of MPI and its tools are installed"
BUILT = "everything was built as declared"
OPEN_MPI = "Open MPI is as declared, with UCX"
ENVIRONMENT = "the MPI users' environment is as declared"
STARTS = "MPI processes start through PMIx"
NCCL_HELD = "NCCL is installed as locked and held"
PERF = "all_reduce_perf loads the locked NCCL and CUDA"

INFO = (Path(__file__).parent / "recorded" / "hpc_stack" / "ompi_info.txt").read_text()
ASK_INFO = "/opt/rackwright/openmpi/bin/ompi_info --parsable --all"
WHOLE_507 = WHOLE.model_copy(update={"openmpi": Release(version="5.0.7", sha256="a" * 64)})
WITH_CUDA = INFO.replace("mpi_built_with_cuda_support:value:false", "mpi_built_with_cuda_support:value:true")
LDD = "ldd /opt/rackwright/nccl-tests/bin/all_reduce_perf"
LOADS = """\
\tlinux-vdso.so.1 (0x00007ffd4a5f2000)
\tlibcudart.so.13 => /usr/local/cuda-13.0/lib64/libcudart.so.13 (0x00007f1)
\tlibnccl.so.2 => /lib/x86_64-linux-gnu/libnccl.so.2 (0x00007f2)
\tlibmpi.so.40 => /opt/rackwright/x/lib/libmpi.so.40 (0x00007f3)
"""


@pytest.fixture
def gpus(tmp_path):
    """gpu1, its node, and what it builds."""
    made = gpu_site(tmp_path, WHOLE_507)
    node = made.by_name["gpu1"]
    return made, node, recipes(made, node, WHOLE_507)


def result(name, answers, made, node):
    return judged("hpc_stack", CHECKS, name, made, node, FakeHost(answers))


def folders(parts, **changed):
    found = {recipe.part: recipe.folder for recipe in parts} | changed
    return {line: reported for one in parts for line, reported in answer(one.read, found[one.part]).items()}


def loads(parts, nccl="2.30.4", cuda="/usr/local/cuda-13.0", mpi=None, text=LOADS):
    prefix = mpi or next(recipe.prefix for recipe in parts if recipe.part == "openmpi")
    return {
        LDD: text,
        "readlink -f /lib/x86_64-linux-gnu/libnccl.so.2": f"/usr/lib/x86_64-linux-gnu/libnccl.so.{nccl}\n",
        "readlink -f /usr/local/cuda-13.0/lib64/libcudart.so.13": f"{cuda}/lib64/libcudart.so.13.0.3\n",
        "readlink -f /usr/local/cuda-13.0": "/usr/local/cuda-13.0\n",
        "readlink -f /opt/rackwright/x/lib/libmpi.so.40": f"{prefix}/lib/libmpi.so.40.40.7\n",
    }


def test_who_claims_what(gpus):
    _, node, _ = gpus
    assert claimed("hpc_stack", CHECKS, node) == tuple(check.name for check in CHECKS)
    plain = cpu_site(HpcStackOptions())
    assert claimed("hpc_stack", CHECKS, plain.by_name["gpu1"]) == (
        PACKAGES, OPEN_MPI, ENVIRONMENT, STARTS, NCCL_HELD
    )  # fmt: skip
    found = result(NCCL_HELD, {}, plain, plain.by_name["gpu1"])
    assert (found.status, found.evidence) == ("OUT OF SCOPE", "the cluster locks no NCCL")
    found = result(STARTS, {}, plain, plain.by_name["gpu1"])
    assert (found.status, found.evidence) == (
        "OUT OF SCOPE",
        "no workload manager runs on this node that starts MPI's processes",
    )


def test_no_check_passes_without_knowing(gpus):
    made, node, _ = gpus
    never_passes("hpc_stack", CHECKS, made, node)


def test_packages(gpus):
    made, node, _ = gpus
    wanted = texts.packages(node, WHOLE_507)
    there = dict.fromkeys(wanted, "1-1")
    assert result(PACKAGES, installed(there), made, node).status == "PASS"
    asked = installed({name: "1-1" for name in wanted if name != "make"}, asked=wanted)
    found = result(PACKAGES, asked, made, node)
    assert (found.status, found.evidence) == ("FAIL", "not installed: make")
    assert result(PACKAGES, {}, made, node).status == "UNKNOWN"


def test_built(gpus):
    made, node, parts = gpus
    found = result(BUILT, folders(parts), made, node)
    assert (found.status, found.evidence) == (
        "PASS", "PMIx 4.2.9, UCX 1.20.0, Open MPI 5.0.7, nccl-tests 2.19.6"
    )  # fmt: skip
    found = result(BUILT, folders(parts, ucx="ucx-1.19.0-0123456789"), made, node)
    (ucx,) = (recipe for recipe in parts if recipe.part == "ucx")
    assert (found.status, found.evidence) == (
        "FAIL", f"/opt/rackwright/ucx leads to ucx-1.19.0-0123456789, not to {ucx.folder}"
    )  # fmt: skip
    silent = {**folders(parts, openmpi=""), "test -d /": ""}
    found = result(BUILT, silent, made, node)
    assert (found.status, found.evidence) == ("FAIL", "Open MPI 5.0.7 is not built")
    assert result(BUILT, {}, made, node).status == "UNKNOWN"


@pytest.mark.parametrize(
    ("text", "status", "evidence"),
    [
        (WITH_CUDA, "PASS", "Open MPI 5.0.7 with UCX and CUDA"),
        (INFO, "FAIL", "Open MPI 5.0.7 was built without CUDA"),
        (WITH_CUDA.replace("full:5.0.7", "full:4.1.4"), "FAIL",
         "/opt/rackwright/openmpi/bin/ompi_info is Open MPI 4.1.4, not 5.0.7"),
        (WITH_CUDA.replace("mca:pml:ucx", "mca:pml:other"), "FAIL",
         "Open MPI 5.0.7 has no UCX (no component pml:ucx)"),
        ("bash: no such thing\n", "UNKNOWN", "ompi_info reports no version: 'bash: no such thing'"),
    ],
)  # fmt: skip
def test_open_mpi(gpus, text, status, evidence):
    made, node, _ = gpus
    found = result(OPEN_MPI, {ASK_INFO: text}, made, node)
    assert (found.status, found.evidence) == (status, evidence)


def test_the_distribution_s_open_mpi_may_be_any():
    made = cpu_site(HpcStackOptions())
    asked = {"/usr/bin/ompi_info --parsable --all": INFO}
    found = result(OPEN_MPI, asked, made, made.by_name["gpu1"])
    assert (found.status, found.evidence) == ("PASS", "Open MPI 5.0.7 with UCX")


def test_environment(gpus):
    made, node, parts = gpus
    there = texts.declared(WHOLE_507, parts)
    assert result(ENVIRONMENT, files(there), made, node).status == "PASS"
    assert result(ENVIRONMENT, files({**there, texts.PROFILE: "x\n"}), made, node).status == "FAIL"
    plain = cpu_site(HpcStackOptions())
    none = {texts.PROFILE: None, texts.MODULEFILE: None}
    found = result(ENVIRONMENT, files(none), plain, plain.by_name["gpu1"])
    assert (found.status, found.evidence) == ("PASS", "nothing is set, as declared")
    assert result(ENVIRONMENT, {}, plain, plain.by_name["gpu1"]).status == "UNKNOWN"


TWO = "rackwright-mpi 1 2 3 gpu1\nrackwright-mpi 0 2 3 gpu1\n"


@pytest.mark.parametrize(
    ("answered", "status", "evidence"),
    [
        (TWO, "PASS", "two processes found each other through PMIx"),
        ("rackwright-mpi 0 1 1 gpu1\nrackwright-mpi 0 1 1 gpu1\n", "FAIL",
         "two processes printed rank, size and sum as [['0', '1', '1'], ['0', '1', '1']]: they did not find each other"),
        ((1, "", "srun: error: gpu1: tasks 0-1: Segmentation fault\n"), "FAIL",
         "srun exited 1: srun: error: gpu1: tasks 0-1: Segmentation fault"),
        ((1, "", "srun: error: Unable to allocate resources: Requested nodes are busy\n"), "UNKNOWN",
         "the processes did not start: srun: error: Unable to allocate resources: Requested nodes are busy"),
        ((124, "", ""), "UNKNOWN", "the processes did not start: nothing"),
    ],
)  # fmt: skip
def test_processes_start(answered, status, evidence):
    options = HpcStackOptions()
    made = plain_site({"hpc_stack": options, "slurm": SlurmOptions()})
    node = made.by_name["gpu1"]
    line = f"sh -c {shlex.quote(_JOB)} job 1 gpu1 {shlex.join(options.mpi_command(node))}"
    found = result(STARTS, {line: answered}, made, node)
    assert (found.status, found.evidence) == (status, evidence)


def test_nccl(gpus):
    made, node, _ = gpus
    assert result(NCCL_HELD, installed(NCCL), made, node).status == "PASS"
    assert result(NCCL_HELD, installed(NCCL, held=False), made, node).status == "FAIL"
    assert result(NCCL_HELD, {}, made, node).status == "UNKNOWN"


def test_all_reduce_perf(gpus):
    made, node, parts = gpus
    assert result(PERF, loads(parts), made, node).status == "PASS"
    wrong = {
        "it loads /usr/lib/x86_64-linux-gnu/libnccl.so.2.22.3, not the locked NCCL 2.30.4": {
            "nccl": "2.22.3"
        },
        "it loads /usr/local/cuda-12.4/lib64/libcudart.so.13.0.3, not the locked CUDA in /usr/local/cuda-13.0": {
            "cuda": "/usr/local/cuda-12.4"
        },
        "libnccl is not found by the loader": {
            "text": LOADS.replace("/lib/x86_64-linux-gnu/libnccl.so.2 (0x00007f2)", "not found")
        },
    }
    for evidence, given in wrong.items():
        found = result(PERF, loads(parts, **given), made, node)
        assert (found.status, found.evidence) == ("FAIL", evidence)
    found = result(PERF, loads(parts, mpi="/usr"), made, node)
    assert found.evidence.startswith("it loads /usr/lib/libmpi.so.40.40.7, not the declared Open MPI in ")
    assert result(PERF, {}, made, node).status == "UNKNOWN"
    static = loads(parts, text="\tnot a dynamic executable\n")
    found = result(PERF, static, made, node)
    assert (found.status, found.evidence) == ("UNKNOWN", "ldd lists no libnccl")


@pytest.mark.parametrize(
    ("printed", "mib"),
    [("main 1881\n", 627), ("main 1881+\nlong 1881\n", 627), ("main 2040000\n", 1024), ("", 1024)],
)
def test_the_processes_get_memory_that_cgroups_would_hold_them_to(printed, mib, tmp_path):
    for name, script in {"sinfo": f"printf '{printed}'", "timeout": 'echo "$@"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["sh", "-c", _JOB, "job", "1", "gpu1", "true"],
        env={"PATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    queue = "-p main " if printed else ""
    assert f"--mem={mib} -N 1 -n 2 --overcommit --mpi=pmix {queue}-w gpu1 true\n" in ran.stdout
