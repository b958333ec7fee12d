"""What the time role claims of a node, and of all clocks together."""

from __future__ import annotations

import time

from rackwright.claims.check import Check, CheckContext, Undetermined, each, fail
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability
from rackwright.osfamily.names import names
from rackwright.roles.time.options import TimeOptions
from rackwright.roles.time.readings import (
    LOCAL_REFERENCE,
    Interval,
    Tracking,
    parse_sources,
    parse_tracking,
    spread,
)

_TRIES = 5
_SETTLE_SECONDS = 60
"""iburst takes four samples two seconds apart; a follower also waits for its server to be ready."""


def _tracking(context: CheckContext[TimeOptions], node: Node | None = None) -> Tracking:
    host = context.host if node is None else context.on(node.name)
    return parse_tracking(context.output("chronyc -c -n tracking", host=host))


def _runs(context: CheckContext[TimeOptions]) -> str:
    unit = names(context.node.family, "chrony").unit
    lines = context.output("systemctl show -p ActiveState,UnitFileState %s", unit or "").splitlines()
    state = dict(line.split("=", 1) for line in lines if "=" in line)
    if not {"ActiveState", "UnitFileState"} <= state.keys():
        raise Undetermined(f"systemd did not tell the state of {unit}")
    if state["ActiveState"] != "active":
        fail(f"{unit} is {state['ActiveState']}")
    if state["UnitFileState"] != "enabled":
        fail(f"{unit} is {state['UnitFileState'] or 'not enabled'}: it will not start with the node")
    return f"{unit} is active and enabled"


def _alone(context: CheckContext[TimeOptions]) -> str:
    unit = "systemd-timesyncd.service"
    state = context.output("systemctl show -p LoadState --value %s", unit).strip()
    if not state:
        raise Undetermined(f"systemd did not tell the state of {unit}")
    if state != "masked":
        fail(f"{unit} is {state}, not masked: two services may set one clock")
    return f"{unit} is masked"


def _follows(context: CheckContext[TimeOptions]) -> str:
    head = context.cluster.primary
    expected = str(context.cluster.management_address(head))
    sources = parse_sources(context.output("chronyc -c -n sources"))
    mine = [source for source in sources if source.address == expected]
    if not mine:
        fail(f"{head.name} ({expected}) is not among chrony's sources")
    if mine[0].reach == 0:
        fail(f"{head.name} ({expected}) has not answered")
    if mine[0].state != "*":
        fail(f"{head.name} ({expected}) answers and is not selected (state {mine[0].state})")
    return f"{head.name} is selected, stratum {mine[0].stratum}"


def _serves(context: CheckContext[TimeOptions]) -> str:
    options = context.options
    tracking = _tracking(context)
    if not options.servers:
        if tracking.reference_id != LOCAL_REFERENCE or tracking.stratum != options.local_stratum:
            fail(
                f"the head follows {tracking.reference or 'nothing'} at stratum {tracking.stratum}, and not "
                f"its own clock at stratum {options.local_stratum}"
            )
        return f"the head's own clock, stratum {tracking.stratum}"
    selected = [
        source for source in parse_sources(context.output("chronyc -c -n sources")) if source.state == "*"
    ]
    if not selected:
        fail(f"none of {', '.join(options.servers)} is selected")
    return f"{selected[0].address}, stratum {selected[0].stratum}"


def _offset(context: CheckContext[TimeOptions]) -> str:
    tracking = _tracking(context)
    most = context.options.max_offset_seconds
    if not tracking.synchronised:
        fail("chrony is not synchronised to anything")
    if abs(tracking.offset_seconds) > most:
        fail(f"the clock is {tracking.offset_seconds:+.6f} s off, more than {most:g} s")
    return f"{tracking.offset_seconds:+.6f} s"


def _kernel_synchronised(context: CheckContext[TimeOptions]) -> str:
    said = context.output("timedatectl show -p NTPSynchronized --value").strip()
    if said not in ("yes", "no"):
        raise Undetermined(f"timedatectl said {said!r} and neither yes nor no")
    if said == "no":
        fail("the kernel says its clock is not synchronised")
    return "the kernel says its clock is synchronised"


def _clocks_agree(context: CheckContext[TimeOptions]) -> str:
    """Compare all clocks against one steady clock here, each reading bracketed in time.

    A reading is only as sharp as the way to the node is short, so wide ones are taken again. Over
    a slow way chrony's own bound of each clock's error decides.
    """
    nodes = context.cluster.running("time")
    most = context.options.max_offset_seconds
    intervals = each(lambda node: _ahead(context, node), nodes)
    measured = {node.name: interval for node, interval in zip(nodes, intervals, strict=True)}
    for _ in range(_TRIES - 1):
        if spread(measured)[1] <= most:
            break
        for node in nodes:
            if measured[node.name].high - measured[node.name].low > most / 2:
                measured[node.name] = measured[node.name].narrowed(_ahead(context, node))
    least, at_most, behind, ahead = spread(measured)
    if least > most:
        fail(f"{ahead} is at least {least:.3f} s ahead of {behind}, more than {most:g} s")
    if at_most <= most:
        return f"{len(nodes)} clocks within {at_most * 1000:.0f} ms, measured from here"
    bounds = {node.name: _tracking(context, node).error_seconds for node in nodes}
    worst = sum(sorted(bounds.values())[-2:])
    if worst <= most:
        return f"{len(nodes)} clocks within {worst * 1000:.0f} ms by chrony's own bounds"
    raise Undetermined(
        f"{len(nodes)} clocks differ by {least:.3f} to {at_most:.3f} s as measured from here, and by up to "
        f"{worst:.3f} s by chrony's own bounds: too blurred to tell {most:g} s"
    )


def _ahead(context: CheckContext[TimeOptions], node: Node) -> Interval:
    before = time.monotonic()
    said = context.output("date +%s.%N", host=context.on(node.name)).strip()
    after = time.monotonic()
    try:
        clock = float(said)
    except ValueError as error:
        raise Undetermined(f"{node.name} did not tell its time: {said[:80]!r}") from error
    return Interval(clock - after, clock - before)


CHECKS: tuple[Check, ...] = (
    Check("chronyd runs and starts with the node", _runs),
    Check("no other service sets the clock", _alone),
    Check(
        "the node follows the site's server",
        _follows,
        settle_seconds=_SETTLE_SECONDS,
        applies=lambda node, options: not node.primary,
    ),
    Check(
        "the site's server has a time to serve",
        _serves,
        settle_seconds=_SETTLE_SECONDS,
        applies=lambda node, options: node.primary,
    ),
    Check("the clock is within its allowed offset", _offset, settle_seconds=_SETTLE_SECONDS),
    Check(
        "the kernel's clock is synchronised",
        _kernel_synchronised,
        needs=frozenset({Capability.CLOCK}),
        settle_seconds=_SETTLE_SECONDS,
        # chronyd does not call its own clock a synchronised one
        applies=lambda node, options: not node.primary or bool(options.servers),
    ),
    Check("all clocks agree", _clocks_agree, scope="cluster", timeout_seconds=300),
)
