"""Cases of rackwright.alerts.clocks."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import NODE, node

CASES = (
    Case(
        alert="ClockOffset",
        series={node("node_timex_offset_seconds"): "0.001*2 0.051*12 0.001*3"},
        fires=720,
        labels=NODE,
        severity="warning",
        summary="gpu1: the clock is off by 51ms",
        description="The kernel of gpu1 measures its clock 51ms off its time source. Logs and traces no longer line up, and at minutes MUNGE stops working. See chronyc tracking and chronyc sources there.",
        heals=840,
        under=({node("node_timex_offset_seconds"): "-0.05*17"},),
    ),
    Case(
        alert="ClockUnsynchronised",
        series={node("node_timex_sync_status"): "1*2 0*24 1*6", node("node_timex_maxerror_seconds"): "16*32"},
        fires=1020,
        labels=NODE,
        severity="warning",
        summary="gpu1: the clock is not synchronised",
        description="Nothing corrects the clock of gpu1 any more; it may drift by seconds a day. Check that chronyd runs there and reaches a source: chronyc sources.",
        heals=1560,
        under=(
            {node("node_timex_maxerror_seconds"): "15.9*32"},
            {node("node_timex_sync_status"): "0*2 1*1 0*4 1*1 0*4 1*1 0*4 1*1 0*4 1*10"},
        ),
    ),
    Case(
        alert="ClockDiffersFromHead",
        series={node("node_time_seconds"): "0+60*3 191+60*5 480+60*3"},
        fires=360,
        labels=NODE,
        severity="critical",
        summary="gpu1: the clock differs from the head's by 11s",
        description="The clock of gpu1 and that of the head differ by 11s. At 300 s MUNGE rejects every message, and Slurm loses the node. Correct it: chronyc makestep.",
        heals=480,
        under=({node("node_time_seconds"): "0+60*3 190+60*8"},),
    ),
)
