"""Options of the commands that reboot nodes, and the typed confirmation before jobs are cancelled."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from rackwright.boundary import printable
from rackwright.cli.lines import say
from rackwright.clusterfile.load import load_cluster
from rackwright.engine.reboots import Asked, jobs_on
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold

KillJobs = Annotated[
    bool,
    typer.Option("--kill-jobs", help="Cancel the jobs of nodes that are rebooted, after typed confirmation."),
]
Confirm = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT", help="What --kill-jobs asks you to type: the cluster's name. --yes is not enough."
    ),
]
BootTimeout = Annotated[
    int | None,
    typer.Option(
        min=10, help="Seconds from the order to reboot to the end of the boot; waves.boot_timeout_seconds."
    ),
]
_SHOWN = 10


def asked_for(
    file: Path, kill_jobs: bool, boot_timeout: int | None, *, whether_due_or_not: bool = False
) -> Asked:
    """The reboots that these options ask for, with the cluster file's values where they are not given."""
    seconds = boot_timeout or load_cluster(file).waves.boot_timeout_seconds
    return Asked(seconds, kill_jobs, whether_due_or_not)


def agree_to_kill(cluster: Cluster, names: Iterable[str], confirm: str | None) -> None:
    """List the jobs of these nodes and have the cluster's name typed; RackwrightError where it is not."""
    names = list(names)
    running = jobs_on(cluster, names)
    for name, jobs in running.items():
        more = f" and {len(jobs) - _SHOWN} more" if len(jobs) > _SHOWN else ""
        say(f"{name}: {', '.join(map(str, jobs[:_SHOWN]))}{more}", err=True)
    count = len({job.id for jobs in running.values() for job in jobs})
    say(
        f"--kill-jobs cancels every job on {fold(names)}: {count} now, and those that begin until they are drained",
        err=True,
    )
    typed = confirm if confirm is not None else _typed(cluster)
    if typed.strip() != cluster.name:
        raise RackwrightError(
            f"{printable(typed, 60)!r} is not the cluster's name; nothing was changed.",
            hint=f"cancel these jobs with: --confirm {cluster.name}",
        )


def _typed(cluster: Cluster) -> str:
    if not sys.stdin.isatty():
        raise RackwrightError(
            "--kill-jobs asks for the cluster's name, and standard input is not a terminal.",
            hint=f"look at the jobs above and run again with --confirm {cluster.name}",
        )
    typed: str = typer.prompt(
        f"Type the cluster's name, {cluster.name}, to cancel them", default="", show_default=False, err=True
    )
    return typed
