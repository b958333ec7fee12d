"""rackwright reboot: reboot nodes in waves, whether that is due or not."""

from __future__ import annotations

import sys
from typing import Annotated, Any, NoReturn

import typer

from rackwright.cli.arguments import ClusterFile
from rackwright.cli.lines import say
from rackwright.cli.plan_view import show_outcome
from rackwright.cli.progress import step_text
from rackwright.cli.reboot_consent import BootTimeout, Confirm, KillJobs, agree_to_kill, asked_for
from rackwright.cli.terminal import Console
from rackwright.clusterfile.load import load_cluster
from rackwright.engine.reboot_run import Shown, reboot
from rackwright.engine.reboots import Asked
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold


def reboot_command(
    file: ClusterFile,
    limit: Annotated[str, typer.Option(metavar="NODESET", help="These nodes, e.g. gpu[001-016],login1.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    kill_jobs: KillJobs = False,
    confirm: Confirm = None,
    boot_timeout: BootTimeout = None,
) -> None:
    """Reboot nodes: each worker drained first, heads one at a time, all checks passed before a node is resumed.

    Waves are those of apply. Exit status: 0 every node is back and passes, 4 a node does not answer, 1 a node failed.
    """
    asked = asked_for(file, kill_jobs, boot_timeout, whether_due_or_not=True)
    carry_out_reboot(load_cluster(file), limit, asked, yes=yes, confirm=confirm)


def carry_out_reboot(
    cluster: Cluster, limit: str, asked: Asked, *, yes: bool, confirm: str | None, resumed: str | None = None
) -> NoReturn:
    """Reboot, show what came of it, and exit; `resumed`: the run that is continued."""

    def agree(shown: Shown) -> bool:
        _show(cluster, shown)
        if asked.kill_jobs:
            agree_to_kill(cluster, shown.nodes, confirm)
        return yes or _ask(shown)

    console = Console(stderr=True)
    done = reboot(
        cluster,
        limit,
        asked,
        agree=agree,
        notice=lambda text: say(text, err=True),
        watch=lambda event: _show_step(event, console),
        resumed=resumed,
    )
    if done is None:
        raise typer.Exit(0)
    for note in done.notes:
        console.print(note, highlight=False, markup=False, soft_wrap=True)
    show_outcome(done.result, Console(soft_wrap=True), verb="reboot")
    raise typer.Exit(done.result.exit_code)


def _show(cluster: Cluster, shown: Shown) -> None:
    for number, wave in enumerate(shown.waves, 1):
        roles = sorted({role.value for name in wave for role in cluster.by_name[name].roles})
        say(f"wave {number} of {len(shown.waves)}: {fold(wave)} ({', '.join(roles)})")
    for name, jobs in shown.jobs.items():
        count = "1 job runs" if len(jobs) == 1 else f"{len(jobs)} jobs run"
        say(f"{name}: {count} there: {', '.join(map(str, jobs[:5]))}{' ...' if len(jobs) > 5 else ''}")
    if shown.jobs_unknown is not None:
        say(f"which jobs run there is not known: {shown.jobs_unknown}")


def _show_step(event: dict[str, Any], console: Console) -> None:
    if (text := step_text(event)) is not None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)


def _ask(shown: Shown) -> bool:
    if not sys.stdin.isatty():
        raise RackwrightError(
            "reboot asks for confirmation, and standard input is not a terminal.",
            hint="look at the nodes above and run again with --yes",
        )
    return typer.confirm(f"Reboot {len(shown.nodes)} nodes?", default=False)
