"""The hpc_stack role: options, problems, what is built and with which flags, files."""

from __future__ import annotations

import subprocess

import pytest

from rackwright.osfamily.known import RELEASES
from rackwright.roles.gdrcopy.options import GdrcopyOptions
from rackwright.roles.hpc_stack import capabilities, texts
from rackwright.roles.hpc_stack.options import HpcStackOptions
from rackwright.roles.hpc_stack.recipes import recipes
from rackwright.roles.hpc_stack.releases import Release, sha256_of, tarball, url
from rackwright.roles.slurm.options import SlurmOptions
from tests.unit.roles.container_site import changed
from tests.unit.roles.fake_host import commands, content, errors_in, planned
from tests.unit.roles.hpc_sites import BUILD, SHA, TESTS, WHOLE, cpu_site, gpu_site
from tests.unit.roles.sites import worker as plain_worker
from tests.unit.roles.stack_sites import site, worker


def built(cluster, options, node="gpu1"):
    return {recipe.part: recipe for recipe in recipes(cluster, cluster.by_name[node], options)}


# Options and problems


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"openmpi": {"version": "5.0.8"}}, "`openmpi` has no effect with `mpi: distribution`."),
        ({"ucx": "distribution"}, "`ucx` has no effect with `mpi: distribution`."),
        ({"mpi": "build", "openmpi": {"version": "5"}},
         "String should match pattern '^[0-9]+(\\.[0-9]+){1,3}$'"),
        ({"compute_capabilities": ["sm_90"]}, "String should match pattern '^[0-9]{1,2}\\.[0-9]$'"),
        ({"mpi": "build", "openmpi": {"version": "5.0.8", "flags": ["$(id)"]}},
         "String should match pattern '^[A-Za-z0-9_@%+=:,./ -]+$'"),
    ],
)  # fmt: skip
def test_options_that_are_refused(given, sentence):
    assert errors_in(HpcStackOptions, given) == [sentence]


def test_slurm_names_the_new_place_of_mpi():
    assert errors_in(SlurmOptions, {"mpi_packages": True}) == [
        "`mpi_packages` is gone from slurm: the role hpc_stack installs MPI."
    ]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, []),
        ({"mpi": "build"}, []),
        ({"mpi": "build", "openmpi": {"version": "5.0.11"}},
         [("openmpi.sha256", "The SHA-256 of openmpi 5.0.11 is not declared.",
           "declare `sha256` of its tarball, or take 5.0.10")]),
        ({"mpi": "build", "ucx": {"version": "1.20.0", "file": "ucx.tar.xz", "sha256": SHA}},
         [("ucx.file", "The cluster has no `mirrors.files` that ucx.tar.xz could come from.",
           "set `mirrors.files`, or remove `file` to take upstream's")]),
        ({"mpi": "build", "pmix": {"version": "6.1.0", "sha256": SHA}},
         [("pmix.version", "Open MPI 5.0 needs PMIx 4.2 or newer, and older than 6; this is 6.1.0.",
           "e.g. `4.2.9`")]),
        ({"nccl_tests": {"version": "2.19.6"}},
         [("nccl_tests.sha256", "The SHA-256 of nccl_tests 2.19.6 is not declared.",
           "declare `sha256` of its tarball"),
          ("nccl_tests", "gpu1 has no CUDA toolkit, with which nccl-tests is compiled.", "add a section cuda")]),
    ],
)  # fmt: skip
def test_problems(options, found):
    given = HpcStackOptions.model_validate(options)
    assert list(given.problems(cpu_site(given))) == found


def test_problems_without_gpus(tmp_path):
    options = HpcStackOptions.model_validate({"nccl": True, "nccl_tests": TESTS})
    made = site(tmp_path, {"hpc_stack": options}, worker("cpu1", 11, "cpu-16c-64g"), locked=False)
    assert [message for _, message, _ in options.problems(made)] == [
        "No node of the role hpc_stack has NVIDIA's GPUs, which nccl-tests is for.",
        "No node of the role hpc_stack has NVIDIA's GPUs, which NCCL is for.",
    ]


def test_a_gpu_that_is_not_known(tmp_path):
    options = HpcStackOptions.model_validate({"nccl_tests": TESTS})
    made = gpu_site(tmp_path, options)
    (node,) = (node for node in made.nodes if node.name == "gpu1")
    gpus = node.sku.gpus.model_copy(update={"model": "X1", "architecture": None})
    strange = node.model_copy(update={"sku": node.sku.model_copy(update={"gpus": gpus})})
    made = made.model_copy(update={"nodes": (made.primary, strange)})
    assert [message for _, message, _ in options.problems(made)] == [
        "The compute capability of X1 (dgx-h100) is not known."
    ]
    declared = options.model_copy(update={"compute_capabilities": ("9.0",)})
    again = strange.with_options({**strange.options, "hpc_stack": declared})
    assert list(declared.problems(made.model_copy(update={"nodes": (made.primary, again)}))) == []


