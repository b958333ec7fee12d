"""Checks of the health role."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import PurePosixPath

from pydantic import TypeAdapter

from rackwright.boundary import Refused, read_json_as
from rackwright.claims.check import Check, CheckContext, NotInScope, Undetermined, Warned, fail
from rackwright.claims.files import as_rendered, at_path, holds_only
from rackwright.health.guard import places
from rackwright.health.records import is_time
from rackwright.model.cluster import Node
from rackwright.roles.health import texts
from rackwright.roles.health.options import HealthRoleOptions
from rackwright.workload.lookup import declared_on, runs_jobs
from rackwright.workload.states import NoAnswer

GRACE_SECONDS = 120
"""Beyond two intervals: Slurm spreads the passes of a large cluster over one."""


@dataclass(frozen=True)
class ShownResult:
    """One result in it."""

    check: str
    status: str
    evidence: str


@dataclass(frozen=True)
class Shown:
    """What `health-check show` prints."""

    outcome: str
    why: str | None
    results: list[ShownResult]

    def named(self, status: str) -> list[str]:
        """The checks of one status, with what they found."""
        found = (f"{one.check}: {one.evidence}" for one in self.results if one.status == status)
        return list(dict.fromkeys(found))


_SHOWN = TypeAdapter(Shown)


def parse_shown(output: str) -> Shown:
    """Read the output; Undetermined when it has no verdict."""
    try:
        return read_json_as(_SHOWN, output)
    except Refused as error:
        raise Undetermined(f"the health check printed no verdict: {error}") from None


def _files(context: CheckContext[HealthRoleOptions]) -> str:
    files = texts.files_of(context.cluster, context.node, context.options)
    modes = {path: mode for path, (_, mode) in files.items()}
    return as_rendered(context, {path: content for path, (content, _) in files.items()}, modes)


def _modules(context: CheckContext[HealthRoleOptions]) -> str:
    version = texts.modules_folder().rpartition("/")[2]
    modules = {f"{version}/{name}": text for name, text in texts.modules().items()}
    return holds_only(context, places.MODULES, modules)


def _folders(context: CheckContext[HealthRoleOptions]) -> str:
    """Up to /: who may write a parent may replace the folder."""
    parents = {str(parent): "755" for path in texts.FOLDERS for parent in PurePosixPath(path).parents}
    for path, declared in sorted({**parents, **texts.FOLDERS}.items()):
        found = at_path(context, path, digest_only=True)
        if found.kind == "absent":
            fail(f"{path} is missing")
        strict = path in texts.FOLDERS and found.mode != declared
        if found.kind != "directory" or found.owner != "root" or int(found.mode, 8) & 0o022 or strict:
            fail(
                f"{path} is a {found.kind} with {found.mode} {found.owner}, not a folder with {declared} root"
            )
    return ", ".join(texts.FOLDERS)


def _healthy(context: CheckContext[HealthRoleOptions]) -> str:
    result = context.host.run("timeout 60 %s show", places.PROGRAM)
    shown = parse_shown(result.stdout)
    if shown.why is not None:
        raise Undetermined(shown.why)
    if shown.outcome == "bad":
        fail("; ".join(shown.named("FAIL")))
    if shown.outcome != "clean":
        raise Undetermined("; ".join(shown.named("UNKNOWN")) or "no check ran")
    passed = sum(one.status in ("PASS", "WARN") for one in shown.results)
    if not passed:
        raise Undetermined("no check passed")
    gpus = context.node.sku.gpus
    simulated = f"; its {gpus.count} GPUs are simulated" if gpus and context.node.simulates_gpus else ""
    return f"{passed} checks find nothing that drains the node{simulated}"


def _regular(context: CheckContext[HealthRoleOptions]) -> str:
    manager = declared_on(context.node)
    if manager is None:
        raise NotInScope("no workload manager runs jobs here")
    try:
        schedule = manager.health_schedule(context.output)
    except NoAnswer as error:
        raise Undetermined(str(error)) from None
    if schedule.program != places.PROGRAM:
        fail(f"the health program of {manager.name} is {schedule.program or 'not set'}")
    if schedule.interval_seconds == 0:
        fail(f"{manager.name} never runs the health program")
    last = context.json("cat %s", places.LAST)
    if not isinstance(last, dict) or not is_time(last.get("at")):
        raise Undetermined(f"{places.LAST} has no time of the last pass")
    age = time.time() - last["at"]
    if age < -GRACE_SECONDS:
        raise Undetermined(f"the last pass is dated {-age:.0f} s ahead of this host's clock")
    if age > 2 * schedule.interval_seconds + GRACE_SECONDS:
        fail(f"the last pass was {age:.0f} s ago, but one is due every {schedule.interval_seconds} s")
    return f"every {schedule.interval_seconds} s; outcome of the last pass: {last.get('outcome')}"


def _switched_off(context: CheckContext[HealthRoleOptions]) -> str:
    off = context.output("ls %s", places.DISABLED).split()
    if off:
        raise Warned(f"switched off on this node: {', '.join(off)}")
    return "none is"


def _acts(context: CheckContext[HealthRoleOptions]) -> str:
    if not context.options.act:
        raise Warned(
            "it only observes (health.act: false): a broken node stays in service; "
            "`rackwright health FILE --would` lists what would have been drained"
        )
    return "health.act: true"


def _in_scheduler(node: Node, options: HealthRoleOptions) -> bool:
    return runs_jobs(node)


CHECKS = (
    Check("the health check's files are as declared", _files),
    Check("the health check's modules are those of this rackwright version", _modules),
    Check("only root can write the health check's folders", _folders),
    Check("the node's health check passes", _healthy, settle_seconds=45, timeout_seconds=90),
    Check(
        "the workload manager runs the node's health check",
        _regular,
        settle_seconds=60,
        applies=_in_scheduler,
    ),
    Check("the node acts on what its health check finds", _acts, applies=_in_scheduler),
    Check("no health check is switched off on the node", _switched_off),
)
