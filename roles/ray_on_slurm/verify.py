"""Checks of the ray_on_slurm role."""

from __future__ import annotations

from functools import partial
from typing import Any

from rackwright.boundary import Refused, printable, read_json
from rackwright.claims.check import Check, CheckContext, NotInScope, Undetermined, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.python_environments import installed_as_declared, wheels_as_locked
from rackwright.model.cluster import Node
from rackwright.model.ranges import fold
from rackwright.roles.ray_on_slurm import places, texts
from rackwright.roles.ray_on_slurm.options import RayOnSlurmOptions
from rackwright.workload.slurm.srun import ACCOUNT

_JOB_SECONDS = 300
_WAIT_SECONDS = 30
_MOST_MIB = 4096
"""Memory of the job on each node; on a small node two thirds of what it has."""
_NO_ROOM = (
    "nodes are busy",
    "allocate resources: Connection timed out",  # --immediate is over
    "Unable to contact slurm controller",
    "Connection refused",
)
PROGRAM = """\
import json, socket, ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
ray.init(log_to_driver=False, logging_level="ERROR")
@ray.remote(num_cpus=1, max_retries=0)
def where():
    return socket.gethostname()
alive = {one["NodeName"]: one for one in ray.nodes() if one["Alive"]}
asked = {name: where.options(scheduling_strategy=NodeAffinitySchedulingStrategy(one["NodeID"], soft=False)).remote() for name, one in alive.items()}
print(json.dumps({name: ray.get(answer, timeout=60) for name, answer in asked.items()}))
"""
"""The host on which a task bound to each node ran, by the node's name."""


def _files(context: CheckContext[RayOnSlurmOptions]) -> str:
    programs = texts.programs(context.options)
    wanted = {**texts.files(context.cluster), **programs}
    as_rendered(context, wanted, dict.fromkeys(programs, "755"))
    return f"{len(wanted)} files"


def job_line(nodes: tuple[Node, ...], program: str) -> tuple[str, ...]:
    """salloc's words: it runs where it is called, on the head, which prints what ray-job's task on the first node prints."""
    mib = min(_MOST_MIB, *(node.memory_mib * 2 // 3 for node in nodes))
    asked = (f"--nodes={len(nodes)}", f"--nodelist={fold(node.name for node in nodes)}", f"--mem={mib}")
    start = ("srun", "--overlap", "--nodes=1", "--ntasks=1", "--input=none", "--chdir=/", places.RAY_JOB)
    return (
        *("salloc", "-Q", "-A", ACCOUNT, "-J", "rackwright-verify", "--ntasks-per-node=1", "--chdir=/"),
        *(f"--immediate={_WAIT_SECONDS}", f"--time={_JOB_SECONDS // 60}", *asked),
        *(*start, "python", "-c", program),
    )


def _job(context: CheckContext[RayOnSlurmOptions]) -> str:
    """On two nodes, so that they have to find and trust each other."""
    nodes = texts.workers(context.cluster)[:2]
    if not nodes:
        raise NotInScope("no node of this role takes jobs")
    words = job_line(nodes, PROGRAM)
    line = " ".join(["timeout %s", *(["%s"] * len(words))])
    result = context.host.run(line, str(_JOB_SECONDS - 20), *words)
    last = (result.stderr.strip() or result.stdout.strip() or "nothing").splitlines()[-1]
    if result.rc in (124, 126, 127) or any(word in result.stderr for word in _NO_ROOM):
        raise Undetermined(f"the job did not run within {_JOB_SECONDS - 20} s: {printable(last, 200)}")
    if result.rc != 0:
        fail(f"ray-job exited {result.rc}: {printable(last, 300)}")
    return _judged(nodes, _found(result.stdout))


def _found(text: str) -> dict[str, Any]:
    lines = text.strip().splitlines()
    try:
        found = read_json(lines[-1] if lines else "")
    except Refused as error:
        raise Undetermined(f"the job did not print JSON: {error}") from error
    if not isinstance(found, dict):
        raise Undetermined("the job printed something else than a JSON object")
    return found


def _judged(nodes: tuple[Node, ...], found: dict[str, Any]) -> str:
    names = {node.name for node in nodes}
    if wrong := sorted(names - found.keys()):
        fail(f"{', '.join(wrong)} did not join the job's Ray")
    if wrong := sorted(found.keys() - names):
        fail(f"{printable(', '.join(wrong), 100)} joined the job's Ray, but the job does not have that node")
    for name, host in sorted(found.items()):
        if host != name:
            fail(f"a task for {name} ran on {printable(str(host), 60)}")
    return f"a task on each of {', '.join(sorted(names))}"


CHECKS = (
    Check("ray-job and its example are as declared", _files),
    Check("the environment of Ray's jobs is the installed one", installed_as_declared),
    Check("the environment of Ray's jobs is as locked", partial(wheels_as_locked, needed="ray")),
    Check(
        "a job of Slurm runs Ray on its nodes",
        _job,
        scope="cluster",
        live=True,
        timeout_seconds=_JOB_SECONDS,
    ),
)
