"""The scratch role: mistakes of its options and of the cluster, warnings, its files."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from rackwright.model.unit_files import foreign_unit_files
from rackwright.roles.docker.options import DockerOptions
from rackwright.roles.integrity.options import IntegrityOptions
from rackwright.roles.scratch import paths, texts
from rackwright.roles.scratch.options import ScratchOptions
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.storage_layout.sections import FilesystemOptions
from tests.unit.roles.fake_host import content, errors_in, planned
from tests.unit.roles.scratch_site import SCRATCH, layout, scratch_site
from tests.unit.roles.sites import head, worker


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"variables": ["LD_PRELOAD"]}, "LD_PRELOAD already has a meaning in a job."),
        ({"variables": ["SLURM_TMPDIR"]}, "SLURM_TMPDIR already has a meaning in a job."),
        ({"variables": ["PATH"]}, "PATH already has a meaning in a job."),
        ({"variables": ["A=$(x)"]}, "String should match pattern '^[A-Z_][A-Z0-9_]{0,62}$'"),
        ({"shared": ["jobs"]}, "jobs is the folder of jobs, not a shared one."),
        ({"shared": ["../x"]}, "String should match pattern '^[a-z0-9][a-z0-9_-]{0,30}$'"),
        ({"first_project_id": 2**32 - 5}, "Input should be less than or equal to 4227858431"),
        ({"quota_gib": 0}, "Input should be greater than or equal to 1"),
    ],
)
def test_mistakes(changes, message):
    assert errors_in(ScratchOptions, changes) == [message]


def problems(options: ScratchOptions, **site: Any) -> list[tuple[str, str, str | None]]:
    return list(options.problems(scratch_site(scratch=options, **site)))


def test_it_runs_on_workers_with_scratch():
    cluster = scratch_site(scratch=ScratchOptions(), without=("gpu2",))
    assert [node.name for node in cluster.running("scratch")] == ["gpu1"]
    assert problems(ScratchOptions()) == []


def test_no_filesystem_or_several():
    hint = "e.g. `storage: {scratch: {kind: local, purpose: scratch, path: /scratch, roles: [worker]}}`"
    assert problems(ScratchOptions(), without=("gpu1", "gpu2")) == [
        ("", "No worker uses a filesystem of kind local and purpose scratch.", hint)
    ]
    assert problems(ScratchOptions(filesystem="other")) == [
        ("filesystem", "No worker uses the filesystem other of kind local and purpose scratch.", hint)
    ]
    second = SCRATCH.model_copy(update={"name": "slow", "path": "/slow"})
    assert problems(ScratchOptions(), filesystems=(SCRATCH, second)) == [
        ("filesystem", "gpu1 uses several scratch filesystems: fast, slow.", "name one of them")
    ]
    assert problems(ScratchOptions(filesystem="slow"), filesystems=(SCRATCH, second)) == []


def test_limits_need_xfs_with_project_quotas():
    limited = ScratchOptions(quota_gib=100)
    assert problems(limited) == []
    assert problems(limited, layout_of=layout(type="ext4", mount_options=["noatime"])) == [
        ("quota_gib", "/scratch of gpu1 is ext4, but job limits need xfs.", None)
    ]
    assert problems(limited, layout_of=layout(mount_options=["noatime"])) == [
        (
            "quota_gib",
            "/scratch of gpu1 is mounted without project quotas.",
            "e.g. `storage_layout: {filesystems: {/scratch: {mount_options: [noatime, prjquota]}}}`",
        )
    ]


@pytest.mark.parametrize(
    ("mounted", "hours", "problem"),
    [
        (["relatime", "prjquota"], 48, None),
        (["prjquota"], 48, None),
        ([], 48, None),
        (["strictatime"], 1, None),
        (["noatime", "prjquota"], 720, "noatime"),
        (["nodev", "noatime"], 720, "noatime"),
        (None, 720, "noatime"),
        (["relatime"], 47, "relatime"),
        (["atime"], 47, "relatime"),
        (["nostrictatime"], 47, "relatime"),
    ],
)
def test_old_files_are_known_by_access_times(mounted, hours, problem):
    given = layout(mount_options=FilesystemOptions(on="a").mount_options if mounted is None else mounted)
    found = problems(ScratchOptions(users=True, user_hours=hours), layout_of=given)
    assert [(path, f"is mounted with {problem}" in shown) for path, shown, _ in found] == (
        [("user_hours", True)] if problem else []
    )
    assert problems(ScratchOptions(user_hours=hours), layout_of=given) == []  # no folder of users


def test_the_mistake_names_options_that_work():
    ((_, shown, hint),) = problems(ScratchOptions(users=True, user_hours=168))
    assert (shown, hint) == (
        "/scratch of gpu1 is mounted with noatime: files that are read every day would be removed as unread.",
        "e.g. `storage_layout: {filesystems: {/scratch: {mount_options: [relatime, prjquota]}}}`",
    )
    short = ScratchOptions(users=True, user_hours=24)
    ((_, shown, hint),) = problems(short, layout_of=layout(mount_options=["relatime"]))
    assert (shown, hint) == (
        "/scratch of gpu1 is mounted with relatime, which records reads up to 24 h late: 24 h is too short.",
        "at least 48, or `strictatime` in `mount_options`",
    )


@pytest.mark.parametrize(
    ("access", "refused"),
    [
        ({}, False),
        ({"mode": "1777"}, False),
        ({"mode": "750", "group": "science"}, False),
        ({"mode": "777"}, True),
        ({"mode": "775"}, True),
        ({"mode": "1777", "owner": "ada"}, True),
        ({"owner": "ada"}, True),
    ],
)
def test_every_prolog_would_refuse_a_scratch_that_users_can_change(access, refused):
    given = layout(**access)
    owner, mode = access.get("owner", "root"), access.get("mode", "755")
    shown = f"/scratch of gpu1 has owner {owner} and mode {mode}: other users could rename what root makes in it, so every prolog would fail."
    hint = "e.g. `storage_layout: {filesystems: {/scratch: {owner: root, mode: '755'}}}`, or `mode: '1777'`"
    assert problems(ScratchOptions(), layout_of=given) == ([("", shown, hint)] if refused else [])
    found = [text for _, text, _ in problems(ScratchOptions(jobs=False), layout_of=given)]
    assert found == ([shown.replace("every prolog", "the timer that removes leftovers")] if refused else [])


def test_folders_in_the_way_and_nodes_that_lack_them():
    docker = DockerOptions(data_root="/scratch/jobs/docker")
    assert problems(ScratchOptions(), docker=docker)[0] == (
        "",
        "`docker.data_root` is /scratch/jobs/docker, the folder jobs of this role.",
        "give it a separate folder, e.g. /scratch/docker",
    )
    slurm = SlurmOptions(private_tmp_dir="/scratch")
    assert problems(ScratchOptions(), slurm=slurm) == [
        (
            "",
            "`slurm.private_tmp_dir` is /scratch, the filesystem itself.",
            "give it a separate folder, e.g. /scratch/slurm",
        )
    ]
    assert problems(ScratchOptions(), without=("gpu2",)) == [
        (
            "",
            "`slurm.private_tmp_dir` is below /scratch, and gpu2 has no filesystem there: its boot disk would fill.",
            "declare scratch for these nodes too, or another folder by their group's `options`",
        )
    ]


def test_the_ages_of_leftovers_are_in_order():
    assert problems(ScratchOptions(warn_hours=5, fail_hours=2)) == [
        ("warn_hours", "`warn_hours` is more than `fail_hours`.", None)
    ]


def test_an_epilog_ends_before_slurm_ends_it():
    assert problems(ScratchOptions(remove_seconds=240)) == []
    assert problems(ScratchOptions(remove_seconds=241)) == [
        (
            "remove_seconds",
            "An epilog may remove files for 241 s, but is killed after 300 s: that drains the node.",
            "at most 240, or a longer `slurm: {timeouts: {prolog_epilog: ...}}`",
        )
    ]


def test_jobs_need_a_workload_manager():
    assert problems(ScratchOptions(), slurm=DockerOptions(data_root="/scratch/docker")) == [
        (
            "jobs",
            "gpu[1-2] has no workload manager with a prolog, which makes the folders of jobs.",
            "add `roles.slurm`, or `jobs: false`",
        )
    ]


OPTIONS = ScratchOptions(
    quota_gib=100, variables=("SCRATCH", "TMPDIR"), users=True, shared=("tmp",), user_hours=72
)
DOCKER = DockerOptions(data_root="/scratch/docker")
SITE = scratch_site(scratch=OPTIONS, docker=DOCKER, integrity=IntegrityOptions())


def test_files():
    plan = planned(SITE, worker(SITE))
    settings = content(plan, paths.SETTINGS)
    assert settings is not None
    assert json.loads(settings) == {
        "path": "/scratch",
        "node": "gpu1",
        "manager": "slurm",
        "jobs": True,
        "quota_gib": 100,
        "first_project_id": 1073741824,
        "project_ids": 67108864,
        "places": ["users", "tmp"],
        "user_hours": 72,
        "grace_seconds": 600,
        "remove_seconds": 60,
        "sweep_seconds": 3000,
    }
    assert content(plan, "/etc/slurm/prolog.d/30-rackwright-job-scratch") == (
        "#!/bin/sh\n# Written by rackwright; changes made here are undone.\n"
        "# Without its folder the job does not start: the node is drained, and the job goes back to the queue.\n"
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin exec python3 -IS /usr/local/libexec/rackwright-scratch.py make\n"
    )
    assert content(plan, "/etc/slurm/epilog.d/30-rackwright-job-scratch") == (
        "#!/bin/sh\n# Written by rackwright; changes made here are undone. A failure is logged, verify reports what is "
        "left, and the\n# timer removes it: Slurm would drain the node.\n"
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin python3 -IS /usr/local/libexec/rackwright-scratch.py remove || :\n"
    )
    assert content(plan, "/etc/systemd/system/rackwright-scratch-sweep.service") == (
        "# Written by rackwright; changes made here are undone.\n"
        "[Unit]\nDescription=Remove what jobs left on /scratch\nRequiresMountsFor=/scratch\nAfter=slurmd.service\n\n"
        "[Service]\nType=oneshot\nExecStart=/usr/bin/python3 -IS /usr/local/libexec/rackwright-scratch.py sweep\n"
        "TimeoutStartSec=3120\nNice=19\nIOSchedulingClass=idle\nNoNewPrivileges=yes\n"
    )
    assert content(plan, "/etc/systemd/system/rackwright-scratch-sweep.timer") == (
        "# Written by rackwright; changes made here are undone.\n"
        "[Unit]\nDescription=Remove what jobs left on /scratch\n\n"
        "[Timer]\nOnBootSec=2min\nOnUnitInactiveSec=15min\nRandomizedDelaySec=30\n\n"
        "[Install]\nWantedBy=timers.target\n"
    )


def test_daemons_wait_for_scratch_where_they_write_below_it():
    plan = planned(SITE, worker(SITE))
    text = (
        "# Written by rackwright: nothing is written below /scratch while it is not mounted.\n"
        "[Unit]\nRequiresMountsFor=/scratch\n"
    )
    for unit in ("slurmd", "docker"):
        path = f"/etc/systemd/system/{unit}.service.d/50-rackwright-scratch.conf"
        assert content(plan, path) == text
        assert foreign_unit_files(worker(SITE), "", (path,)) == ()
    other = scratch_site(scratch=OPTIONS, docker=DockerOptions())
    drop_in = "/etc/systemd/system/docker.service.d/50-rackwright-scratch.conf"
    assert texts.files(worker(other), OPTIONS)[drop_in] is None
    assert OPTIONS.waiting_units(worker(other)) == ("slurmd.service",)


def test_the_hooks_of_slurm():
    conf = content(planned(SITE, head(SITE)), "/etc/slurm/slurm.conf")
    assert conf is not None
    assert "\nTaskProlog=/etc/slurm/task_prolog.sh\n" in conf
    assert content(planned(SITE, worker(SITE)), "/etc/slurm/task_prolog.sh") is not None
    without = scratch_site()
    plan = planned(without, worker(without))
    assert "TaskProlog" not in (content(plan, "/etc/slurm/slurm.conf") or "")
    assert content(plan, "/etc/slurm/task_prolog.sh") is None


def test_a_failure_may_let_the_job_start_and_jobs_may_go_without():
    node = worker(SITE)
    file = texts.files(node, OPTIONS.model_copy(update={"on_failure": "start"}))[
        "/etc/slurm/prolog.d/30-rackwright-job-scratch"
    ]
    assert file is not None
    assert file[0].endswith("make || :\n")
    bare = texts.files(node, ScratchOptions(jobs=False))
    for stage in ("prolog", "epilog", "task_prolog"):
        assert bare[f"/etc/slurm/{stage}.d/30-rackwright-job-scratch"] is None


@pytest.mark.parametrize(
    ("job", "printed"),
    [
        ("12", "export SCRATCH={}/jobs/12\nexport TMPDIR={}/jobs/12\n"),
        ("13", ""),
        ("", ""),
        ("1/../../etc", ""),
        ("$(id)", ""),
    ],
)
def test_tasks_find_the_folder_of_their_job(tmp_path, job, printed):
    (tmp_path / "jobs/12").mkdir(parents=True)
    runner, hook = tmp_path / "runner", tmp_path / "task_prolog.d" / "30"
    file = texts.files(worker(SITE), OPTIONS)["/etc/slurm/task_prolog.d/30-rackwright-job-scratch"]
    text = content(planned(SITE, worker(SITE)), "/etc/slurm/task_prolog.sh")
    assert file is not None
    assert text is not None
    hook.parent.mkdir()
    hook.write_text(file[0].replace("/scratch", str(tmp_path)))
    runner.write_text(text.replace("/etc/slurm/task_prolog.d", str(hook.parent)))
    for path in (runner, hook):
        path.chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": job}
    done = subprocess.run(
        [str(runner)], env=environment, capture_output=True, text=True, check=True, timeout=20
    )
    assert (done.stdout, done.stderr) == (printed.format(tmp_path, tmp_path), "")
