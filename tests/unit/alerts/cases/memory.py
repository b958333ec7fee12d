"""Cases of rackwright.alerts.memory."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import HEAD, NODE, declared, head, node

CASES = (
    Case(
        alert="MemoryLow",
        series={
            head("node_memory_MemAvailable_bytes"): "50*2 9*18 50*3",
            head("node_memory_MemTotal_bytes"): "100*23",
        },
        fires=1020,
        labels=HEAD,
        severity="warning",
        summary="head1: 9.0 % of memory is available",
        description="head1, a head node, has 9.0 % of its memory left. When it runs out, the kernel kills a process, and that may be a daemon the whole cluster needs. Find what grows: ps aux --sort=-rss | head.",
        heals=1200,
        under=(
            {head("node_memory_MemAvailable_bytes"): "50*2 10*21"},
            {
                head("node_memory_MemAvailable_bytes"): "50*23",
                node("node_memory_MemAvailable_bytes"): "1*23",
                node("node_memory_MemTotal_bytes"): "100*23",
            },
        ),
    ),
    Case(
        alert="OomKill",
        series={head("node_vmstat_oom_kill"): "4*3 5*20"},
        fires=180,
        labels=HEAD,
        severity="warning",
        summary="head1: the kernel killed a process for lack of memory",
        description="The kernel of head1, a head node, killed a process because memory ran out (1 within 10 minutes). Check that no daemon is missing: journalctl -k -g 'Out of memory' -n 20.",
        heals=780,
        under=({head("node_vmstat_oom_kill"): "4*23", node("node_vmstat_oom_kill"): "0+1*23"},),
    ),
    Case(
        alert="MemoryBelowDeclaration",
        series={
            declared("memory_bytes"): "107374182400*15",
            node("node_memory_MemTotal_bytes"): "101000000000*10 107000000000*5",
        },
        fires=300,
        labels=NODE,
        severity="warning",
        summary="gpu1 has 94.06GiB of memory, less than declared",
        description="gpu1 has 94.06GiB of memory, more than 5 % less than its SKU declares: a memory module is missing or was taken out of use at boot. Drain it and look at the BMC's event log.",
        heals=600,
        under=({node("node_memory_MemTotal_bytes"): "102005473280*15"},),
    ),
    Case(
        alert="MemoryUncorrectedError",
        series={node("node_edac_uncorrectable_errors_total", controller="0"): "0*3 1*70"},
        fires=180,
        labels={**NODE, "controller": "0"},
        severity="critical",
        summary="gpu1: uncorrected memory error on controller 0",
        description="Memory controller 0 of gpu1 had errors that it could not correct (1 within an hour). Data was lost, and the process that owned it was killed. Drain the node and have the module replaced.",
        heals=3780,
        under=({node("node_edac_uncorrectable_errors_total", controller="0"): "7*73"},),
    ),
    Case(
        alert="MemoryCorrectedErrors",
        series={node("node_edac_correctable_errors_total", controller="0"): "0*145 101*160"},
        fires=87600,
        labels={**NODE, "controller": "0"},
        severity="warning",
        summary="gpu1: 101 corrected memory errors within a day",
        description="Memory controller 0 of gpu1 corrected 101 errors within a day. No data is lost yet, but such a module often fails for good later. Plan its replacement.",
        heals=173400,
        under=({node("node_edac_correctable_errors_total", controller="0"): "0*145 99*160"},),
        every=600,
    ),
)
