"""Folders of users: the program that root runs makes them, and never hands out what another user left there."""

from __future__ import annotations

import os
import stat
import subprocess

import pytest

from rackwright.roles.podman.options import PodmanOptions
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.workload.user_folders import UserFolders
from tests.unit.roles.container_site import runtimes
from tests.unit.roles.sites import head, worker

SITE = runtimes(podman=PodmanOptions(rootless_root="/scratch/rootless"), slurm=SlurmOptions())
GPU = worker(SITE)
ME = os.getuid()
OTHER = 54321


def program(folder, tmp_path, prefix=""):
    """The program for a folder of the test's, which belongs to whoever runs the test; chown and logger are recorded."""
    tools = tmp_path / "tools"
    tools.mkdir(exist_ok=True)
    for name in ("chown", "logger"):
        (tools / name).write_text(f'#!/bin/sh\necho {name} "$@" >>{tmp_path}/called\n')
        (tools / name).chmod(0o755)
    text = UserFolders("podman", (str(folder),), prefix).files(GPU)[
        "/usr/libexec/rackwright/user-folders-podman"
    ][0]
    text = text.replace("PATH=", f"PATH={tools}:").replace("-uid 0", f"-uid {ME}")
    path = tmp_path / "make"
    path.write_text(text)
    path.chmod(0o755)
    return path


def made(path, *arguments, **environment):
    return subprocess.run(
        [str(path), *arguments], env=environment, capture_output=True, text=True, check=False, timeout=20
    )


def called(tmp_path):
    path = tmp_path / "called"
    return path.read_text() if path.exists() else ""


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "rootless"
    path.mkdir(mode=0o755)
    return path


def test_a_users_folder_is_theirs_alone(folder, tmp_path):
    ran = made(program(folder, tmp_path, "user-"), str(OTHER))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert stat.S_IMODE((folder / f"user-{OTHER}").stat().st_mode) == 0o700
    assert f"chown {OTHER}:{OTHER} {folder}/user-{OTHER}\n" in called(tmp_path)


def test_a_prolog_names_the_user_of_the_job(folder, tmp_path):
    ran = made(program(folder, tmp_path), SLURM_JOB_UID=str(OTHER), SLURM_JOB_GID="99")
    assert ran.returncode == 0
    assert f"chown {OTHER}:99 " in called(tmp_path)
    assert [path.name for path in folder.iterdir()] == [str(OTHER)]


def test_what_is_in_a_users_own_folder_stays(folder, tmp_path):
    (folder / str(ME)).mkdir(mode=0o755)
    (folder / str(ME) / "image").write_text("kept")
    assert made(program(folder, tmp_path), str(ME)).returncode == 0
    assert (folder / str(ME) / "image").read_text() == "kept"
    assert [path.name for path in folder.iterdir()] == [str(ME)]


@pytest.mark.parametrize("kind", ["folder of another user", "link", "link to nothing", "file"])
def test_what_another_user_left_there_is_moved_aside_and_never_used(kind, folder, tmp_path):
    elsewhere, wanted = tmp_path / "elsewhere", folder / str(OTHER)
    elsewhere.mkdir(mode=0o777)
    if kind == "folder of another user":
        wanted.mkdir()
        (wanted / "trojan").write_text("")
    elif kind == "file":
        wanted.write_text("")
    else:
        wanted.symlink_to(elsewhere if kind == "link" else tmp_path / "missing")
    ran = made(program(folder, tmp_path), str(OTHER))
    assert ran.returncode == 0, ran.stderr
    assert wanted.is_dir()
    assert not wanted.is_symlink()
    assert list(wanted.iterdir()) == []
    (aside,) = (path for path in folder.iterdir() if path != wanted)
    assert aside.name.startswith(f"{OTHER}.not-of-{OTHER}.")
    assert "did not belong to user" in called(tmp_path)
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("access", [0o775, 0o777, 0o1777])
def test_a_place_that_others_may_write_is_refused_with_a_sentence(access, folder, tmp_path):
    folder.chmod(access)
    ran = made(program(folder, tmp_path), str(OTHER))
    assert ran.returncode == 1
    assert ran.stderr == (
        f"podman: {folder} is missing or can be written by other users; user {OTHER} gets no folder in it\n"
    )
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("uid", ["", "ada", "../etc", "-1", "1 2"])
def test_only_a_uid_is_taken(uid, folder, tmp_path):
    assert made(program(folder, tmp_path), *([uid] if uid else [])).returncode == 64
    assert list(folder.iterdir()) == []


def test_a_worker_makes_them_before_jobs_and_every_node_before_logins():
    folders = UserFolders("podman", ("/scratch/rootless",))
    on_worker, on_head = folders.files(GPU), folders.files(head(SITE))
    prolog = "/etc/slurm/prolog.d/10-rackwright-podman"
    assert on_worker[prolog] is not None
    assert on_head[prolog] is None
    session = "/etc/systemd/system/user-runtime-dir@.service.d/50-rackwright-podman.conf"
    assert "ExecStartPost=-/usr/libexec/rackwright/user-folders-podman %i\n" in on_head[session][0]
    without = runtimes(podman=PodmanOptions())
    assert prolog not in folders.files(worker(without))


def test_a_prolog_never_drains_the_node(tmp_path):
    """Slurm drains a node whose prolog fails."""
    text = UserFolders("podman", ("/nowhere",)).files(GPU)["/etc/slurm/prolog.d/10-rackwright-podman"][0]
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    ran = subprocess.run(
        ["sh", "-c", text.replace("/usr/libexec/rackwright/user-folders-podman", str(broken))], check=False
    )
    assert ran.returncode == 0
