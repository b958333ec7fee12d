"""rackwright apply: bring every node to the declared state."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from pydantic import ValidationError

from rackwright.boundary import printable
from rackwright.cli.arguments import AsJson, ClusterFile, Limit, Role, Verbose
from rackwright.cli.json_output import print_document
from rackwright.cli.lines import say
from rackwright.cli.plan_view import show_outcome, show_plan
from rackwright.cli.progress import Progress
from rackwright.cli.reboot_consent import BootTimeout, Confirm, KillJobs, agree_to_kill, asked_for
from rackwright.cli.terminal import Console
from rackwright.clusterfile.load import load_cluster
from rackwright.drift.install import update_digests
from rackwright.engine.former_runs import FormerRuns
from rackwright.engine.reboots import Asked
from rackwright.engine.run import Applied, apply
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold
from rackwright.model.selection import pick
from rackwright.model.settings import Waves
from rackwright.plan.document import read_plan
from rackwright.plan.erasures import Erasable, allowed, erasures
from rackwright.plan.moved import moved_since
from rackwright.plan.node_plan import PlanResult

NewSecrets = Annotated[
    bool, typer.Option("--new-secrets", help="Regenerate lost secrets, and replace those that nodes have.")
]

Erase = Annotated[
    list[str] | None,
    typer.Option(
        "--erase", metavar="SERIAL", help="Erase the disk with this serial, if the plan does. Repeatable."
    ),
]


def apply_command(
    file: ClusterFile,
    limit: Limit = None,
    role: Role = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    plan_file: Annotated[
        Path | None,
        typer.Option("--plan", help="Apply exactly this plan of `plan --out`; refuse if it no longer holds."),
    ] = None,
    canary: Annotated[
        int | None, typer.Option(help="Number of canary nodes, applied first and alone.")
    ] = None,
    wave: Annotated[
        str | None, typer.Option(help="Nodes per wave: a number, a share (10%), rack or switch.")
    ] = None,
    stop_after: Annotated[
        str | None,
        typer.Option(help="Begin no further wave after this number of failed nodes, or this share (5%)."),
    ] = None,
    pause: Annotated[int | None, typer.Option(help="Seconds between waves.")] = None,
    parallel: Annotated[int | None, typer.Option(min=1, help="Nodes at a time, per worker process.")] = None,
    verbose: Verbose = False,
    new_secrets: NewSecrets = False,
    reboot: Annotated[
        bool,
        typer.Option("--reboot", help="Reboot nodes whose reboot is due, in their wave, and verify them."),
    ] = False,
    kill_jobs: KillJobs = False,
    confirm: Confirm = None,
    boot_timeout: BootTimeout = None,
    erase: Erase = None,
    as_json: AsJson = False,
) -> None:
    """Show the plan, ask for confirmation, and bring the nodes to the declared state.

    Exit status: 0 every node is as declared, 2 a reboot is due, 4 a node was unreachable, 1 a node failed.
    """
    asked = _reboots(file, reboot, kill_jobs, boot_timeout)
    reviewed = read_plan(plan_file) if plan_file is not None else None
    flags = {"canary": canary, "size": wave, "stop_after": stop_after, "pause_seconds": pause}
    if reviewed is not None:
        limit = fold(reviewed.nodes)
        role = list(reviewed.roles) if reviewed.roles is not None else None
    consent = Consent(reviewed, yes, verbose, asked, confirm, erase, as_json)
    carry_out(file, limit, role, consent, flags, parallel, new_secrets=new_secrets)


def _reboots(file: Path, reboot: bool, kill_jobs: bool, boot_timeout: int | None) -> Asked | None:
    if reboot:
        return asked_for(file, kill_jobs, boot_timeout)
    if kill_jobs or boot_timeout is not None:
        flag = "--kill-jobs" if kill_jobs else "--boot-timeout"
        raise RackwrightError(
            f"{flag} is about reboots.", hint=f"rackwright apply {file} --reboot {flag} ..."
        )
    return None


def carry_out(
    file: Path,
    limit: str | None,
    roles: list[str] | None,
    consent: Consent,
    flags: dict[str, int | str | None],
    parallel: int | None,
    *,
    resumed: str | None = None,
    new_secrets: bool = False,
) -> NoReturn:
    """Apply, show what came of it, and exit; `resumed`: the run of another operator that is continued."""
    applied, notes = _run(file, limit, roles, consent, flags, parallel, resumed, new_secrets)
    reviewed = consent.reviewed
    out = Console(soft_wrap=True, stderr=consent.as_json)
    for note in notes:
        say(note, err=True)
    if applied.result is None and reviewed is not None:
        _refuse_if_moved(reviewed, applied.plan)
    if consent.as_json:
        print_document("apply", applied.to_json())
    if applied.result is not None:
        show_outcome(applied.result, out)
        if applied.result.reboots and consent.reboots is None:
            say(f"hint: rackwright apply {file} --reboot", err=consent.as_json)
        raise typer.Exit(applied.result.exit_code)
    if consent.shown is None:  # otherwise it was declined
        show_plan(applied.plan, out, verbose=consent.verbose)
        if applied.plan.reboots:
            say(f"hint: rackwright apply {file} --reboot", err=consent.as_json)
    raise typer.Exit(applied.plan.exit_code)


@dataclass
class Consent:
    """Shows the plan and asks for confirmation; refuses a plan other than the reviewed one."""

    reviewed: PlanResult | None
    yes: bool
    verbose: bool
    reboots: Asked | None = None
    """None: no node is rebooted."""
    confirm: str | None = None
    """What an operator would type to have jobs cancelled."""
    erase: Sequence[str] | None = None
    """Serials given by flags; None: they are asked for."""
    as_json: bool = False
    """Standard output is for the document: the plan goes to standard error."""
    shown: PlanResult | None = None

    def __call__(self, plan: PlanResult, cluster: Cluster) -> bool:
        self.shown = plan
        if self.reviewed is not None:
            _refuse_if_moved(self.reviewed, plan)
        show_plan(plan, Console(soft_wrap=True, stderr=self.as_json), verbose=self.verbose)
        if self.reboots is not None and self.reboots.kill_jobs and plan.reboots:
            agree_to_kill(cluster, plan.reboots, self.confirm)
        reboots = len(plan.reboots) if self.reboots is not None else 0
        return self.yes or _ask(plan, reboots=reboots, err=self.as_json)

    def erasable(self, plan: PlanResult) -> Erasable:
        """The disks whose content may be destroyed: by their serials, typed now or given by flags."""
        if self.erase is not None or self.yes or not sys.stdin.isatty():
            return allowed(plan, self.erase or ())
        typed: dict[str, dict[str, str]] = {}
        for one in erasures(plan):
            answer = typer.prompt(
                f"{one.node}: type the serial of {one.disk} to erase it: {one.content}",
                default="",
                show_default=False,
                err=True,
            ).strip()
            if answer != one.serial:
                raise RackwrightError(
                    f"{printable(answer, 60)!r} is not the serial of {one.disk}; nothing was changed."
                )
            typed.setdefault(one.node, {})[one.serial] = one.content
        return typed


def _run(
    file: Path,
    limit: str | None,
    roles: list[str] | None,
    consent: Consent,
    flags: dict[str, int | str | None],
    parallel: int | None,
    resumed: str | None,
    new_secrets: bool,
) -> tuple[Applied, list[str]]:
    """The run, and notes for the operator."""
    cluster = load_cluster(file)
    progress = Progress(len(pick(cluster, limit)), Console(stderr=True), FormerRuns(cluster.name))

    def agree(plan: PlanResult) -> bool:
        progress.pause()
        agreed = consent(plan, cluster)
        progress.resume()
        return agreed

    def erase(plan: PlanResult) -> Erasable:
        progress.pause()
        typed = consent.erasable(plan)
        progress.resume()
        return typed

    def notice(text: str) -> None:
        progress.pause()
        say(text, err=True)
        progress.resume()

    with progress:
        applied = apply(
            cluster,
            limit=limit,
            roles=frozenset(roles) if roles else None,
            watch=progress,
            agree=agree,
            erase=erase,
            notice=notice,
            waves=_waves(cluster.waves, flags),
            parallel=parallel,
            resumed=resumed,
            new_secrets=new_secrets,
            reboots=consent.reboots,
        )
        notes = (*applied.notes, update_digests(cluster, applied))
    return applied, [note for note in notes if note is not None]


def _ask(plan: PlanResult, *, reboots: int = 0, err: bool = False) -> bool:
    if not sys.stdin.isatty():
        raise RackwrightError(
            "apply asks for confirmation, and standard input is not a terminal.",
            hint="review the plan above and run again with --yes",
        )
    also = f" and reboot {reboots} nodes" if reboots else ""
    return typer.confirm(f"Apply {plan.changes} changes{also}?", default=False, err=err)


def _refuse_if_moved(planned: PlanResult, now: PlanResult) -> None:
    if moved := moved_since(planned, now):
        raise RackwrightError(
            "The plan no longer holds, and nothing was changed: " + "; ".join(moved) + ".",
            hint="make and review a new plan, then apply that one",
        )


def _waves(declared: Waves, flags: dict[str, int | str | None]) -> Waves:
    """The cluster file's waves, overridden by the flags."""
    given = {
        name: int(value) if isinstance(value, str) and value.isdigit() else value
        for name, value in flags.items()
        if value is not None
    }
    try:
        return Waves.model_validate({**declared.model_dump(), **given})
    except ValidationError as error:
        first = error.errors()[0]
        flag = (
            str(first["loc"][0]).replace("pause_seconds", "pause").replace("size", "wave").replace("_", "-")
        )
        raise RackwrightError(
            f"--{flag} {first['input']}: {first['msg'].removeprefix('Value error, ')}."
        ) from None
