"""rackwright resume: finish a run that was interrupted, one's own or another operator's."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from rackwright.boundary import printable
from rackwright.cli.apply import Consent, Erase, carry_out
from rackwright.cli.arguments import Verbose
from rackwright.cli.drift import install_as_declared, uninstall_command
from rackwright.cli.lines import say
from rackwright.cli.reboot import carry_out_reboot
from rackwright.cli.reboot_consent import asked_for
from rackwright.clusterfile.load import load_cluster
from rackwright.drift.install import INSTALL, UNINSTALL
from rackwright.engine.head_runs import run_of_others
from rackwright.engine.journal import known_run, read_run
from rackwright.engine.journal_lines import Run
from rackwright.engine.reboot_run import REBOOT
from rackwright.errors import RackwrightError
from rackwright.firmware.names import BIOS, ENROL, UPDATE
from rackwright.model.ranges import fold
from rackwright.model.selection import pick

_UNINSTALLS = (UNINSTALL.stem, "removed")
_INSTALLS = (INSTALL.stem, "placed")
"""Deploys of the drift check; the second name of each is of versions until 0.1."""
_NOT_BEGUN = " was killed before it had recorded its cluster file, and before it changed anything"


def resume_command(
    run: Annotated[str, typer.Argument(metavar="ID", help="The run, as `rackwright runs` names it.")],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="Your cluster file, for a run of another operator or machine."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    erase: Erase = None,
    verbose: Verbose = False,
) -> None:
    """Continue an interrupted run: same cluster file, nodes, roles and waves.

    Every operation compares before it acts, so what is done already is left alone. A run of another operator is
    read from the cluster's head, and continued with your cluster file once you have typed its ID; nodes that it
    left drained are put back.
    """
    others = file is not None and known_run(run) is None
    known = run_of_others(load_cluster(file), run) if others and file is not None else read_run(run)
    if known.state == "running":
        pid = "" if others else f"pid {known.begin['pid']}, "
        raise RackwrightError(
            f"Run {run} is still running ({pid}{printable(known.by, 200)}).",
            hint="wait for it, or stop it",
        )
    if not known.begin:
        why = "'s journal is damaged" if known.events else _NOT_BEGUN
        raise RackwrightError(f"Run {run}{why}.", hint="start it again: rackwright apply FILE")
    place = file if file is not None else Path(known.begin["file"])
    if others:
        _confirm(known, yes)
    _warn_if_edited(known, place)
    _continue(known, place, Consent(None, yes, verbose, erase=erase), resumed=known.run if others else None)


def _continue(known: Run, file: Path, consent: Consent, *, resumed: str | None) -> None:
    if known.begin.get("deploy") == REBOOT:
        _reboot(known, file, consent.yes)
        return
    if known.begin.get("deploy") in (UPDATE, BIOS):
        raise RackwrightError(
            f"Run {known.run} changed firmware, which is read from the BMCs and not from a journal.",
            hint=f"run again: rackwright {known.begin['deploy']} {file} --limit '{known.begin['limit']}'",
        )
    if known.begin.get("deploy") == ENROL:
        raise RackwrightError(
            f"Run {known.run} enrolled a key, which is read from the nodes and not from a journal.",
            hint=f"run again: rackwright {ENROL} {file} --limit '{known.begin['limit']}' --certificate FILE",
        )
    if known.begin.get("deploy") is not None:
        _drift_check(known, file, consent.yes)
        return
    policy = known.begin.get("policy") or {}
    flags = {name: policy.get(name) for name in ("canary", "size", "stop_after", "pause_seconds")}
    parallel, boot_timeout = policy.get("parallel"), policy.get("boot_timeout")
    reboots = asked_for(file, False, boot_timeout) if isinstance(boot_timeout, int) else None
    carry_out(
        file,
        known.begin["limit"],
        known.begin["roles"],
        replace(consent, reboots=reboots),
        {name: value if isinstance(value, int | str) else None for name, value in flags.items()},
        parallel if isinstance(parallel, int) and parallel > 0 else None,
        resumed=resumed,
    )


def _reboot(known: Run, file: Path, yes: bool) -> None:
    """Reboot the nodes that the run did not see through."""
    cluster = load_cluster(file)
    done = {name for name, node in known.nodes.items() if node["ok"]}
    limit = known.begin["limit"]
    left = [node.name for node in pick(cluster, limit) if node.name not in done]
    if not left:
        say(f"run {known.run} rebooted {limit or 'all nodes'}, and all of them passed")
        return
    boot_timeout = (known.begin.get("policy") or {}).get("boot_timeout")
    asked = asked_for(file, False, boot_timeout if isinstance(boot_timeout, int) else None)
    carry_out_reboot(cluster, fold(left), asked, yes=yes, confirm=None, resumed=known.run)


def _drift_check(known: Run, file: Path, yes: bool) -> None:
    """`drift install` or `uninstall` again, by the declaration that it left beside the cluster file."""
    deploy, limit = known.begin["deploy"], known.begin["limit"]
    if deploy in _UNINSTALLS:
        uninstall_command(file, limit=limit, yes=yes)
    elif deploy in _INSTALLS:
        install_as_declared(file, limit, yes)
    else:
        raise RackwrightError(
            f"Run {known.run} was of {printable(deploy, 60)}, which this version does not know.",
            hint="continue it with the version that began it",
        )


def _confirm(known: Run, yes: bool) -> None:
    """Have the run's ID typed: its operator may be about to continue it."""
    said = f"Run {known.run} was begun by {printable(known.by, 200)}: {printable(_command(known), 200)}"
    say(said, err=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise RackwrightError(
            "The run of another operator is continued after confirmation, and standard input is not a terminal.",
            hint="ask that operator, and run again with --yes",
        )
    typed = typer.prompt("Type the run's ID to continue it", default="", show_default=False, err=True)
    if typed.strip() != known.run:
        raise RackwrightError(f"{printable(typed, 60)!r} is not the run's ID; nothing was changed.")


def _command(known: Run) -> str:
    command: Any = known.begin.get("command", "?")
    return str(command)


def _warn_if_edited(known: Run, file: Path) -> None:
    if known.plan is not None and load_cluster(file).sha256 != known.plan["file_sha256"]:
        say(f"{file} is not as it was in that run; its current content is applied", err=True)
