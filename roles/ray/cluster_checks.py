"""Checks that run jobs in the Ray cluster, from the primary head."""

from __future__ import annotations

from typing import Any

from rackwright.boundary import Refused, printable, read_json
from rackwright.claims.check import CheckContext, NotInScope, Undetermined, fail
from rackwright.model.cluster import Node
from rackwright.roles.ray import places, reading, sizes
from rackwright.roles.ray.options import RayOptions

_JOB_SECONDS = 280
_SHOWN = 5
SPILL_MAX_MIB = 8192
"""A larger object store takes minutes to fill, and its disk may be too small for it."""


def _nodes(context: CheckContext[RayOptions]) -> tuple[tuple[Node, RayOptions], ...]:
    found = ((node, node.options.get("ray")) for node in context.cluster.nodes)
    return tuple((node, options) for node, options in found if isinstance(options, RayOptions))


def _workers(context: CheckContext[RayOptions]) -> tuple[tuple[Node, RayOptions], ...]:
    return tuple((node, options) for node, options in _nodes(context) if not options.is_head(node))


def _prove(context: CheckContext[RayOptions], *words: str) -> dict[str, Any]:
    """What a job of prove.py found. Fails with its last line if it ends with an error; out of time is Undetermined."""
    line = " ".join(["timeout %s %s", "prove.py", *(["%s"] * len(words))])
    result = context.host.run(line, str(_JOB_SECONDS), places.WITH_RAY, *words)
    if result.rc in (124, 126, 127):
        raise Undetermined(
            f"the job {words[0]} did not end within {_JOB_SECONDS} s (exit status {result.rc})"
        )
    if result.rc != 0:
        printed = (result.stderr.strip() or result.stdout.strip()).splitlines()
        fail(
            f"the job {words[0]} failed: {printable(printed[-1], 300) if printed else f'exit status {result.rc}'}"
        )
    try:
        found = read_json(reading.job_answer(result.stdout))
    except Refused as error:
        raise Undetermined(f"the job {words[0]} did not print JSON: {error}") from error
    if not isinstance(found, dict):
        raise Undetermined(f"the job {words[0]} printed something else than a JSON object")
    return found


def differences(found: Any, wanted: dict[str, float]) -> list[str]:  # noqa: ANN401 - JSON
    """How a node's resources in Ray differ from the declared ones; `node:` names are Ray's own."""
    if not isinstance(found, dict):
        return ["has resources in an unknown form"]
    there = {
        name: value for name, value in found.items() if not name.startswith(("node:", "accelerator_type:"))
    }
    return [
        f"has {there.get(name, 0):g} {name}, not {wanted.get(name, 0):g}"
        for name in sorted(there.keys() | wanted.keys())
        if there.get(name, 0) != wanted.get(name, 0)
    ]


def resources(context: CheckContext[RayOptions]) -> str:
    """As Ray's own list of nodes has them."""
    found = _prove(context, "resources")
    wrong = []
    nodes = _nodes(context)
    for node, options in nodes:
        if node.name not in found:
            wrong.append(f"{node.name} is not alive in Ray")
            continue
        wrong += [
            f"{node.name} {one}" for one in differences(found[node.name], sizes.expected(node, options))
        ]
    wrong += [
        f"{printable(name, 60)} is in Ray, but not declared"
        for name in sorted(found.keys() - {node.name for node, _ in nodes})
    ]
    if wrong:
        more = f" and {len(wrong) - _SHOWN} more" if wrong[_SHOWN:] else ""
        fail("; ".join(wrong[:_SHOWN]) + more)
    return f"{len(nodes)} nodes"


def tasks(context: CheckContext[RayOptions]) -> str:
    """One task on each node, bound to it."""
    names = [node.name for node, _ in _nodes(context)]
    found = _prove(context, "tasks", *names)
    wrong = [
        f"{name}: {printable(str(found.get(name, 'is not alive in Ray')), 80)}"
        for name in names
        if found.get(name) != name
    ]
    if wrong:
        fail("; ".join(wrong[:_SHOWN]))
    return f"{len(names)} nodes"


def actor(context: CheckContext[RayOptions]) -> str:
    """On the first worker: its process is killed, and Ray starts another that answers."""
    node = _first(context)
    found = _prove(context, "actor", node.name)
    if not isinstance(found.get("before"), int) or not isinstance(found.get("after"), int):
        raise Undetermined("the job actor printed no process ids")
    if found["before"] == found["after"]:
        fail(f"the actor on {node.name} is still process {found['before']}, which was killed")
    return f"on {node.name}, process {found['after']} after {found['before']}"


def spill(context: CheckContext[RayOptions]) -> str:
    """More objects than the object store has room for are written, and read back with their values."""
    _first(context)
    stores = [(sizes.object_store_mib(node, options), node.name) for node, options in _workers(context)]
    mib, name = min(stores)
    if mib > SPILL_MAX_MIB:
        raise NotInScope(
            f"the smallest object store has {mib} MiB, and more than {SPILL_MAX_MIB} are not filled"
        )
    found = _prove(context, "spill", name, str(mib + mib // 8))
    if found.get("wrong") != 0:
        fail(f"{found.get('wrong')} objects on {name} were not read back as they were written")
    return f"{found.get('written_mib')} MiB through a store of {mib} MiB on {name}"


def library(context: CheckContext[RayOptions], library: str) -> str:
    """A small job with one of Ray's libraries."""
    if library not in context.options.prove:
        raise NotInScope(f"`prove` leaves {library} out")
    _first(context)
    found = _prove(context, library)
    if "expected" not in found:
        raise Undetermined(f"the job {library} printed no expected result")
    (result,) = (value for name, value in found.items() if name != "expected")
    if result != found["expected"]:
        fail(
            f"the job {library} found {printable(str(result), 60)}, not {printable(str(found['expected']), 60)}"
        )
    return f"{library} found {printable(str(result), 60)}"


def _first(context: CheckContext[RayOptions]) -> Node:
    workers = _workers(context)
    if not workers:
        raise NotInScope("no worker is declared for Ray")
    return workers[0][0]
