"""Results of burn-ins over months."""

from __future__ import annotations

from rackwright.dashboards.model import Dashboard, Row, Unit
from rackwright.dashboards.parts import stat, table, time

_BANDWIDTH = "rackwright_burnin_busbw_gbs"
_NOW = Row(
    "Last burn-in",
    (
        stat(
            "When",
            Unit.SECONDS,
            "Time since the last burn-in. After a repair, and before a node goes back to users, it should be new.",
            ("time() - max(rackwright_burnin_last_timestamp_seconds)", "ago"),
            width=6,
        ),
        stat(
            "Slowest group",
            Unit.GIGABYTES_PER_SECOND,
            "The lowest bus bandwidth of all groups of nodes of the last burn-in.",
            (f"min({_BANDWIDTH})", "lowest"),
            width=6,
        ),
        stat(
            "Spread",
            Unit.RATIO,
            "The slowest group of a stage against the fastest. Alike nodes lie above 0.9.",
            (
                f"min(min by (stage) ({_BANDWIDTH}) / (max by (stage) ({_BANDWIDTH}) > 0))",
                "slowest of fastest",
            ),
            width=6,
        ),
        stat(
            "Groups measured",
            Unit.NUMBER,
            "Groups of nodes with a result. Fewer than the last time: nodes were left out.",
            (f"count({_BANDWIDTH})", "groups"),
            width=6,
        ),
    ),
)
_HISTORY = Row(
    "History",
    (
        time(
            "Bus bandwidth by stage",
            Unit.GIGABYTES_PER_SECOND,
            "The slowest group of each stage. A step down after maintenance is a driver, firmware or cable; compare it with what "
            "was changed that day.",
            (f"min by (stage) ({_BANDWIDTH})", "{{stage}}"),
            low=0,
            width=24,
        ),
        table(
            "Groups",
            "The last result of each group of nodes, slowest first. Groups that share one slow node point to it.",
            ("stage", "nodes"),
            (f"sort({_BANDWIDTH})", "bus bandwidth", Unit.GIGABYTES_PER_SECOND),
            width=24,
            height=10,
        ),
    ),
)
BURNIN = Dashboard(
    "burnin",
    "Burn-in history",
    "The bus bandwidth that burn-ins reached, over months: whether the cluster is as fast as when it was accepted.",
    (_NOW, _HISTORY),
    since="90d",
)
