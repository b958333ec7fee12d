"""Checks of the time role, and of all clocks together."""

from __future__ import annotations

import time
from functools import partial

from rackwright.claims.check import Check, CheckContext, Undetermined, each, fail
from rackwright.claims.extra_lines import in_place
from rackwright.claims.units import is_masked, software_runs
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability
from rackwright.osfamily.names import names
from rackwright.roles.time.options import TimeOptions
from rackwright.roles.time.readings import (
    LOCAL_REFERENCE,
    Interval,
    Source,
    Tracking,
    clock_error,
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


def _sources(context: CheckContext[TimeOptions], node: Node | None = None) -> tuple[Source, ...]:
    host = context.host if node is None else context.on(node.name)
    return parse_sources(context.output("chronyc -c -n sources", host=host))


def _follows(context: CheckContext[TimeOptions]) -> str:
    head = context.cluster.primary
    expected = str(context.cluster.management_address(head))
    mine = [source for source in _sources(context) if source.address == expected]
    if not mine:
        fail(f"{head.name} ({expected}) is not among chrony's sources")
    if mine[0].reach == 0:
        fail(f"{head.name} ({expected}) has not answered")
    if mine[0].state != "*":
        fail(f"{head.name} ({expected}) answers but is not selected (state {mine[0].state})")
    return f"{head.name} is selected, stratum {mine[0].stratum}"


def _serves(context: CheckContext[TimeOptions]) -> str:
    options = context.options
    tracking = _tracking(context)
    if not options.servers:
        if tracking.reference_id != LOCAL_REFERENCE or tracking.stratum != options.local_stratum:
            fail(
                f"the head follows {tracking.reference or 'nothing'} at stratum {tracking.stratum}, not "
                f"its own clock at stratum {options.local_stratum}"
            )
        return f"the head's own clock, stratum {tracking.stratum}"
    selected = [source for source in _sources(context) if source.state == "*"]
    if not selected:
        fail(f"no server of {', '.join(options.servers)} is selected")
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
    printed = context.output("timedatectl show -p NTPSynchronized --value").strip()
    if printed not in ("yes", "no"):
        raise Undetermined(f"timedatectl printed {printed!r}, neither yes nor no")
    if printed == "no":
        fail("the kernel reports that its clock is not synchronised")
    return "the kernel reports that its clock is synchronised"


def _clocks_agree(context: CheckContext[TimeOptions]) -> str:
    """Compare all clocks against one steady clock here, each reading bracketed in time.

    A reading is only as precise as the path to the node is fast, so imprecise ones are taken again. Over
    a slow path chrony's own bound of each clock's error decides.
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
    bounds = each(lambda node: clock_error(_tracking(context, node), _sources(context, node)), nodes)
    worst = sum(sorted(bounds)[-2:])
    if worst <= most:
        return f"{len(nodes)} clocks within {worst * 1000:.0f} ms by chrony's own bounds"
    raise Undetermined(
        f"{len(nodes)} clocks differ by {least:.3f} to {at_most:.3f} s as measured from here, and by up to "
        f"{worst:.3f} s by chrony's own bounds: too imprecise to decide about {most:g} s"
    )


def _ahead(context: CheckContext[TimeOptions], node: Node) -> Interval:
    before = time.monotonic()
    printed = context.output("date +%s.%N", host=context.on(node.name)).strip()
    after = time.monotonic()
    try:
        clock = float(printed)
    except ValueError as error:
        raise Undetermined(f"{node.name} printed no time: {printed[:80]!r}") from error
    return Interval(clock - after, clock - before)


def _extra(context: CheckContext[TimeOptions]) -> str:
    path = names(context.node.family, "chrony").paths["conf"]
    return in_place(context, path, context.options.extra.chrony_conf)


CHECKS: tuple[Check, ...] = (
    Check("chronyd is running and enabled at boot", partial(software_runs, software="chrony")),
    Check(
        "chrony.conf has the declared extra lines",
        _extra,
        applies=lambda node, options: bool(options.extra.chrony_conf),
    ),
    Check(
        "no other service sets the clock",
        partial(is_masked, unit="systemd-timesyncd.service", why="two services may set one clock"),
    ),
    Check(
        "the node follows the site's server",
        _follows,
        settle_seconds=_SETTLE_SECONDS,
        applies=lambda node, options: not node.primary,
    ),
    Check(
        "the site's time server is synchronised",
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
    Check(
        "all clocks agree",
        _clocks_agree,
        scope="cluster",
        timeout_seconds=300,
        # on a busy path one round of readings may be too imprecise, and chrony's bounds are wide at first
        settle_seconds=_SETTLE_SECONDS,
    ),
)
