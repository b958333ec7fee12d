"""Files of the scratch role, by path."""

from __future__ import annotations

import json
from functools import cache

from rackwright.model.cluster import Node
from rackwright.node_programs import one_text
from rackwright.render import render
from rackwright.roles.scratch import paths
from rackwright.roles.scratch.options import PROJECT_IDS, ScratchOptions
from rackwright.workload.lookup import declared_on, kind_on, runs_jobs
from rackwright.workload.user_folders import UserFolders

SWEEP_SECONDS = 3000
"""How long the timer's run may remove files."""
HOOKS = {
    "prolog": ("scratch/prolog.sh.j2", "make"),
    "epilog": ("scratch/epilog.sh.j2", "remove"),
    "task_prolog": ("scratch/task_prolog.sh.j2", ""),
}
"""Stages of a job, and what the program does then."""


@cache
def program() -> str:
    """The program on the node."""
    return one_text("rackwright.roles.scratch.node")


def settings(node: Node, options: ScratchOptions) -> str:
    """What the program reads."""
    manager = declared_on(node)
    knows_jobs = manager is not None and bool(manager.hooks)  # without hooks, jobs have no folders
    found = {
        "path": options.filesystem_of(node).path,
        "node": node.name if knows_jobs else None,
        "manager": str(kind_on(node)) if knows_jobs else None,
        "jobs": options.jobs,
        "quota_gib": options.quota_gib or 0,
        "first_project_id": options.first_project_id,
        "project_ids": PROJECT_IDS,
        "places": options.places,
        "user_hours": options.user_hours,
        "grace_seconds": options.grace_minutes * 60,
        "remove_seconds": options.remove_seconds,
        "sweep_seconds": SWEEP_SECONDS,
    }
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


def user_folders(node: Node, options: ScratchOptions) -> UserFolders:
    """What makes the folders of users."""
    return UserFolders("scratch", (f"{options.filesystem_of(node).path}/{paths.USERS}",))


def hook_path(node: Node, stage: str) -> str | None:
    """In the folder whose scripts the workload manager runs then; after the health check, before others at the end."""
    manager = declared_on(node)
    folder = manager.hooks.get(stage) if manager is not None else None
    return f"{folder}/30-rackwright-job-scratch" if folder is not None else None


def files(node: Node, options: ScratchOptions) -> dict[str, tuple[str, str] | None]:
    """(content, mode) by path; None for what must not be there."""
    path = options.filesystem_of(node).path
    given = {"path": path, "options": options, "run": paths.RUN, "jobs": f"{path}/{paths.JOBS}"}
    found: dict[str, tuple[str, str] | None] = {
        paths.PROGRAM: (program(), "644"),
        paths.SETTINGS: (settings(node, options), "644"),
    }
    for stage, (template, command) in HOOKS.items():
        hook = hook_path(node, stage)
        if hook is None:
            continue
        wanted = options.jobs and runs_jobs(node) and (stage != "task_prolog" or bool(options.variables))
        text = render(template, command=command, **given) if wanted else None
        found[hook] = (text, "755") if text is not None else None
    manager = declared_on(node)
    agent = f"{manager.agent}.service" if manager is not None else None
    found[f"{paths.UNITS}/{paths.SWEEP}"] = (
        render("scratch/sweep.service.j2", agent=agent, seconds=SWEEP_SECONDS, **given),
        "644",
    )
    found[f"{paths.UNITS}/{paths.TIMER}"] = (render("scratch/sweep.timer.j2", **given), "644")
    for drop_in, wanted in options.drop_ins(node).items():
        found[drop_in] = (render("scratch/drop-in.conf.j2", **given), "644") if wanted else None
    return found
