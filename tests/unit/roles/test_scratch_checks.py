"""What the scratch role claims: each check passes, fails and cannot know."""

from __future__ import annotations

import json
import shlex

import pytest

from rackwright.claims.mount_probe import PROGRAM
from rackwright.roles.docker.options import DockerOptions
from rackwright.roles.scratch import paths, texts
from rackwright.roles.scratch.options import ScratchOptions
from rackwright.roles.scratch.verify import CHECKS
from tests.unit.roles.fake_facts import file, unit
from tests.unit.roles.fake_host import FakeHost, claimed, judged
from tests.unit.roles.scratch_site import scratch_site
from tests.unit.roles.sites import worker

OPTIONS = ScratchOptions(quota_gib=100, shared=("tmp",))
SITE = scratch_site(scratch=OPTIONS, docker=DockerOptions(data_root="/scratch/docker"))
NODE = worker(SITE)
FILES, FOLDERS = "the scratch files are as declared", "root owns the scratch folders"
TIMER, LEFT = "leftovers are removed on a timer", "no finished job has left a folder behind"
WAITS = "services that write to scratch start only while it is mounted"
ROOM = "scratch has free space"
LIMITS = "job limits are enforced"


def result(name: str, host: FakeHost) -> tuple[str, str]:
    found = judged("scratch", CHECKS, name, SITE, NODE, host)
    return found.status.value, found.evidence


def test_which_are_claimed():
    assert claimed("scratch", CHECKS, NODE) == (FILES, FOLDERS, TIMER, LEFT, ROOM, WAITS, LIMITS)
    plain = scratch_site(scratch=ScratchOptions(jobs=False, users=True), slurm=DockerOptions())
    assert claimed("scratch", CHECKS, worker(plain)) == (
        FILES,
        TIMER,
        LEFT,
        ROOM,
        "users' folders on scratch are private",
    )


def test_files():
    there = {}
    for path, declared in texts.files(NODE, OPTIONS).items():
        there |= file(path, *(declared or (None,)))
    assert result(FILES, FakeHost(there))[0] == "PASS"
    status, evidence = result(FILES, FakeHost({**there, **file(paths.SETTINGS, "{}\n")}))
    assert status == "FAIL"
    assert paths.SETTINGS in evidence
    assert result(FILES, FakeHost({}))[0] == "UNKNOWN"


def folder(path: str, mode: str, owner: str = "root"):
    from rackwright.facts.files import AtPath
    from tests.unit.roles.fake_facts import asked

    return {asked(AtPath().command(path, digest_only=True)): f"directory|{mode}|{owner}|root|60\n"}


def test_folders():
    good = {**folder("/scratch/jobs", "755"), **folder("/scratch/tmp", "1777")}
    assert result(FOLDERS, FakeHost(good)) == ("PASS", "/scratch/jobs, /scratch/tmp")
    open_to_all = FakeHost({**good, **folder("/scratch/jobs", "777")})
    assert result(FOLDERS, open_to_all) == ("FAIL", "/scratch/jobs is 777 root:root, not 755 root:root")
    assert result(FOLDERS, FakeHost({}))[0] == "UNKNOWN"


def test_timer():
    good = {**unit(paths.TIMER), **unit(paths.SWEEP, active="inactive", state="static")}
    assert result(TIMER, FakeHost(good))[0] == "PASS"
    assert result(TIMER, FakeHost({**good, **unit(paths.TIMER, active="inactive")}))[0] == "FAIL"
    status, evidence = result(TIMER, FakeHost({**good, **unit(paths.SWEEP, active="failed", state="static")}))
    assert status == "FAIL"
    assert evidence == f"the last run of {paths.SWEEP} failed: see `journalctl -u {paths.SWEEP}`"
    assert result(TIMER, FakeHost({}))[0] == "UNKNOWN"


def left(*folders: tuple[str, str, int], entries: int = 0, seconds: int = 0, silent: str | None = None):
    found = {
        "silent": silent,
        "folders": [{"job": job, "state": state, "seconds": age} for job, state, age in folders],
        "removing": {"entries": entries, "seconds": seconds},
    }
    return FakeHost({f"{paths.RUN} leftovers": json.dumps(found)})


