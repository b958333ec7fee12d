"""The ray_on_slurm role: its options, ray-job, and its checks, each seen to object."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import os
import shlex
import subprocess
import sys

import pytest

from rackwright.claims.python_environments import DISTRIBUTIONS
from rackwright.facts.python_environments import PythonEnvironments
from rackwright.model.python_environment import locked
from rackwright.model.types import NodeRole, Workload
from rackwright.roles.ray.options import RayOptions
from rackwright.roles.ray_on_slurm import places, texts
from rackwright.roles.ray_on_slurm.options import RayOnSlurmOptions
from rackwright.roles.ray_on_slurm.verify import CHECKS, PROGRAM, job_line
from rackwright.status import Status
from tests.factories import make_cluster, make_node
from tests.unit.roles.container_site import never_passes
from tests.unit.roles.fake_facts import asked, file
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, errors_in, judged, planned
from tests.unit.roles.sites import head, site, worker

OPTIONS = RayOnSlurmOptions(wheels="http://10.9.0.1:8080/")
SITE = site({"ray_on_slurm": OPTIONS})
LOCK = OPTIONS.lock_text(SITE)
RAY_JOB = texts.programs(OPTIONS)[places.RAY_JOB]


def test_wheels_have_one_source():
    (error,) = errors_in(RayOnSlurmOptions, {"wheels": "http://a/", "index_url": "http://b/"})
    assert "not from both" in error


def test_it_is_on_login_nodes_and_workers_of_slurm_alone():
    options = {"ray_on_slurm": OPTIONS}
    nodes = (
        make_node("head1", 10, NodeRole.HEAD, options=options),
        make_node("w1", 11, workload=Workload.RAY, options=options),
        make_node("w2", 12, workload=Workload.SLURM, options=options),
        make_node("login1", 13, NodeRole.LOGIN, options=options),
    )
    cluster = make_cluster(*nodes)
    assert [node.name for node in cluster.running("ray_on_slurm")] == ["w2", "login1"]
    assert [node.name for node in texts.workers(cluster)] == ["w2"]


def test_two_environments_in_one_place_are_refused():
    for lock, found in ((None, []), ("torch.txt", ["lock"])):
        options = {"ray": RayOptions(lock=lock), "ray_on_slurm": OPTIONS}
        both = make_node("head1", 10, NodeRole.HEAD, NodeRole.LOGIN, options=options)
        cluster = make_cluster(both)
        assert [path for path, _, _ in OPTIONS.problems(cluster)] == found


def test_the_example_asks_for_all_gpus_where_nodes_are_alike():
    assert texts.gpus_per_node(SITE) == worker(SITE).sku.gpus.count
    assert f"#SBATCH --gpus-per-node={worker(SITE).sku.gpus.count}\n" in texts.files(SITE)[places.EXAMPLE]
    plain = make_node("w9", 30, sku=head(SITE).sku, options={"ray_on_slurm": OPTIONS})
    mixed = make_cluster(*SITE.nodes, plain)
    assert texts.gpus_per_node(mixed) == 0
    text = texts.files(mixed)[places.EXAMPLE]
    assert "gpus" not in text
    for one in (text, texts.files(SITE)[places.EXAMPLE]):
        assert subprocess.run(["bash", "-n"], input=one, text=True, check=False).returncode == 0


def test_what_is_installed():
    plan = planned(SITE, worker(SITE))
    (install,) = commands(plan, "Install the locked Python environment")[:1]
    assert "--require-hashes" in install
    assert "--find-links http://10.9.0.1:8080/" in install
    assert content(plan, places.RAY_JOB) == RAY_JOB
    ast.parse(RAY_JOB)


@pytest.fixture
def ray_job(tmp_path):
    """The program as a module."""
    path = tmp_path / "ray_job.py"
    path.write_text(RAY_JOB)
    spec = importlib.util.spec_from_file_location("ray_job", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """Puts a shell script in the PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def _tool(name, script):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    return _tool


