"""Checks of the ipoib role."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered
from rackwright.facts.settings import Answer
from rackwright.model.platforms import Capability
from rackwright.roles.ipoib import texts
from rackwright.roles.ipoib.layout import Link, links
from rackwright.roles.ipoib.options import IpoibOptions

Context = CheckContext[IpoibOptions]
_NEEDS = frozenset({Capability.NETWORK_PORTS, Capability.KERNEL_MODULES})


def _links(context: Context) -> tuple[Link, ...]:
    return links(context.cluster, context.node, context.options)


def _files(context: Context) -> str:
    declared = texts.files(context.node, _links(context))
    there = context.fact(Answer, texts.of_ours(), may_be_empty=True)
    stale = {path: None for path in (there or "").splitlines() if path not in declared}
    wanted: dict[str, str | None] = {**declared, **stale}
    return as_rendered(context, wanted, {path: texts.mode(path) for path in wanted})


def _in_force(context: Context) -> str:
    differences = context.fact(Answer, texts.live(_links(context)), may_be_empty=True)
    if differences is None:
        raise Undetermined("the node printed nothing of its IPoIB interfaces")
    if differences != texts.IN_FORCE:
        fail(differences.rstrip("; "))
    return ", ".join(f"{link.name}: {link.mode}, {link.mtu}" for link in _links(context))


def _up(context: Context) -> str:
    """Up means that the port has joined the broadcast group of its partition."""
    wrong = []
    for link in _links(context):
        result = context.host.run("cat %s", f"/sys/class/net/{link.name}/operstate")
        if result.rc != 0:
            wrong.append(f"{link.name} is missing")
            continue
        state = str(result.stdout).strip()
        if not state or state == "unknown":
            raise Undetermined(f"{link.name} does not report whether it is up")
        if state != "up":
            wrong.append(f"{link.name} is {state}: it has not joined the broadcast group of its partition")
    if wrong:
        fail("; ".join(wrong))
    return f"{len(_links(context))} up"


CHECKS = (
    Check("IPoIB configuration files are as declared", _files, needs=_NEEDS),
    Check(
        "IPoIB interfaces have their declared modes, MTUs, partitions and addresses",
        _in_force,
        needs=_NEEDS,
        settle_seconds=30,
    ),
    Check("every IPoIB interface is up", _up, needs=_NEEDS, settle_seconds=60),
)
