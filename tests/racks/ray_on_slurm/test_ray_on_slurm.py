"""Ray in jobs of Slurm on a rack: alone, side by side, cancelled, and closed to other users."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from rackwright.roles.ray_on_slurm.places import CURRENT, EXAMPLE, RAY_JOB
from tests.racks.patience import until
from tests.racks.site import Site
from tests.racks.verified import named, results

pytestmark = [pytest.mark.lab, pytest.mark.proof]

HEAD, WORKERS = "head1", ("worker1", "worker2")
FIRST = WORKERS[0]
"""Where batch scripts run."""
JOB_SECONDS = 300
SHARED = "--cpus-per-task=1 --mem=1300 --oversubscribe"
"""Half of a node, in place of what the example asks for."""

SEES = """\
import json, os, socket, sys, time, ray
ray.init(log_to_driver=False, logging_level="ERROR")

@ray.remote(num_cpus=1, max_retries=0)
def where():
    return socket.gethostname()

@ray.remote(num_cpus=0, num_gpus=1)
def gpu():
    return os.environ.get("CUDA_VISIBLE_DEVICES", "")

from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as At
nodes = {one["NodeName"]: one for one in ray.nodes() if one["Alive"]}
ran = {name: ray.get(where.options(scheduling_strategy=At(one["NodeID"], soft=False)).remote()) for name, one in nodes.items()}
given = ray.get([gpu.remote() for _ in range(int(ray.cluster_resources().get("GPU", 0)))])
print(json.dumps({"ran": ran, "gpus": given, "resources": {name: one["Resources"] for name, one in nodes.items()}}), flush=True)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    assert ray.get(where.remote(), timeout=60)
    time.sleep(1)
print("end", flush=True)
sys.exit(int(sys.argv[2]))
"""
"""What the program finds, a time in which it goes on asking for tasks, and its exit status."""

STRANGER = """\
import os
from ray._raylet import GcsClient
try:
    print("answers", len(GcsClient(address=os.environ["RAY_ADDRESS"]).get_all_node_info(timeout=10)))
except Exception as error:
    print("refuses", type(error).__name__)
"""


def as_user(site: Site, node: str, user: str, line: str, seconds: int = 60) -> str:
    return site.on(node, f"su {user} -c {shlex.quote(line)}", seconds)


def submitted(site: Site, user: str, seconds: int, status: int, options: str = "") -> str:
    """A job's id; its program lies where the batch script runs, and so does its output."""
    as_user(site, FIRST, user, f"printf %s {shlex.quote(SEES)} >/home/{user}/sees.py")
    script = site.on(FIRST, f"cat {EXAMPLE}")
    if options:  # the example as a user adapts it
        script = "".join(
            line
            for line in script.splitlines(keepends=True)
            if not line.startswith(("#SBATCH --exclusive", "#SBATCH --mem", "#SBATCH --gpus"))
        )
    place = f"/home/{user}/ray.sbatch"
    as_user(site, HEAD, user, f"printf %s {shlex.quote(script)} >{place}")
    line = f"sbatch --parsable --chdir=/home/{user} {options} {place} sees.py {seconds} {status}"
    return as_user(site, HEAD, user, line).split()[-1]


def output(site: Site, user: str, job: str) -> str:
    return site.on(FIRST, f"cat /home/{user}/ray-{job}.out 2>/dev/null || :")


def state(site: Site, job: str) -> str:
    """E.g. `COMPLETED 0:0`."""
    return site.on(HEAD, f"sacct -nXP -j {job} -o State,ExitCode").strip().replace("|", " ")


def over(site: Site, job: str) -> None:
    until(lambda: state(site, job).split()[0] not in ("", "PENDING", "RUNNING"), f"job {job}", JOB_SECONDS)


def found(site: Site, user: str, job: str) -> dict[str, Any]:
    """What the program of a job printed first."""
    until(lambda: '"ran"' in output(site, user, job), f"output of job {job}", JOB_SECONDS)
    line = next(line for line in output(site, user, job).splitlines() if line.startswith('{"ran"'))
    answer: dict[str, Any] = json.loads(line)
    return answer


def nothing_left(site: Site, user: str) -> None:
    """Neither processes nor files of Ray on any worker."""
    for node in WORKERS:
        until(lambda node=node: not site.on(node, f"pgrep -u {user} || :").strip(), f"end on {node}", 60)
        assert site.on(node, "ls -d /tmp/ray-* /dev/shm/*plasma* 2>/dev/null || :").strip() == "", node


@pytest.mark.smoke
def test_a_second_apply_has_nothing_to_do(site: Site):
    site.plan(0)


