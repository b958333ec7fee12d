"""rackwright resume: finish a run that was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rackwright.cli.apply import apply_command
from rackwright.cli.drift import install_as_declared, uninstall_command
from rackwright.clusterfile.load import load_cluster
from rackwright.drift.install import UNINSTALL
from rackwright.engine.journal import Run, read_run
from rackwright.errors import RackwrightError


def resume_command(
    run: Annotated[str, typer.Argument(metavar="ID", help="The run, as `rackwright runs` names it.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Continue an interrupted run: same cluster file, nodes, roles and waves.

    Every operation compares before it acts, so what is done already is left alone.
    """
    known = read_run(run)
    if known.state == "running":
        raise RackwrightError(
            f"Run {run} is still running (pid {known.begin['pid']} on {known.begin['host']}).",
            hint="wait for it, or stop it",
        )
    if "file" not in known.begin:
        raise RackwrightError(
            f"Run {run} was killed before it had recorded its cluster file, and before it changed anything.",
            hint="start it again: rackwright apply FILE",
        )
    _warn_if_edited(known)
    if known.begin.get("deploy") is not None:
        _drift_check(known, yes)
        return
    policy = known.begin.get("policy", {})
    apply_command(
        Path(known.begin["file"]),
        limit=known.begin["limit"],
        role=known.begin["roles"],
        yes=yes,
        canary=policy.get("canary"),
        wave=_text(policy.get("size")),
        stop_after=_text(policy.get("stop_after")),
        pause=policy.get("pause_seconds"),
        parallel=policy.get("parallel"),
    )


def _warn_if_edited(known: Run) -> None:
    if known.plan is not None and load_cluster(Path(known.begin["file"])).sha256 != known.plan["file_sha256"]:
        typer.echo(
            f"{known.begin['file']} was edited since that run; its current content is applied", err=True
        )


def _drift_check(known: Run, yes: bool) -> None:
    """`drift install` or `uninstall` again, by the declaration that it left beside the cluster file."""
    file, limit = Path(known.begin["file"]), known.begin["limit"]
    if known.begin["deploy"] in (UNINSTALL.stem, "removed"):  # its name until 0.1
        uninstall_command(file, limit=limit, yes=yes)
    else:
        install_as_declared(file, limit, yes)


def _text(value: Any) -> str | None:  # noqa: ANN401 - a number or a text, as flags take them
    return None if value is None else str(value)
