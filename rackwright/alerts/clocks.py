"""Clocks: MUNGE, Slurm, TLS and every log depend on their agreement."""

from __future__ import annotations

from rackwright.alerts import sources
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_NODE = frozenset({"node"})
_STEPS = listed("""
    - `chronyc tracking` on the node: `Leap status`, `System time`, `Last offset`.
    - `chronyc sources -v`: is any source reachable (`Reach` is not 0) and chosen (`*`)?
    - No source answers: is chronyd up on the head (`systemctl status chrony chronyd`), and does the firewall let UDP 123
      through? `rackwright verify FILE --role time --limit NODE` shows both.
    - Sources answer, but the clock is far off: run `chronyc makestep`. Drain a worker first; jobs may not survive a step.
    - It drifts off again within hours: the board's oscillator or its firmware is at fault. Drain the node, open an RMA.
""")

_OFFSET = Alert(
    name="ClockOffset",
    expr='abs(node_timex_offset_seconds{job="node"}) > <seconds>',
    hold_seconds=600,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: the clock is off by {{ $value | humanizeDuration }}",
    description=prose("""
        The kernel of {{ $labels.node }} measures its clock {{ $value | humanizeDuration }} off its time source. Logs and traces no longer line up, and at minutes MUNGE stops working. See chronyc tracking and chronyc sources there.
    """),
    means="The clock drifts from its source faster than chronyd can correct it, or the source itself jumps.",
    steps=_STEPS,
    jobs=_NODE,
    thresholds={
        "seconds": Threshold(0.05, "seconds", "Offset, either way.", f"{sources.STACKHPC}; {sources.MIXIN}")
    },
)

_UNSYNCHRONISED = Alert(
    name="ClockUnsynchronised",
    expr="""
max_over_time(node_timex_sync_status{job="node"}[5m]) == 0 and node_timex_maxerror_seconds{job="node"} >= <seconds>
""",
    hold_seconds=600,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: the clock is not synchronised",
    description=prose("""
        Nothing corrects the clock of {{ $labels.node }} any more; it may drift by seconds a day. Check that chronyd runs there
        and reaches a source: chronyc sources.
    """),
    means="chronyd is not running or cannot reach a time source. The clock is still right, but it will drift.",
    steps=_STEPS,
    jobs=_NODE,
    thresholds={
        "seconds": Threshold(
            16, "seconds", "The kernel's estimate of the maximum clock error.", sources.MIXIN
        )
    },
)

_DIFFERS = Alert(
    name="ClockDiffersFromHead",
    expr='abs(node_time_seconds{job="node"} - timestamp(node_time_seconds{job="node"})) > <seconds>',
    hold_seconds=180,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: the clock differs from the head's by {{ $value | humanizeDuration }}",
    description=prose("""
        The clock of {{ $labels.node }} and that of the head differ by {{ $value | humanizeDuration }}. At 300 s MUNGE rejects every
        message, and Slurm loses the node. Correct it: chronyc makestep.
    """),
    means=prose("""
        Prometheus compares the node's time with its own at each scrape. chronyd may be content with a source that is wrong, so
        this is judged whether or not the clock counts as synchronised. Where all nodes differ, it is the head's clock.
    """),
    steps=_STEPS,
    jobs=_NODE,
    thresholds={
        "seconds": Threshold(
            10,
            "seconds",
            "Difference, either way; a slow scrape counts.",
            "rackwright: the longest scrape, and a thirtieth of the 300 s that a MUNGE credential lives (2026-11-27)",
        )
    },
)

GROUP = RuleGroup("clocks", (_OFFSET, _UNSYNCHRONISED, _DIFFERS))