def test_lock_problems(tmp_path):
    made = gpu_site(tmp_path, WHOLE)
    assert list(WHOLE.lock_problems(made)) == []
    bare = gpu_site(tmp_path, WHOLE, locked=False)
    assert [message for _, message, _ in WHOLE.lock_problems(bare)] == [
        "The lock leaves nccl out for dgx-h100 on debian-13.",
        "The lock leaves cuda out for dgx-h100 on debian-13.",
    ]
    bare.lock_path.unlink()
    assert [message for _, message, _ in WHOLE.lock_problems(bare)] == [
        f"The lock file {bare.lock_path} does not exist."
    ]
    unlocked = cpu_site(HpcStackOptions(nccl=True))
    assert [message for _, message, _ in HpcStackOptions(nccl=True).lock_problems(unlocked)] == [
        "The role hpc_stack installs locked versions, but the cluster file has no section gpu_stack."
    ]
    assert list(HpcStackOptions().lock_problems(cpu_site(HpcStackOptions()))) == []


def test_cuda_that_does_not_know_the_gpu(tmp_path):
    options = HpcStackOptions.model_validate({"nccl_tests": TESTS, "compute_capabilities": ["7.0"]})
    made = gpu_site(tmp_path, options)
    assert list(options.lock_problems(made)) == [
        (
            "nccl_tests",
            "CUDA 13.0 no longer compiles for compute capability 7.0 (dgx-h100).",
            "lock another `gpu_stack.cuda`",
        )
    ]
    assert capabilities.compiles("12.4", "10.0") == (
        "CUDA 12.4 does not compile for compute capability 10.0, 12.8 is the first"
    )
    assert capabilities.compiles("12.4", "9.0") is None


def test_warnings(tmp_path):
    plain = HpcStackOptions()
    assert [path for path, _, _ in plain.warnings(gpu_site(tmp_path, plain))] == ["nccl_tests"]
    assert list(WHOLE.warnings(gpu_site(tmp_path, WHOLE))) == []
    assert list(plain.warnings(cpu_site(plain))) == []


@pytest.mark.parametrize(
    ("sku", "capability"),
    [("dgx-a100", "8.0"), ("dgx-h100", "9.0"), ("dgx-b200", "10.0"), ("dgx-b300", "10.3"), ("t4-4x", "7.5"),
     ("dgx-h200", "9.0")],
)  # fmt: skip
def test_capabilities_of_the_catalogue(sku, capability):
    assert capabilities.capability_of(worker("gpu1", 11, sku).sku.gpus) == capability


# What is built


def test_what_debian_gets():
    made = cpu_site(HpcStackOptions(mpi4py=True))
    plan = planned(made, plain_worker(made))
    assert changed(plan, "hpc_stack", "package") == [
        *("openmpi-bin", "libopenmpi-dev", "gcc", "g++", "libc6-dev", "python3-mpi4py", "python3-numpy")
    ]
    bare = cpu_site(HpcStackOptions(compilers=False))
    assert changed(planned(bare, plain_worker(bare)), "hpc_stack", "package") == ["openmpi-bin"]
    heads = planned(made, made.primary)
    assert not [operation for operation in heads.operations if operation.role == "hpc_stack"]


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
def test_every_release_builds(os):
    options = BUILD.model_copy(update={"ucx": "distribution", "mpi4py": True})
    made = cpu_site(options, os=os)
    plan = planned(made, plain_worker(made))
    assert plan.error is None
    names = [operation.name for operation in plan.operations if operation.role == "hpc_stack"]
    assert "Build Open MPI 5.0.10" in names


