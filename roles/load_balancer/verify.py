"""Checks of the load_balancer role."""

from __future__ import annotations

from functools import partial

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.units import runs
from rackwright.roles.load_balancer import texts
from rackwright.roles.load_balancer.options import UNIT, LoadBalancerOptions

_ASK = f"printf 'show stat\\n' | socat -t 5 - UNIX-CONNECT:{texts.SOCKET}"


def _files(context: CheckContext[LoadBalancerOptions]) -> str:
    declared = texts.files(context.cluster, context.options)
    as_rendered(context, declared)
    return f"{len(declared)} files are as declared"


def _backends(context: CheckContext[LoadBalancerOptions]) -> str:
    """CSV of haproxy's management guide, 9.1: pxname, svname, ... and status by the names of its first line."""
    lines = context.output("sh -c %s", _ASK).splitlines()
    head = lines[0].lstrip("# ").split(",") if lines else []
    if not {"pxname", "svname", "status"} <= set(head):
        raise Undetermined("haproxy printed no table of its servers")
    rows = [dict(zip(head, line.split(","), strict=False)) for line in lines[1:] if line]
    status = {(row["pxname"], row["svname"]): row["status"] for row in rows}
    wrong = []
    for name in context.options.services:
        for node in context.options.targets(context.cluster, name):
            found = status.get((name, node.name), "missing")
            if not found.startswith("UP"):
                wrong.append(f"{name} on {node.name} is {found}")
    if wrong:
        fail("; ".join(wrong))
    return f"{len(context.options.services)} services, every node answers"


CHECKS = (
    Check("the load balancer is running", partial(runs, unit=UNIT), settle_seconds=20),
    Check("the load balancer's files are as declared", _files),
    Check("every node of each service answers", _backends, settle_seconds=30),
)