@pytest.mark.parametrize(
    ("host", "status", "evidence"),
    [
        (left(), "PASS", "none"),
        (left(("7", "ended", 900)), "PASS", "7 of a job that ended, 0.2 h old"),
        (left(("7", "ended", 7200)), "WARN", "7 of a job that ended, 2.0 h old"),
        (
            left(("7", "earlier", 90_000), entries=2, seconds=40),
            "FAIL",
            "7 of a job from before the boot, 25.0 h old; 2 folders have waited 0.0 h for removal",
        ),
        (left(entries=3, seconds=90_000), "FAIL", "3 folders have waited 25.0 h for removal"),
        (
            left(("7", "unknown", 90_000), silent="`squeue` exited 1"),
            "UNKNOWN",
            "7 of a job, 25.0 h old: unknown whether their jobs are running, `squeue` exited 1",
        ),
        (left(silent="`squeue` exited 1"), "PASS", "none"),
        (
            left(*((str(job), "ended", 7200) for job in range(1, 8))),
            "WARN",
            "; ".join(f"{job} of a job that ended, 2.0 h old" for job in range(1, 6)) + "; and 2 more",
        ),
        (FakeHost({}), "UNKNOWN", None),
        (FakeHost({f"{paths.RUN} leftovers": "{}"}), "UNKNOWN", None),
        (FakeHost({f"{paths.RUN} leftovers": "rubbish"}), "UNKNOWN", None),
        (left(("7", "odd", 1)), "UNKNOWN", None),
        (
            FakeHost(
                {f"{paths.RUN} leftovers": (1, "", "scratch: leftovers: nothing is mounted on /scratch")}
            ),
            "UNKNOWN",
            None,
        ),
    ],
)
def test_leftovers(host, status, evidence):
    found = result(LEFT, host)
    assert found[0] == status, found
    assert evidence in (None, found[1])


def requires(unit_name: str, printed: str):
    return {f"systemctl show -p RequiresMountsFor {unit_name}": printed}


def test_units_that_wait():
    both = ("slurmd.service", "docker.service")
    good = {
        key: value
        for name in both
        for key, value in {**unit(name), **requires(name, "RequiresMountsFor=/var/tmp /scratch\n")}.items()
    }
    assert result(WAITS, FakeHost(good)) == ("PASS", "slurmd.service, docker.service")
    without = {**good, **requires("docker.service", "RequiresMountsFor=/var/tmp\n")}
    assert result(WAITS, FakeHost(without)) == (
        "FAIL",
        "docker.service starts without /scratch: it requires /var/tmp",
    )
    for printed in ("", "what\n"):
        assert result(WAITS, FakeHost({**good, **requires("docker.service", printed)}))[0] == "UNKNOWN"
    missing = {**good, **unit("docker.service", active="inactive", state="", load="not-found")}
    assert result(WAITS, FakeHost(missing)) == ("UNKNOWN", "systemd does not know docker.service")
    assert result(WAITS, FakeHost({}))[0] == "UNKNOWN"


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("enforced\n", "PASS"),
        ("not enforced\n", "FAIL"),
        ("", "UNKNOWN"),
        ((1, "", "scratch: quota: xfs_quota: No such file or directory"), "UNKNOWN"),
        (None, "UNKNOWN"),
    ],
)
def test_limits(answer, status):
    assert result(LIMITS, FakeHost({} if answer is None else {f"{paths.RUN} quota": answer}))[0] == status


def with_room(free: int, **more: object) -> FakeHost:
    shown = {"seconds": 0.1, "blocks": 100, "available": free, "files": 0, "files_available": 0, **more}
    asked = f"python3 -IS -c {shlex.quote(PROGRAM)} read /scratch 5"
    return FakeHost({asked: json.dumps({"/scratch": shown})})


@pytest.mark.parametrize(
    ("host", "status", "evidence"),
    [
        (with_room(40), "PASS", "/scratch has 40 % free"),
        (with_room(4), "WARN", "/scratch has 4 % free, less than the declared 5 %"),
        (with_room(2), "FAIL", "/scratch has 2 % free, less than the declared 5 %"),
        (with_room(40, hangs=True), "UNKNOWN", "/scratch does not answer within 5 s"),
        (FakeHost({}), "UNKNOWN", None),
    ],
)
def test_room(host, status, evidence):
    found = result(ROOM, host)
    assert found[0] == status, found
    assert evidence in (None, found[1])
