"""The program of the scratch role: folders of jobs, what is left of them, and what an attacker may try."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from rackwright.node_folders.mounted import FOLDER, Unsafe
from rackwright.node_folders.quota import NoQuota
from rackwright.node_folders.removal import Aged
from rackwright.node_programs import one_text
from rackwright.roles.scratch import node, node_jobs, node_sweep
from rackwright.roles.scratch.node_jobs import Job, JobMistake, Jobs, locked
from rackwright.roles.scratch.node_sweep import Present, state_of
from rackwright.workload.slurm.on_node import SlurmOnNode
from rackwright.workload.states import NoAnswer

ME = os.getuid()
JOB = Job("12", ME, os.getgid())
SETTINGS = {
    "path": "/scratch",
    "node": "gpu1",
    "jobs": True,
    "quota_gib": 0,
    "first_project_id": 1000,
    "project_ids": 67108864,
    "places": ["users", "tmp"],
    "user_hours": 72,
    "grace_seconds": 600,
    "remove_seconds": 60,
    "sweep_seconds": 60,
}


@pytest.fixture
def jobs(tmp_path):
    """Folders below tmp_path/root, as on a mounted filesystem."""
    (tmp_path / "root").mkdir(mode=0o755)
    (tmp_path / "run").mkdir(mode=0o700)
    descriptor = os.open(tmp_path / "root", FOLDER)
    yield Jobs(dict(SETTINGS), descriptor, str(tmp_path / "run"))
    os.close(descriptor)


def test_a_job_and_its_user():
    environment = {"SLURM_JOB_ID": "12", "SLURM_JOB_UID": "4294967290", "SLURM_JOB_GID": "77"}
    assert Job.of_environment(environment) == Job("12", 4294967290, 77)
    assert Job.of_environment({**environment, "SLURM_JOB_GID": "x"}).gid == 4294967290
    assert Job.of_environment({**environment, "SLURM_JOB_UID": "0"}).gid == 0
    for wrong in (
        {"SLURM_JOB_ID": "../x"},
        {"SLURM_JOB_ID": "0"},
        {"SLURM_JOB_UID": "-1"},
        {"SLURM_JOB_ID": ""},
    ):
        with pytest.raises(JobMistake, match="do not name a job"):
            Job.of_environment({**environment, **wrong})


def test_a_folder_is_its_users_alone_and_gone_at_once(jobs, tmp_path):
    jobs.make(JOB)
    folder = tmp_path / "root/jobs/12"
    assert (folder.stat().st_mode & 0o7777, folder.stat().st_uid) == (0o700, ME)
    assert (tmp_path / "root/jobs").stat().st_mode & 0o7777 == 0o755
    (folder / "file").write_text("x")
    jobs.make(JOB)  # the prolog ran twice: what the job has stays
    assert (folder / "file").exists()
    jobs.take_away("12")
    assert not folder.exists()
    assert jobs.made("12") is None
    (removing,) = (tmp_path / "root/.rackwright-removing").iterdir()
    assert (removing / "file").exists()
    assert (tmp_path / "root/.rackwright-removing").stat().st_mode & 0o7777 == 0o700
    jobs.take_away("12")  # the epilog ran twice


def test_a_folder_from_before_the_boot_is_not_handed_out(jobs, tmp_path):
    jobs.make(JOB)
    (tmp_path / "root/jobs/12/old").write_text("x")
    (tmp_path / "run/12").unlink()
    jobs.make(JOB)
    assert list((tmp_path / "root/jobs/12").iterdir()) == []


@pytest.mark.parametrize("kind", ["link", "file", "other"])
def test_what_another_user_left_under_the_number_is_not_handed_out(jobs, tmp_path, kind):
    """Only root can write the folder above; the program does not rely on it."""
    parent = tmp_path / "root/jobs"
    parent.mkdir(mode=0o755)
    if kind == "link":
        (parent / "12").symlink_to(tmp_path)
    elif kind == "file":
        (parent / "12").write_text("x")
    else:
        (parent / "12").mkdir(mode=0o777)
        (tmp_path / "run/12").write_text("")
        jobs = replace(jobs, settings={**jobs.settings})
        jobs.make(replace(JOB, uid=ME))
    if kind != "other":
        jobs.make(JOB)
        assert not (parent / "12").is_symlink()
        assert (parent / "12").stat().st_mode & 0o7777 == 0o700
    assert tmp_path.exists()


@pytest.mark.parametrize("place", ["jobs", ".rackwright-removing"])
def test_a_folder_that_others_can_write_is_refused(jobs, tmp_path, place):
    jobs.make(JOB)
    jobs.take_away("12")
    (tmp_path / "root" / place).chmod(0o777)
    change = jobs.take_away if place != "jobs" else lambda job: jobs.make(JOB)
    (tmp_path / "root/jobs/12").mkdir()
    with pytest.raises(Unsafe, match="other users can write to it"):
        change("12")


def test_a_limit_that_cannot_be_set_leaves_no_folder(jobs, tmp_path, monkeypatch):
    limited = replace(jobs, settings={**jobs.settings, "quota_gib": 5})
    given = []
    monkeypatch.setattr(node_jobs, "set_project", lambda folder, project: given.append(project))
    monkeypatch.setattr(node_jobs, "set_limit", lambda *what: given.append(what))
    limited.make(JOB)
    limited.take_away("12")
    limited.lift_limit("12")
    assert given == [1012, ("/scratch", 1012, 5), ("/scratch", 1012, 0)]

    def refuse(*_):
        raise NoQuota("no quota")

    monkeypatch.setattr(node_jobs, "set_limit", refuse)
    with pytest.raises(NoQuota):
        limited.make(JOB)
    assert list((tmp_path / "root/jobs").iterdir()) == []
    assert limited.made("12") is None


def test_no_two_jobs_have_one_project(jobs):
    last = 67_043_327  # Slurm's MaxJobId, less one
    assert jobs.project("1") != jobs.project(str(last))
    assert jobs.project(str(last)) < 1000 + 67_108_864


def test_states_of_folders(jobs, tmp_path):
    now = time.time()
    for number in (12, 13, 14):
        jobs.make(replace(JOB, id=str(number)))
    (tmp_path / "run/13").unlink()
    there = Present(frozenset({"12"}), frozenset())
    silent = replace(there, silent="no answer")
    assert state_of(jobs, "12", there, now + 9999)[0] == "running"
    assert state_of(jobs, "13", there, now)[0] == "earlier"
    assert state_of(jobs, "14", there, now)[0] == "starting"
    assert state_of(jobs, "14", there, now + 601)[0] == "ended"
    assert state_of(jobs, "14", silent, now + 601)[0] == "unknown"
    # /run was emptied under a running job
    assert state_of(jobs, "13", Present(frozenset({"13"}), frozenset()), now)[0] == "running"


def test_jobs_as_slurm_and_the_nodes_processes_have_them(monkeypatch):
    asked = []

    def run(arguments):
        asked.append(arguments)
        return "12|1001\n13|1002\n"

    there = SlurmOnNode("gpu1", run)
    assert there.jobs() == {"12": 1001, "13": 1002}
    assert asked == [["squeue", "-h", "-w", "gpu1", "-o", "%A|%U"]]
    lines = [
        "slurmstepd: [77.extern]",
        "slurmstepd: [78.batch]",
        "slurmstepd infinity",
        "vi slurmstepd: [9.0]",
    ]
    assert there.jobs_among(lines) == {"77", "78"}
    assert SlurmOnNode("gpu1", lambda _: "").jobs() == {}
    for rubbish in ("slurm_load_jobs error: x\n", "12|a\n", "-1|5\n"):
        with pytest.raises(NoAnswer, match="`squeue` printed"):
            SlurmOnNode("gpu1", lambda _, text=rubbish: text).jobs()


def test_a_silent_manager_and_a_user_with_a_process(monkeypatch):
    class Silent:
        def jobs_among(self, lines):
            return frozenset({"5"})

        def jobs(self):
            raise NoAnswer("`squeue` gave no answer within 15 s")

    monkeypatch.setattr(node_sweep, "manager_on", lambda name, manager: Silent())
    found = node_sweep.present(SETTINGS)
    assert (found.jobs, found.silent) == (frozenset({"5"}), "`squeue` gave no answer within 15 s")
    assert ME in found.users


def test_only_one_changes_folders_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(node_jobs, "_LOCK_SECONDS", 0.1)
    state = str(tmp_path / "run")
    with locked(state), pytest.raises(JobMistake, match=r"another run holds .*/run/\.lock"), locked(state):
        pass


def test_files_of_users_stay_where_reads_leave_no_trace(tmp_path, monkeypatch):
    (tmp_path / "f").write_text("x")
    aged = Aged(time.time() + 60, 0, frozenset())
    real = os.fstatvfs
    flags = {"noatime": os.ST_NOATIME, "relatime": 0}

    def mounted_with(option):
        monkeypatch.setattr(
            os,
            "fstatvfs",
            lambda place: SimpleNamespace(f_flag=real(place).f_flag & ~os.ST_NOATIME | flags[option]),
        )

    place = os.open(tmp_path, FOLDER)
    try:
        mounted_with("noatime")
        with pytest.raises(Unsafe, match="tmp is mounted with noatime"):
            node_sweep._old_files(place, "tmp", aged, time.monotonic() + 10)
        assert (tmp_path / "f").exists()
        mounted_with("relatime")
        assert node_sweep._old_files(place, "tmp", aged, time.monotonic() + 10).files == 1
    finally:
        os.close(place)


def test_arguments_and_settings(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", os.environ["PATH"])  # the program sets it
    monkeypatch.setattr(node.os, "umask", lambda mask: 0)
    assert node.main([]) == node.main(["what"]) == 64
    assert node.main(["make"], str(tmp_path / "none")) == 1
    (tmp_path / "broken").write_text("{")
    assert node.main(["make"], str(tmp_path / "broken")) == 1
    shown = capsys.readouterr().err
    assert "scratch: make: FileNotFoundError" in shown
    assert "Traceback" not in shown


ATTACK = r"""
set -e
mount -t tmpfs -o mode=755 none "$1/scratch"
run() { python3 -IS "$1" "$2"; }
export SLURM_JOB_ID=12 SLURM_JOB_UID=3001 SLURM_JOB_GID=3001
run "$2" make
setpriv --reuid 3001 --regid 3001 --clear-groups sh -c 'cd "$1/scratch/jobs/12" && mkdir -p a/b && ln -s /etc a/etc && touch a/b/f' sh "$1"
setpriv --reuid 3002 --regid 3002 --clear-groups sh -c 'ls "$1/scratch/jobs/12" 2>&1; mkdir "$1/scratch/jobs/13" 2>&1; ls "$1/scratch/.rackwright-removing" 2>&1; mv "$1/scratch/jobs" "$1/scratch/x" 2>&1; :' sh "$1" | sed "s|$1||g"
stat -c '%n %u:%g %a' "$1/scratch/jobs/12" | sed "s|$1||g"
run "$2" remove
ls -A "$1/scratch/jobs" "$1/scratch/.rackwright-removing" | sed "s|$1||g"
# left by a crash: no record of this boot
SLURM_JOB_ID=14 run "$2" make; rm "$1/run/14"
# left by an epilog that did not run
SLURM_JOB_ID=15 run "$2" make; touch -d '1 hour ago' "$1/run/15"
# of a job that runs
SLURM_JOB_ID=16 run "$2" make; touch -d '1 hour ago' "$1/run/16"
mkdir -m 1777 "$1/scratch/tmp"
mkdir "$1/scratch/users"; for uid in 3001 3002; do install -d -o $uid "$1/scratch/users/$uid/sub"; install -o $uid /dev/null "$1/scratch/users/$uid/sub/f"; chown $uid "$1/scratch/users/$uid"; done
for uid in 3001 3002; do setpriv --reuid $uid --regid $uid --clear-groups sh -c 'mkdir "$1/scratch/tmp/$2"; touch "$1/scratch/tmp/$2/f"; ln -s /etc "$1/scratch/tmp/$2/l"' sh "$1" $uid; done
run "$2" leftovers
echo
sleep 4
run "$2" sweep
ls "$1/scratch/jobs" "$1/scratch/tmp"; (cd "$1/scratch" && find users)
umount "$1/scratch"
run "$2" make || echo refused
ls -A "$1/scratch"
"""


@pytest.mark.slow
def test_the_whole_program_as_root_with_users_beside_it(shared_path):
    """In a mount namespace of the test's own: three jobs, two users, a crash, and scratch that is not mounted."""
    tools, program = shared_path / "bin", shared_path / "program.py"
    tools.mkdir()
    (shared_path / "scratch").mkdir()
    (tools / "squeue").write_text("#!/bin/sh\necho '16|3002'\n")
    (tools / "squeue").chmod(0o755)
    settings = {
        **SETTINGS,
        "path": str(shared_path / "scratch"),
        "places": ["users", "tmp"],
        "user_hours": 0.001,
    }
    (shared_path / "settings.json").write_text(json.dumps(settings))
    text = one_text("rackwright.roles.scratch.node")
    for old, new in (
        ("/run/rackwright-scratch", str(shared_path / "run")),
        ("/etc/rackwright/scratch.json", str(shared_path / "settings.json")),
        ("/usr/sbin:/usr/bin:/sbin:/bin", f"{tools}:/usr/sbin:/usr/bin:/sbin:/bin"),
    ):
        assert old in text
        text = text.replace(old, new)
    program.write_text(text)
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", ATTACK, "sh", str(shared_path), str(program)],
        env={"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[:5] == [
        "ls: cannot open directory '/scratch/jobs/12': Permission denied",
        "mkdir: cannot create directory '/scratch/jobs/13': Permission denied",
        "ls: cannot access '/scratch/.rackwright-removing': No such file or directory",
        "mv: cannot move '/scratch/jobs' to '/scratch/x': Permission denied",
        "/scratch/jobs/12 3001:3001 700",
    ]
    assert lines[5:8] == ["/scratch/.rackwright-removing:", "", "/scratch/jobs:"]
    found = json.loads(lines[8])
    assert [(one["job"], one["state"]) for one in found["folders"]] == [("14", "earlier"), ("15", "ended")]
    left = [line for line in lines[9:] if line]
    left[4:-1] = sorted(left[4:-1])
    assert left == [
        f"{shared_path}/scratch/jobs:",
        "16",
        f"{shared_path}/scratch/tmp:",
        "3002",
        *("users", "users/3001", "users/3002", "users/3002/sub", "users/3002/sub/f"),
        "refused",
    ]
    assert "scratch: make: nothing is mounted on" in done.stderr
