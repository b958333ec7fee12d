"""Folders of jobs: made whole or not at all, taken away at once. Runs on the node: standard library, Python 3.9."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from rackwright.node_folders.locking import LockHeld
from rackwright.node_folders.locking import locked as file_locked
from rackwright.node_folders.mounted import opened, own
from rackwright.node_folders.quota import NoQuota, set_limit, set_project
from rackwright.node_folders.removal import move_away
from rackwright.roles.scratch.paths import BIN, JOBS, STATE

ID = re.compile(r"[1-9]\d{0,9}")
_LOCK_SECONDS = 30


class JobMistake(Exception):  # noqa: N818 - carried to the log as a sentence
    """The environment does not name a job, or another run holds the lock."""


@dataclass(frozen=True)
class Job:
    """A job, and whose it is."""

    id: str
    uid: int
    gid: int

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Job:
        """As Slurm gives it to prologs and epilogs (prolog_epilog guide of Slurm, read 2026-11-26)."""
        job, uid = environment.get("SLURM_JOB_ID", ""), environment.get("SLURM_JOB_UID", "")
        if not ID.fullmatch(job) or not re.fullmatch(r"\d{1,10}", uid):
            raise JobMistake("SLURM_JOB_ID and SLURM_JOB_UID do not name a job and its user")
        return cls(job, int(uid), _group(int(uid), environment))


def _group(uid: int, environment: Mapping[str, str]) -> int:
    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_gid
    gid = environment.get("SLURM_JOB_GID", "")
    return int(gid) if re.fullmatch(r"\d{1,10}", gid) else uid


@contextmanager
def locked(state: str = STATE) -> Iterator[None]:
    """One at a time makes and takes away folders; the time of waiting is bounded."""
    lock = os.path.join(state, ".lock")
    try:
        with file_locked(lock, _LOCK_SECONDS):
            yield
    except LockHeld:
        raise JobMistake(f"another run holds {lock}") from None


@dataclass(frozen=True)
class Jobs:
    """The folders of jobs on a mounted filesystem."""

    settings: Mapping[str, Any]
    root: int
    """Descriptor of the filesystem's root folder."""
    state: str = STATE

    def make(self, job: Job) -> None:
        """A folder of the job's user alone, with its limit. One that this boot has made already stays as it is."""
        with own(self.root, JOBS, 0o755) as jobs:
            if self.exists(jobs, job.id):
                if self.made(job.id) is not None and self._owner(jobs, job.id) == job.uid:
                    return
                self._away(jobs, job.id)  # of a job from before the boot, requeued under its number
            os.mkdir(job.id, 0o700, dir_fd=jobs)
            try:
                with opened(job.id, jobs) as folder:
                    self._limit(folder, job.id)
                    os.fchown(folder, job.uid, job.gid)
                with open(os.path.join(self.state, job.id), "w", encoding="ascii") as record:
                    record.write(f"{job.uid}\n")
            except (OSError, NoQuota):
                os.rmdir(job.id, dir_fd=jobs)
                raise

    def take_away(self, job: str) -> None:
        """The folder is gone for everyone; its content waits to be removed."""
        with own(self.root, JOBS, 0o755) as jobs:
            if self.exists(jobs, job):
                self._away(jobs, job)
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self.state, job))

    def lift_limit(self, job: str) -> None:
        """Of a job that has no folder any more."""
        if self.settings["quota_gib"]:
            set_limit(self.settings["path"], self.project(job), 0)

    def made(self, job: str) -> float | None:
        """When this boot made the folder, seconds since 1970; None: an earlier one did."""
        try:
            return os.stat(os.path.join(self.state, job)).st_mtime
        except FileNotFoundError:
            return None

    def names(self) -> list[str]:
        """Jobs that have a folder."""
        with own(self.root, JOBS, 0o755) as jobs, os.scandir(jobs) as entries:
            return sorted(entry.name for entry in entries if ID.fullmatch(entry.name))

    def exists(self, jobs: int, job: str) -> bool:
        """Whether a job has a folder."""
        try:
            os.stat(job, dir_fd=jobs, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def project(self, job: str) -> int:
        """Number of the job's project: no two jobs have the same, as Slurm's numbers end below the range's size."""
        return int(self.settings["first_project_id"]) + int(job) % int(self.settings["project_ids"])

    def _owner(self, jobs: int, job: str) -> int:
        return os.stat(job, dir_fd=jobs, follow_symlinks=False).st_uid

    def _away(self, jobs: int, job: str) -> None:
        with own(self.root, BIN, 0o700) as bin_folder:
            move_away(job, jobs, bin_folder)

    def _limit(self, folder: int, job: str) -> None:
        if self.settings["quota_gib"]:
            set_project(folder, self.project(job))
            set_limit(self.settings["path"], self.project(job), int(self.settings["quota_gib"]))
