"""Checks of the scratch role."""

from __future__ import annotations

from typing import Any

from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, fail
from rackwright.claims.files import as_rendered, has_access
from rackwright.claims.mounts import room_of
from rackwright.claims.units import runs, state_of
from rackwright.claims.user_folders import only_their_users
from rackwright.roles.scratch import paths, texts
from rackwright.roles.scratch.options import ScratchOptions

Context = CheckContext[ScratchOptions]
_NAMED_MAX = 5
_HOUR = 3600


def _files(context: Context) -> str:
    declared = texts.files(context.node, context.options)
    as_rendered(
        context,
        {path: file[0] if file is not None else None for path, file in declared.items()},
        {path: file[1] for path, file in declared.items() if file is not None},
    )
    return f"{sum(file is not None for file in declared.values())} files"


def _folders(context: Context) -> str:
    options, path = context.options, context.options.filesystem_of(context.node).path
    if options.jobs:
        has_access(context, f"{path}/{paths.JOBS}", "755", "root", "root")
    for name in options.shared:
        has_access(context, f"{path}/{name}", "1777", "root", "root")
    return ", ".join(f"{path}/{name}" for name in (*((paths.JOBS,) if options.jobs else ()), *options.shared))


def _timer(context: Context) -> str:
    evidence = runs(context, paths.TIMER)
    state = state_of(context, paths.SWEEP)
    if state.active_state == "failed":
        fail(f"the last run of {paths.SWEEP} failed: see `journalctl -u {paths.SWEEP}`")
    return evidence


def _leftovers(context: Context) -> str:
    found = context.json(f"{paths.RUN} leftovers")
    try:
        folders = [_phrase(one) for one in found["folders"]]
        ages = [float(one["seconds"]) for one in found["folders"] if one["state"] != "unknown"]
        unknown = [one for one in found["folders"] if one["state"] == "unknown"]
        removing = found["removing"]
        entries, oldest = int(removing["entries"]), float(removing["seconds"])
        silent = found["silent"]
    except (KeyError, TypeError, ValueError) as error:
        raise Undetermined(f"cannot parse the node's list of leftovers: {error!r}") from error
    if entries:
        folders.append(f"{entries} folders have waited {oldest / _HOUR:.1f} h for removal")
    age = max((*ages, oldest if entries else 0.0), default=0.0)
    evidence = "; ".join(folders[:_NAMED_MAX]) + (
        f"; and {len(folders) - _NAMED_MAX} more" if folders[_NAMED_MAX:] else ""
    )
    if age >= context.options.fail_hours * _HOUR:
        fail(evidence)
    if unknown:
        raise Undetermined(f"{evidence}: unknown whether their jobs are running, {silent}")
    if age >= context.options.warn_hours * _HOUR:
        raise Warned(evidence)
    return evidence or "none"


def _phrase(one: dict[str, Any]) -> str:
    why = {
        "earlier": "of a job from before the boot",
        "ended": "of a job that ended",
        "unknown": "of a job",
    }
    return f"{int(one['job'])} {why[one['state']]}, {float(one['seconds']) / _HOUR:.1f} h old"


def _waits(context: Context) -> str:
    path, evidence = context.options.filesystem_of(context.node).path, []
    for unit in context.options.waiting_units(context.node):
        if not state_of(context, unit).loaded:
            raise Undetermined(f"systemd does not know {unit}")
        text = context.output("systemctl show -p RequiresMountsFor %s", unit).strip()
        name, equals, paths_of = text.partition("=")
        if name != "RequiresMountsFor" or not equals:
            raise Undetermined(f"`systemctl show` printed {text[:80]!r} of {unit}")
        if path not in paths_of.split():
            fail(f"{unit} starts without {path}: it requires {paths_of or 'no mounts'}")
        evidence.append(unit)
    return ", ".join(evidence)


def _quota(context: Context) -> str:
    evidence = context.output(f"{paths.RUN} quota").strip()
    if evidence == "not enforced":
        fail(f"{context.options.filesystem_of(context.node).path} does not enforce project quotas")
    if evidence != "enforced":
        raise Undetermined(f"the node printed {evidence[:80]!r}")
    return f"{context.options.quota_gib} GiB for each job"


def _room(context: Context) -> str:
    return room_of(context, (context.options.filesystem_of(context.node),))


CHECKS = (
    Check("the scratch files are as declared", _files),
    Check(
        "root owns the scratch folders",
        _folders,
        applies=lambda node, options: options.jobs or bool(options.shared),
    ),
    Check("leftovers are removed on a timer", _timer),
    Check("no finished job has left a folder behind", _leftovers, live=True),
    Check("scratch has free space", _room, live=True),
    Check(
        "services that write to scratch start only while it is mounted",
        _waits,
        applies=lambda node, options: bool(options.waiting_units(node)),
    ),
    Check(
        "job limits are enforced",
        _quota,
        applies=lambda node, options: options.quota_gib is not None,
        live=True,
    ),
    Check(
        "users' folders on scratch are private",
        lambda context: only_their_users(context, texts.user_folders(context.node, context.options)),
        applies=lambda node, options: options.users,
    ),
)