def test_a_gpu_node_builds_with_cuda_and_gdrcopy(tmp_path):
    made = gpu_site(tmp_path, WHOLE, gdrcopy=GdrcopyOptions())
    parts = built(made, WHOLE)
    assert list(parts) == ["pmix", "ucx", "openmpi", "nccl_tests"]
    assert "--with-cuda=/usr/local/cuda-13.0 \\\n  --with-gdrcopy=/usr\n" in parts["ucx"].steps
    for flag in (
        f"--with-pmix={parts['pmix'].prefix}",
        f"--with-ucx={parts['ucx'].prefix}",
        "--with-cuda=/usr/local/cuda-13.0",
    ):
        assert f"  {flag}" in parts["openmpi"].steps
    assert f"mpi={parts['openmpi'].prefix}/bin\n" in parts["nccl_tests"].steps
    assert 'NVCC_GENCODE="-gencode=arch=compute_90,code=sm_90"' in parts["nccl_tests"].steps
    assert "# CUDA 13.0, NCCL 2.30.4-1+cuda13.0" in parts["nccl_tests"].steps
    plan = planned(made, made.by_name["gpu1"])
    (install,) = commands(plan, "Install NCCL as locked")
    assert "libnccl2=2.30.4-1+cuda13.0" in install
    assert "apt-mark hold" in install
    order = [operation.name for operation in plan.operations]
    assert order.index("Install the CUDA toolkit as locked") < order.index("Build UCX 1.20.0")
    assert order.index("Build nccl-tests 2.19.6") < order.index("Install Slurm")


def test_without_gpus_there_is_no_cuda():
    parts = built(cpu_site(BUILD), BUILD)
    assert list(parts) == ["ucx", "openmpi"]
    assert "--without-cuda" in parts["ucx"].steps
    assert "--with-pmix=external" in parts["openmpi"].steps
    assert "--with-cuda=no" in parts["openmpi"].steps
    bundled = BUILD.model_copy(update={"pmix": "bundled", "ucx": "distribution"})
    (openmpi,) = built(cpu_site(bundled), bundled).values()
    assert "--with-pmix=internal" in openmpi.steps
    assert "  --with-ucx \\\n" in openmpi.steps


def test_another_flag_is_another_folder():
    flagged = BUILD.model_copy(
        update={"ucx": Release(version="1.20.0", flags=("--disable-cma",)), "build_jobs": 4}
    )
    before, after = built(cpu_site(BUILD), BUILD), built(cpu_site(flagged), flagged)
    assert before["ucx"].prefix != after["ucx"].prefix
    assert before["openmpi"].prefix != after["openmpi"].prefix  # it is linked against UCX
    jobs = BUILD.model_copy(update={"build_jobs": 4})
    assert built(cpu_site(jobs), jobs)["ucx"].prefix == before["ucx"].prefix
    assert "  jobs=4\n" in after["ucx"].write(4)


def test_where_sources_come_from():
    known = Release(version="5.0.10")
    assert url("openmpi", known, None) == (
        "https://download.open-mpi.org/release/open-mpi/v5.0/openmpi-5.0.10.tar.bz2"
    )
    assert url("openmpi", known, "http://m/files/") == "http://m/files/openmpi-5.0.10.tar.bz2"
    own = Release(version="5.0.10", file="mine.tar.xz")
    assert (url("openmpi", own, "http://m"), url("openmpi", own, None)) == ("http://m/mine.tar.xz", None)
    assert (sha256_of("openmpi", known) or "")[:8] == "0acecc4f"
    assert sha256_of("openmpi", own) is None
    nccl_tests = Release(version="2.19.6")
    assert tarball("nccl_tests", nccl_tests) == "nccl-tests-2.19.6.tar.gz"
    assert url("nccl_tests", nccl_tests, None) == (
        "https://github.com/NVIDIA/nccl-tests/archive/refs/tags/v2.19.6.tar.gz"
    )


def test_the_environment():
    made = cpu_site(BUILD)
    plan = planned(made, plain_worker(made))
    profile = content(plan, texts.PROFILE)
    shown = subprocess.run(
        ["sh", "-c", f'PATH=/usr/bin:/bin\n{profile}{profile}echo "$PATH $MPI_HOME $MODULEPATH"'],
        capture_output=True, text=True, check=True, timeout=240, env={},
    ).stdout  # fmt: skip
    folder = "/opt/rackwright/modulefiles"
    assert shown == (f"/opt/rackwright/openmpi/bin:/usr/bin:/bin /opt/rackwright/openmpi {folder}:{folder}\n")
    assert "prepend-path PATH /opt/rackwright/openmpi/bin\n" in str(content(plan, texts.MODULEFILE))
    module = BUILD.model_copy(update={"environment": "module"})
    made = cpu_site(module)
    assert "export PATH" not in str(content(planned(made, plain_worker(made)), texts.PROFILE))


def test_program_folders():
    assert HpcStackOptions().program_folders == ()
    assert WHOLE.program_folders == ("/opt/rackwright/nccl-tests/bin",)
