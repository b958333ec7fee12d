"""Removes what no job and no user on the node needs any more. Runs on the node: standard library, Python 3.9."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rackwright.node_folders.mounted import Unsafe, mount_id, mounted, opened, own
from rackwright.node_folders.removal import Aged, Removed, clear, remove_aged
from rackwright.roles.scratch.node_jobs import Jobs, locked
from rackwright.roles.scratch.paths import BIN, USERS
from rackwright.workload.on_node import manager_on
from rackwright.workload.states import NoAnswer

LEAST_UID = 1000
"""Below it are accounts of services (login.defs(5), UID_MIN of Debian and EL)."""


@dataclass(frozen=True)
class Present:
    """Jobs and users on the node now."""

    jobs: frozenset[str]
    users: frozenset[int]
    silent: str | None = None
    """Why the workload manager gave no answer; then `jobs` is what this node's processes show."""


def processes(proc: str = "/proc") -> tuple[list[str], frozenset[int]]:
    """Command lines, and users who have a process."""
    lines, users = [], set()
    for name in os.listdir(proc):
        if not name.isdigit():
            continue
        try:
            users.add(os.stat(f"{proc}/{name}").st_uid)
            with open(f"{proc}/{name}/cmdline", "rb") as text:
                lines.append(text.read(4096).replace(b"\0", b" ").decode("utf-8", "replace"))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return lines, frozenset(users)


def present(settings: Mapping[str, Any]) -> Present:
    """As the workload manager and the node's own processes have it: a job is here if either shows it."""
    lines, users = processes()
    if settings["node"] is None:
        return Present(frozenset(), users)
    manager = manager_on(settings["node"], settings.get("manager"))
    here = manager.jobs_among(lines)
    try:
        jobs = manager.jobs()
    except NoAnswer as error:
        return Present(here, users, str(error))
    return Present(here | jobs.keys(), users | frozenset(jobs.values()))


def state_of(jobs: Jobs, job: str, there: Present, now: float) -> tuple[str, float]:
    """`running`, `starting`, `unknown`, `ended` or `earlier` (before the node booted), and the folder's age in seconds."""
    made = jobs.made(job)
    if made is None:
        return ("running", 0.0) if job in there.jobs else ("earlier", now - _changed(jobs, job))
    age = max(now - made, 0.0)
    if job in there.jobs:
        return "running", age
    if there.silent is not None:
        return "unknown", age
    return ("starting" if age < jobs.settings["grace_seconds"] else "ended"), age


def _changed(jobs: Jobs, job: str) -> float:
    with own(jobs.root, "jobs", 0o755) as folder:
        try:
            return os.stat(job, dir_fd=folder, follow_symlinks=False).st_ctime
        except FileNotFoundError:
            return time.time()


def sweep(settings: Mapping[str, Any], now: float) -> Iterator[tuple[Removed, str]]:
    """What came of each part: folders of jobs, then old files of users."""
    end = time.monotonic() + settings["sweep_seconds"]
    with mounted(settings["path"]) as root:
        jobs = Jobs(settings, root)
        there = present(settings)
        taken = list(_taken(jobs, there, now)) if settings["jobs"] else []
        with own(root, BIN, 0o700) as bin_folder:
            yield clear(bin_folder, end - time.monotonic()), "leftovers"
        for job in taken:
            with locked():
                if jobs.made(job) is None:
                    jobs.lift_limit(job)
        if settings["user_hours"] is not None and there.silent is None:
            aged = Aged(now - settings["user_hours"] * 3600, LEAST_UID, there.users)
            for name in settings["places"]:
                with opened(name, root) as place:
                    yield _old_files(place, name, aged, end), name


def _taken(jobs: Jobs, there: Present, now: float) -> Iterator[str]:
    """Take away the folders without a job."""
    for job in jobs.names():
        with locked():
            if state_of(jobs, job, there, now)[0] in ("ended", "earlier"):
                jobs.take_away(job)
                yield job


def _old_files(place: int, name: str, aged: Aged, end: float) -> Removed:
    # as it is mounted now: a declared mount option may still wait for a reboot
    if os.fstatvfs(place).f_flag & os.ST_NOATIME:
        raise Unsafe(
            f"{name} is mounted with noatime, so nothing shows which files are read: none is removed"
        )
    mount = mount_id(place)
    if name != USERS:
        return remove_aged(place, mount, aged, end)
    removed = Removed()  # the folders of users themselves stay
    with os.scandir(place) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    for user in names:
        with opened(user, place) as folder:
            if mount_id(folder) == mount:
                below = remove_aged(folder, mount, aged, end)
                removed.files += below.files
                removed.in_time = removed.in_time and below.in_time
                removed.left += below.left
    return removed


def leftovers(settings: Mapping[str, Any], now: float) -> dict[str, Any]:
    """Folders of jobs that are not on the node, and what is still to be removed; `silent`: why it is not known."""
    with mounted(settings["path"]) as root:
        jobs, there = Jobs(settings, root), present(settings)
        found = []
        for job in jobs.names() if settings["jobs"] else ():
            state, age = state_of(jobs, job, there, now)
            if state not in ("running", "starting"):
                found.append({"job": job, "state": state, "seconds": int(age)})
        with own(root, BIN, 0o700) as bin_folder, os.scandir(bin_folder) as entries:
            ages = [
                now - entry.stat(follow_symlinks=False).st_ctime
                for _, entry in zip(range(1000), entries)  # noqa: B905 - Python 3.9
            ]
    return {
        "silent": there.silent,
        "folders": found,
        "removing": {"entries": len(ages), "seconds": int(max(ages, default=0))},
    }
