"""Runs on the node: folders of jobs on local scratch. Standard library alone, Python 3.9.

rackwright-scratch.py make        from a prolog: the folder of the job, for its user alone
rackwright-scratch.py remove      from an epilog: takes it away at once, and removes it for as long as is declared
rackwright-scratch.py sweep       from a timer: what no job and no user needs any more
rackwright-scratch.py leftovers   prints JSON: folders without a job, and what is still to be removed
rackwright-scratch.py quota       prints `enforced` where project quotas are
"""

from __future__ import annotations

import json
import os
import sys
import syslog
import time
from contextlib import suppress
from typing import Any

from rackwright.node_folders.mounted import Unsafe, mounted, own
from rackwright.node_folders.quota import NoQuota, is_enforced
from rackwright.node_folders.removal import Removed, clear
from rackwright.roles.scratch.node_jobs import Job, JobMistake, Jobs, locked
from rackwright.roles.scratch.node_sweep import leftovers, sweep
from rackwright.roles.scratch.paths import BIN, SETTINGS

COMMANDS = ("make", "remove", "sweep", "leftovers", "quota")


def say(text: str, *, bad: bool = False) -> None:
    """To the log, and where it is bad to the caller."""
    syslog.syslog(syslog.LOG_ERR if bad else syslog.LOG_INFO, text)
    if bad:
        print(f"scratch: {text}", file=sys.stderr)


def report(removed: Removed, what: str) -> None:
    """Log what stays."""
    if not removed.in_time:
        say(f"{what}: time ran out; the timer continues")
    for one in removed.left:
        say(f"{what}: cannot remove {one}", bad=True)


def make(settings: dict[str, Any], job: Job) -> None:
    """The folder of a job."""
    with mounted(settings["path"]) as root, locked():
        Jobs(settings, root).make(job)


def remove(settings: dict[str, Any], job: Job) -> None:
    """Moved aside at once, then removed as far as time allows."""
    with mounted(settings["path"]) as root:
        jobs = Jobs(settings, root)
        with locked():
            jobs.take_away(job.id)
        with own(root, BIN, 0o700) as bin_folder:
            report(clear(bin_folder, settings["remove_seconds"]), f"job {job.id}")
        jobs.lift_limit(job.id)


def run(command: str, settings: dict[str, Any]) -> int:
    """One command; exit status."""
    if command == "make":
        make(settings, Job.of_environment(os.environ))
    elif command == "remove":
        remove(settings, Job.of_environment(os.environ))
    elif command == "sweep":
        for removed, what in sweep(settings, time.time()):
            report(removed, what)
    elif command == "leftovers":
        print(json.dumps(leftovers(settings, time.time())))
    else:
        print("enforced" if is_enforced(settings["path"]) else "not enforced")
    return 0


def main(arguments: list[str], path: str = SETTINGS) -> int:
    """Never a traceback: a prolog's last line is the reason that an operator reads."""
    if len(arguments) != 1 or arguments[0] not in COMMANDS:
        print(f"usage: rackwright-scratch.py {'|'.join(COMMANDS)}", file=sys.stderr)
        return 64
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"  # Slurm gives its hooks none
    os.umask(0o077)
    with suppress(ValueError):
        syslog.openlog("rackwright-scratch", 0, syslog.LOG_DAEMON)
    try:
        with open(path, encoding="utf-8") as text:
            settings = json.load(text)
        return run(arguments[0], settings)
    except (Unsafe, NoQuota, JobMistake) as error:
        say(f"{arguments[0]}: {error}", bad=True)
    except (OSError, ValueError) as error:
        say(f"{arguments[0]}: {type(error).__name__}: {error}", bad=True)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
