"""What the dataset_cache role claims of a node; no check touches a dataset's source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, fail
from rackwright.claims.files import as_rendered, at_path
from rackwright.claims.units import runs
from rackwright.roles.dataset_cache import paths, texts
from rackwright.roles.dataset_cache.options import DatasetCacheOptions

Context = CheckContext[DatasetCacheOptions]
_GIB = 1 << 30


def _files(context: Context) -> str:
    declared = texts.files(context.node, context.options)
    return as_rendered(
        context,
        {path: file[0] for path, file in declared.items()},
        {path: file[1] for path, file in declared.items()},
    )


def _listing(context: Context) -> tuple[dict[str, str], int]:
    """State by dataset, and all bytes."""
    return _read(context.json(f"{paths.RUN} list"))


def _read(found: Mapping[str, Any]) -> tuple[dict[str, str], int]:
    try:
        states = {str(name): str(one["state"]) for name, one in found["datasets"].items()}
        return states, int(found["bytes"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Undetermined(f"cannot parse what the node printed about its datasets: {error!r}") from error


def _kept(context: Context) -> str:
    states, _ = _listing(context)
    kept = [name for name, one in context.options.datasets.items() if one.keep]
    if unknown := [name for name in kept if states.get(name) not in ("complete", "incomplete", "missing")]:
        raise Undetermined(f"the state of {', '.join(unknown)} is unknown")
    if missing := [name for name in kept if states[name] == "missing"]:
        fail(f"{', '.join(missing)} is missing; see `journalctl -u {paths.FILL}`")
    if coming := [name for name in kept if states[name] == "incomplete"]:
        raise Warned(f"{', '.join(coming)} is not complete yet; see `journalctl -u {paths.FILL}`")
    return ", ".join(kept)


def _below_limit(context: Context) -> str:
    found = context.json(f"{paths.RUN} list")
    states, held = _read(found)
    if more := sorted(states.keys() - context.options.datasets.keys()):
        remover = "the timer" if context.options.keeps else f"`{paths.COMMAND} fill`"
        raise Warned(
            f"{', '.join(more)} is in the cache but not declared; {remover} removes it when no process uses it"
        )
    limit = context.options.limit_gib
    if held > limit * _GIB:
        fail(f"the cache holds {held / _GIB:.1f} GiB, but {limit} are declared")
    if context.options.project_id is not None and held:
        _kernel_limit(found, limit)
    whole = [name for name, state in states.items() if state == "complete"]
    return f"{held / _GIB:.1f} of {limit} GiB: {', '.join(whole) or 'nothing yet'}"


def _kernel_limit(found: Mapping[str, Any], limit: int) -> None:
    """Of the project. The next fetch sets it, so a limit that was just changed is not a failure."""
    kib = found.get("kernel_kib")
    if not isinstance(kib, int):
        why = found.get("kernel_silent", "the node did not print it")
        raise Undetermined(f"the kernel's limit on the cache is unknown: {str(why)[:200]}")
    if kib != limit << 20:
        there = f"limits the cache to {kib / (1 << 20):.1f} GiB" if kib else "does not limit the cache"
        raise Warned(f"the kernel {there}, but {limit} are declared; the next fetch sets the limit")


def _credentials(context: Context) -> str:
    path = context.options.rclone_config
    state = at_path(context, path, digest_only=True)
    if state.kind != "file":
        fail(f"{path} is {'missing' if state.kind == 'absent' else f'a {state.kind}'}: rclone finds no store")
    if state.owner != "root" or int(state.mode, 8) & 0o077:
        fail(
            f"{path} is {state.mode} {state.owner}: other users can read the store's credentials, or change them"
        )
    return f"{path} is {state.mode} {state.owner}"


CHECKS = (
    Check("the files of the dataset cache are as declared", _files),
    Check(
        "datasets are fetched on a timer",
        lambda context: runs(context, paths.TIMER),
        applies=lambda node, options: options.keeps,
    ),
    Check(
        "the kept datasets are complete",
        _kept,
        applies=lambda node, options: options.keeps,
        live=True,
        timeout_seconds=180,  # the list sizes every file, as below
    ),
    Check(
        "only root can access rclone's configuration",
        _credentials,
        applies=lambda node, options: options.has_remote,
    ),
    Check("the dataset cache stays within its limit", _below_limit, live=True, timeout_seconds=180),
)