def test_memory_is_what_slurm_has_allocated_on_each_node(ray_job, tool, monkeypatch):
    """`scontrol -o -d show job` of Slurm 24.11 on the lab's rack (2026-11-28), shortened."""
    shown = (
        "JobId=7 JobName=ray NumNodes=3 JOB_GRES=gpu:h100:24 Nodes=worker[1-2] CPU_IDs=0-1 Mem=2918 "
        "GRES=gpu:h100:8(IDX:0-7) Nodes=worker3 CPU_IDs=0 Mem=100 GRES= Nodes=worker4 CPU_IDs=0 Mem=0 GRES= MinCPUsNode=1"
    )
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    tool(
        "scontrol",
        f"case \"$*\" in '-o -d show job 7') echo '{shown}' ;;"
        " 'show hostnames worker[1-2]') printf 'worker1\\nworker2\\n' ;; 'show hostnames '*) echo $3 ;; *) exit 9 ;; esac",
    )
    assert ray_job.memory_mib() == {"worker1": 2918, "worker2": 2918, "worker3": 100}


@pytest.mark.parametrize(
    ("limit", "store", "expected"),
    [
        (10240, None, {"--object-store-memory": 3072, "--memory": 10240 - 3072 - 2048}),
        (1000, None, {"--object-store-memory": 300, "--memory": 450}),
        (1000, 500, {"--object-store-memory": 500, "--memory": 250}),
        (None, 500, {"--object-store-memory": 500}),
        (None, None, {}),
    ],
)
def test_memory_is_divided(ray_job, limit, store, expected):
    message = {"memory_mib": {"w1": limit} if limit else {}, "object_store_mib": store}
    assert ray_job.of_memory(message, "w1") == [f"{name}={mib * 2**20}" for name, mib in expected.items()]


def test_too_little_memory_is_refused(ray_job):
    with pytest.raises(SystemExit, match="the job has 100 MiB on w1, of which none is left for tasks"):
        ray_job.of_memory({"memory_mib": {"w1": 100}, "object_store_mib": None}, "w1")


def test_the_step_takes_no_default_from_the_job(ray_job, monkeypatch):
    for name in (
        "SLURM_CPUS_PER_TASK",
        "SLURM_TRES_PER_TASK",
        "SRUN_CPUS_PER_TASK",
        "SLURM_NTASKS",
        "PMIX_RANK",
    ):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm/slurm.conf")
    kept = {name for name in ray_job.step_environment() if name.startswith(("SLURM", "SRUN", "PMI"))}
    assert kept == {"SLURM_CONF"}


def test_a_long_tmpdir_is_not_used(ray_job, tmp_path, monkeypatch):
    deep = tmp_path / ("x" * 60)
    deep.mkdir()
    monkeypatch.setenv("TMPDIR", str(deep))
    folder = ray_job.new_folder()
    assert folder.startswith("/tmp/ray-")
    assert list(deep.iterdir()) == []
    os.rmdir(folder)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    folder = ray_job.new_folder()
    assert folder.startswith("/tmp/ray-")
    os.rmdir(folder)


def _run(*args, **environment):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    line = [sys.executable, "-IB", "-", *args]
    return subprocess.run(
        line, input=RAY_JOB, env=kept | environment, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "which program? e.g. ray-job python train.py"),
        (("python", "x.py"), f"start it in a job of Slurm, e.g. sbatch {places.EXAMPLE} train.py"),
        (("--object-store-mib", "much", "x"), "invalid int value: 'much'"),
    ],
)
def test_what_it_is_started_with_is_looked_at_first(args, message):
    ran = _run(*args)
    assert ran.returncode == 2
    assert message in ran.stderr


def test_a_node_outside_the_job_is_refused():
    ran = _run("python", "x.py", SLURM_JOB_ID="7")
    assert ran.returncode == 2
    assert "this node is not one of the job's; try: srun --overlap --nodes=1 --ntasks=1 ray-job" in ran.stderr


