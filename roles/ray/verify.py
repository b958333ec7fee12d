"""Checks of the ray role."""

from __future__ import annotations

from functools import partial

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered, has_access
from rackwright.claims.python_environments import installed_as_declared, wheels_as_locked
from rackwright.claims.units import runs
from rackwright.model.cluster import Node
from rackwright.roles.ray import cluster_checks, connections, places, reading, texts
from rackwright.roles.ray.options import RayOptions

_JOB_SECONDS = 300
_SETTLE_SECONDS = 90


def _head(node: Node, options: RayOptions) -> bool:
    return options.is_head(node)


def _runs(context: CheckContext[RayOptions]) -> str:
    return runs(context, context.options.unit(context.node))


def _files(context: CheckContext[RayOptions]) -> str:
    programs = texts.programs()
    wanted = {**texts.files(context.cluster, context.node, context.options), **programs}
    as_rendered(context, wanted, dict.fromkeys(programs, "755"))
    return f"{len(wanted)} files"


def _access(context: CheckContext[RayOptions]) -> str:
    paths = texts.secret_files(context.node, context.options, lambda name: name)
    for path in paths:
        has_access(context, path, "640", "root", places.USER)
    return ", ".join(paths)


def _command_lines(context: CheckContext[RayOptions]) -> str:
    """Neither the token nor Redis' password is in a command line, where every user can read it."""
    paths = tuple(texts.secret_files(context.node, context.options, lambda name: name))
    result = context.host.run("sh -c %s sh %s", reading.IN_COMMAND_LINES, " ".join(paths))
    if result.rc == 1:
        fail(f"a process has a secret of Ray on its command line: {result.stdout.strip()}")
    if result.rc != 0 or result.stdout.strip() != "clean":
        raise Undetermined(f"the processes could not be read: {result.stderr.strip() or result.rc}")
    return "no process shows one"


CHECKS = (
    Check("Ray is running", _runs, settle_seconds=20),
    Check("Redis is running", partial(runs, unit=places.REDIS_UNIT), applies=_head),
    Check("Ray's files are as declared", _files),
    Check("only root and Ray read its secrets", _access),
    Check("Ray's environment is the installed one", installed_as_declared),
    Check("Ray's environment is as locked", partial(wheels_as_locked, needed="ray")),
    Check("no command line shows a secret of Ray", _command_lines, live=True),
    Check(
        "Ray refuses connections without TLS",
        connections.refuses_plain,
        live=True,
        settle_seconds=_SETTLE_SECONDS,
    ),
    Check("Ray refuses requests without its token", connections.refuses_anonymous, live=True, applies=_head),
    Check(
        "the dashboard requires the token", connections.dashboard, live=True, applies=_head, settle_seconds=60
    ),
    Check("Redis requires its password", connections.redis, live=True, applies=_head),
    *(
        Check(
            claim, function, scope="cluster", live=True, settle_seconds=settle, timeout_seconds=_JOB_SECONDS
        )
        for claim, function, settle in (
            ("every node has its declared resources in Ray", cluster_checks.resources, _SETTLE_SECONDS),
            ("every node of Ray runs a task", cluster_checks.tasks, 0),
            ("Ray restarts an actor whose process was killed", cluster_checks.actor, 0),
            ("Ray spills objects and reads them back", cluster_checks.spill, 0),
            ("Ray Data reads, maps and sums", partial(cluster_checks.library, library="data"), 0),
            ("Ray Tune finds the best trial", partial(cluster_checks.library, library="tune"), 0),
            ("Ray Train runs a worker", partial(cluster_checks.library, library="train"), 0),
            ("Ray Serve answers", partial(cluster_checks.library, library="serve"), 0),
        )
    ),
)
