"""What cgroup v2 and pam_slurm_adopt do to the jobs and logins of a user."""

from __future__ import annotations

import re

import pytest

from tests.racks.site import Site
from tests.racks.slurm_jobs import as_ada, cancel, in_service, log_in, run_job, state, submit

pytestmark = [pytest.mark.lab, pytest.mark.proof]
_ONE = "--mem=512"
_ALLOCATE = 'python3 -c "held = b\\"x\\" * ({} << 20); print(len(held) >> 20)"'


def test_a_job_has_one_core_and_cannot_take_another(rack: Site) -> None:
    said = run_job(
        rack, "worker1", _ONE, "nproc; taskset -c 0,1 nproc; grep Cpus_allowed_list /proc/self/status"
    )
    one, widened, allowed, status = said.strip().split("\n")
    assert (one, widened, status) == ("1", "1", "status 0")
    assert re.fullmatch(r"Cpus_allowed_list:\s+[01]", allowed)


def test_a_job_is_below_slurmds_scope(rack: Site) -> None:
    said = run_job(rack, "worker1", _ONE, "cat /proc/self/cgroup")
    assert re.search(
        r"^0::/system\.slice/(\w+_)?slurmstepd\.scope/job_\d+/step_0/user/task_0$", said, re.MULTILINE
    )


def test_a_job_within_its_memory_runs_and_one_above_it_is_killed(rack: Site) -> None:
    assert run_job(rack, "worker1", _ONE, _ALLOCATE.format(300)) == "300\nstatus 0\n"
    said = run_job(rack, "worker1", f"{_ONE} -J greedy", _ALLOCATE.format(700))
    assert "700\n" not in said
    assert not said.endswith("status 0\n")
    assert re.search("oom[-_ ]kill|out of memory|Out Of Memory", said, re.IGNORECASE), said
    recorded = rack.on("head1", "sacct -n -P -a -S now-1hour --name=greedy -o state", 120)
    assert "OUT_OF_MEMORY" in recorded
    in_service(rack, "worker1")


def test_a_job_killed_for_its_memory_leaves_its_neighbour_alone(rack: Site) -> None:
    neighbour = submit(rack, "worker1", 600)
    run_job(rack, "worker1", _ONE, _ALLOCATE.format(700))
    assert state(rack, neighbour) == "RUNNING"
    cancel(rack, neighbour)


def test_each_job_has_a_tmp_and_a_shm_of_its_own(rack: Site) -> None:
    said = run_job(rack, "worker1", _ONE, "touch /tmp/mine /dev/shm/mine; ls /tmp /dev/shm")
    assert said == "/dev/shm:\nmine\n\n/tmp:\nmine\nstatus 0\n"
    assert run_job(rack, "worker1", _ONE, "ls /tmp /dev/shm") == "/dev/shm:\n\n/tmp:\nstatus 0\n"
    assert rack.on("worker1", "ls -d /tmp/mine /dev/shm/mine 2>/dev/null || :") == ""


def test_without_a_job_a_user_cannot_log_in_to_a_worker(rack: Site) -> None:
    said = log_in(rack, "worker2", "id -un")
    assert "Access denied by pam_slurm_adopt: you have no active jobs on this node" in said
    assert "Connection closed" in said
    assert "ada" not in said.splitlines()
    assert not said.endswith("status 0\n")


def test_with_a_job_a_user_logs_in_and_is_held_by_it(rack: Site) -> None:
    job = submit(rack, "worker2", 900)
    try:
        said = log_in(rack, "worker2", "cat /proc/self/cgroup; nproc; id -un")
        assert f"slurmstepd.scope/job_{job}/step_extern" in said, said
        assert said.endswith("\n1\nada\nstatus 0\n"), said
        assert "Access denied" in log_in(rack, "worker1", "id -un")  # her job is on another node
    finally:
        cancel(rack, job)
    in_service(rack, "worker2")  # a job that is still completing lets her in
    assert "Access denied" in log_in(rack, "worker2", "id -un")


def test_the_end_of_the_job_ends_the_login(rack: Site) -> None:
    job = submit(rack, "worker2", 900)
    log_in(rack, "worker2", "setsid -f sleep 4711 </dev/null >/dev/null 2>&1")
    assert rack.on("worker2", "pgrep -fc 'sleep 471[1]' || :").strip() == "1"
    cancel(rack, job)
    in_service(rack, "worker2")
    assert rack.on("worker2", "sleep 30; pgrep -fc 'sleep 471[1]' || :", 120).strip() == "0"


def test_the_administrator_needs_no_job(rack: Site) -> None:
    assert "worker1" in rack.tool(*rack.rack.ssh_command("worker1", ("uname", "-n")), name="ssh").out
    assert as_ada(rack, "head1", "id -un") == "ada\nstatus 0\n"