def test_help_says_what_is_the_default():
    ran = _run("--help")
    assert ran.returncode == 0, ran.stderr
    assert "30 % of the job's memory" in " ".join(ran.stdout.split())


def _line(template, *args):
    return template % tuple(shlex.quote(arg) for arg in args)


DIGEST = PythonEnvironments().command(places.ENVIRONMENTS)
ENVIRONMENTS = asked(DIGEST)
RECORDS = _line("timeout 55 %s -I -B -c %s", f"{places.CURRENT}/bin/python", DISTRIBUTIONS)


def _job(cluster=SITE):
    words = job_line(texts.workers(cluster)[:2], PROGRAM)
    return _line(" ".join(["timeout %s", *(["%s"] * len(words))]), "280", *words)


def _distributions(**changed):
    found = {name: min(versions) for name, versions in locked(LOCK).items()} | {"pip": "25.1"}
    return json.dumps(
        {"distributions": found | changed.pop("distributions", {}), "wrong": [], "count": 0} | changed
    )


def answers():
    """Of a worker in order; the job answers for the cluster."""
    environment = f"{hashlib.sha256(LOCK.encode()).hexdigest()[:16]}.1795842000"
    found = {
        ENVIRONMENTS: f"current {environment}\nenvironment {environment}\nwhole\n",
        RECORDS: _distributions(),
        _job(): "a line of Ray's\n" + json.dumps({"gpu1": "gpu1", "gpu2": "gpu2"}),
    }
    for path, text in texts.files(SITE).items():
        found |= file(path, text)
    for path, text in texts.programs(OPTIONS).items():
        found |= file(path, text, mode="755")
    return found


def result(name, reply=None):
    host = FakeHost(answers() | (reply or {}))
    return judged("ray_on_slurm", CHECKS, name, SITE, worker(SITE), host)


def test_a_worker_as_declared_passes():
    names = claimed("ray_on_slurm", CHECKS, worker(SITE))
    assert len(names) == len(CHECKS)
    for name in names:
        found = result(name)
        assert found.status == "PASS", found


JOB = "a job of Slurm runs Ray on its nodes"
FAULTS = [
    ("ray-job and its example are as declared", file(places.RAY_JOB, "exit", mode="755"), "FAIL"),
    ("ray-job and its example are as declared", file(places.EXAMPLE, "exit"), "FAIL"),
    ("the environment of Ray's jobs is the installed one", {ENVIRONMENTS: "none\n"}, "FAIL"),
    (
        "the environment of Ray's jobs is as locked",
        {RECORDS: _distributions(distributions={"ray": "1"})},
        "FAIL",
    ),
    ("the environment of Ray's jobs is as locked", {RECORDS: "{}"}, "UNKNOWN"),
    (JOB, {_job(): json.dumps({"gpu1": "gpu1"})}, "FAIL"),
    (JOB, {_job(): json.dumps({"gpu1": "gpu1", "gpu2": "gpu1"})}, "FAIL"),
    (JOB, {_job(): json.dumps({"gpu1": "gpu1", "gpu2": "gpu2", "gpu9": "gpu9"})}, "FAIL"),
    (JOB, {_job(): (1, "", "ray-job: 1 of 2 nodes have joined within 300 s")}, "FAIL"),
    (
        JOB,
        {_job(): (1, "", "salloc: error: Unable to allocate resources: Requested nodes are busy")},
        "UNKNOWN",
    ),
    (JOB, {_job(): (124, "", "")}, "UNKNOWN"),
    (JOB, {_job(): "Segmentation fault"}, "UNKNOWN"),
    (JOB, {_job(): "[1]"}, "UNKNOWN"),
]


@pytest.mark.parametrize(("name", "changed", "status"), FAULTS)
def test_a_fault_is_found(name, changed, status):
    assert result(name, changed).status == status


def test_every_check_has_a_fault():
    assert {name for name, _, status in FAULTS if status == Status.FAIL} == {check.name for check in CHECKS}


def test_without_tools_nothing_passes():
    never_passes("ray_on_slurm", CHECKS, SITE, worker(SITE))