@pytest.mark.smoke
def test_the_example_runs_with_everything_the_nodes_have(site: Site):
    job = submitted(site, "ada", 0, 0)
    there = found(site, "ada", job)
    assert there["ran"] == {name: name for name in WORKERS}
    assert len(there["gpus"]) == 16
    assert {*there["gpus"]} <= {str(number) for number in range(8)}
    allocated = int(site.on(HEAD, "sinfo -h -N -n worker1 -o %m").split()[0])
    for resources in there["resources"].values():
        assert (resources["CPU"], resources["GPU"]) == (2, 8)
        store, tasks = resources["object_store_memory"] / 2**20, resources["memory"] / 2**20
        assert store == pytest.approx(allocated * 0.3, abs=1)
        assert store + tasks == pytest.approx(allocated * 0.75, abs=2)
    over(site, job)
    assert state(site, job) == "COMPLETED 0:0"
    nothing_left(site, "ada")


@pytest.mark.smoke
def test_verify_passes(site: Site):
    assert results(site, None, "--role", "ray_on_slurm").keys() == {"PASS"}


def test_the_programs_exit_status_is_the_jobs(site: Site):
    job = submitted(site, "ada", 0, 3)
    over(site, job)
    assert state(site, job) == "FAILED 3:0"


def test_jobs_of_two_users_on_the_same_nodes_do_not_know_of_each_other(site: Site):
    """The second goes on when the first has ended."""
    first = submitted(site, "ada", 10, 0, SHARED)
    second = submitted(site, "bob", 90, 0, SHARED)
    both = (found(site, "ada", first), found(site, "bob", second))
    for there in both:
        assert there["ran"] == {name: name for name in WORKERS}
        assert all(one["CPU"] == 1 for one in there["resources"].values())
        assert not any("GPU" in one for one in there["resources"].values())
    over(site, first)
    assert state(site, first) == "COMPLETED 0:0"
    assert state(site, second).startswith("RUNNING")
    over(site, second)
    assert state(site, second) == "COMPLETED 0:0", output(site, "bob", second)
    nothing_left(site, "bob")


def test_another_user_is_refused_and_a_cancelled_job_leaves_nothing(site: Site):
    job = submitted(site, "ada", 600, 0, SHARED)
    found(site, "ada", job)
    address = site.on(FIRST, "ss -Hltnp | grep gcs_server | awk '{print $4}' | head -1").strip()
    port = address.rpartition(":")[2]
    ask = f"RAY_ADDRESS=10.95.0.11:{port} timeout 60 {CURRENT}/bin/python -c {shlex.quote(STRANGER)}"
    for how in ("", "RAY_USE_TLS=0 "):
        assert as_user(site, FIRST, "bob", how + ask, 90).split()[0] == "refuses"
    pid = site.on(FIRST, "pgrep -o -u ada gcs_server").strip()
    for name in ("RAY_AUTH_TOKEN_PATH", "RAY_TLS_SERVER_KEY"):
        path = site.on(FIRST, f"tr '\\0' '\\n' </proc/{pid}/environ | sed -n s/^{name}=//p").strip()
        seen = f"/proc/{pid}/root{path}"  # the job's own /tmp
        assert site.on(FIRST, f"stat -c '%a %U' {seen}").strip() == "600 ada"
        assert as_user(site, FIRST, "bob", f"cat {seen} 2>/dev/null || echo refused").strip() == "refused"
        shown = site.on(FIRST, f"grep -slFf {seen} /proc/[0-9]*/cmdline /proc/[0-9]*/environ || :")
        assert shown.strip() == "", f"a process shows {name}"
    as_user(site, HEAD, "ada", f"scancel {job}")
    over(site, job)
    nothing_left(site, "ada")


def test_a_job_without_room_for_ray_says_so(site: Site):
    job = submitted(site, "ada", 0, 0, "--cpus-per-task=1 --mem=100")
    over(site, job)
    assert state(site, job) == "FAILED 1:0"
    assert "of which none is left for tasks beside 80 MiB" in output(site, "ada", job)
    shell = as_user(site, FIRST, "ada", f"salloc -Q --mem=100 --chdir=/ {RAY_JOB} python x.py 2>&1 || :")
    assert "this node is not one of the job's" in shell, "salloc starts its program where it is called"
    outside = as_user(site, FIRST, "ada", f"{RAY_JOB} python x.py 2>&1 || echo status $?")
    assert "start it in a job of Slurm" in outside
    assert outside.split()[-2:] == ["status", "2"]


def test_what_is_edited_is_found_and_repaired(site: Site):
    site.on(FIRST, f"echo '# edited' >>{RAY_JOB}")
    site.on(FIRST, f"echo 'raise SystemExit(5)' >>{CURRENT}/lib/python3*/site-packages/ray/__init__.py")
    failed = {check for _, _, check in named(results(site, None, "--role", "ray_on_slurm")["FAIL"])}
    assert failed == {
        "ray-job and its example are as declared",
        "the environment of Ray's jobs is the installed one",
        "the environment of Ray's jobs is as locked",
        "a job of Slurm runs Ray on its nodes",
    }
    site.apply()
    site.plan(0)
    assert results(site, None, "--role", "ray_on_slurm").keys() == {"PASS"}
