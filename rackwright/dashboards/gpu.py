"""All GPUs."""

from __future__ import annotations

from rackwright.dashboards.model import Colour, Dashboard, Row, Thresholds, Unit
from rackwright.dashboards.parts import ANY_IS_BAD, GPU_HEAT, RACK, counted, each_gpu, heat, stat, table, time

_RACK = 'rack=~"$rack"'
_IN = f"{{{_RACK}}}"


def _rate(recorded: str) -> str:
    return f"rate({recorded}{_IN}[$__rate_interval])"


_NOW = Row(
    "Now",
    (
        stat(
            "GPUs that answer",
            Unit.NUMBER,
            "GPUs that DCGM sees, and those that are declared. Fewer: one fell off the bus (XID 79), or a node is down.",
            (f"count(DCGM_FI_DEV_GPU_TEMP{_IN})", "seen"),
            (f"sum(rackwright_declared_gpus{_IN})", "declared"),
        ),
        stat(
            "Hottest",
            Unit.CELSIUS,
            "The hottest GPU of all. Green is fine; the panels below show whose it is.",
            (f"max(DCGM_FI_DEV_GPU_TEMP{_IN})", "GPU"),
            thresholds=GPU_HEAT,
        ),
        stat(
            "Power",
            Unit.WATTS,
            "All GPUs together. It follows the jobs; a drop without one is throttling or a node that fell out.",
            (f"sum(DCGM_FI_DEV_POWER_USAGE{_IN})", "all"),
        ),
        stat(
            "Hot while idle",
            Unit.NUMBER,
            "GPUs above 60 degrees with less than 10 % utilization: bad cooling, or a process outside of any job.",
            (
                counted(
                    f"(DCGM_FI_DEV_GPU_TEMP{_IN} > 60) and on (node, gpu) (DCGM_FI_DEV_GPU_UTIL{_IN} < 10)",
                    f"DCGM_FI_DEV_GPU_TEMP{_IN}",
                ),
                "GPUs",
            ),
            thresholds=ANY_IS_BAD,
        ),
        stat(
            "Rows to remap",
            Unit.NUMBER,
            "GPUs with memory that is remapped at the next reset. Drain the node, reset the GPU.",
            (f"sum(DCGM_FI_DEV_ROW_REMAP_PENDING{_IN})", "pending"),
            (f"sum(DCGM_FI_DEV_ROW_REMAP_FAILURE{_IN})", "failed"),
            thresholds=ANY_IS_BAD,
        ),
        stat(
            "Errors that could not be corrected",
            Unit.NUMBER,
            "Double-bit errors of GPU memory since the driver was loaded.",
            (f"sum(DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{_IN})", "errors"),
            thresholds=ANY_IS_BAD,
        ),
    ),
)
_FLEET = Row(
    "The fleet",
    (
        heat(
            "Temperature of each GPU",
            Unit.CELSIUS,
            "A row for each GPU. A row that is brighter than its neighbours has bad cooling; a block of rows is a node's fans "
            "or a rack's air.",
            (each_gpu("DCGM_FI_DEV_GPU_TEMP", _RACK), "{{node}} {{gpu}}"),
            low=25,
            high=90,
            height=10,
        ),
        heat(
            "Power of each GPU",
            Unit.WATTS,
            "A dark row within a bright block: a GPU of the job that does nothing, or that is throttled.",
            (each_gpu("DCGM_FI_DEV_POWER_USAGE", _RACK), "{{node}} {{gpu}}"),
            low=0,
            height=10,
        ),
        time(
            "Utilization",
            Unit.PERCENT,
            "Mean of the GPUs of each node. Nodes of one job lie together; one that does not holds up the others.",
            (f"avg by (node) (DCGM_FI_DEV_GPU_UTIL{_IN})", "{{node}}"),
            low=0,
            high=100,
            leads_to=("node",),
        ),
        time(
            "Tensor cores active",
            Unit.RATIO,
            "Share of cycles in which tensor cores work, by node. Training is at 0.3 to 0.6; near zero with high utilization "
            "is a job that computes nothing.",
            (f"avg by (node) (DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{_IN})", "{{node}}"),
            low=0,
            high=1,
            leads_to=("node",),
        ),
        time(
            "Memory bandwidth in use",
            Unit.RATIO,
            "Share of cycles in which GPU memory is read or written. Above 0.8 the job is bound by memory.",
            (f"avg by (node) (DCGM_FI_PROF_DRAM_ACTIVE{_IN})", "{{node}}"),
            low=0,
            high=1,
            leads_to=("node",),
        ),
        time(
            "Clock of the multiprocessors",
            Unit.MEGAHERTZ,
            "The slowest GPU of each node. Below the others under load: throttled; the panels below show the reason.",
            (f"min by (node) (DCGM_FI_DEV_SM_CLOCK{_IN})", "{{node}}"),
            low=0,
            leads_to=("node",),
        ),
    ),
)
_LIMITS = Row(
    "Throttling",
    (
        time(
            "Throttled by heat",
            Unit.RATIO,
            "Share of time in which heat held the clock down. Anything above zero is a fault of cooling.",
            (
                f"max by (node) ({_rate('gpu:throttled_by_heat_seconds:total')})",
                "{{node}}",
            ),
            thresholds=Thresholds(((0.01, Colour.NOTICE), (0.05, Colour.BAD))),
            low=0,
            leads_to=("node",),
            width=8,
        ),
        time(
            "Throttled by the board",
            Unit.RATIO,
            "Share of time in which a limit of the board or of its voltage held the clock down. Not zero: a power supply or the "
            "board itself.",
            (f"max by (node) ({_rate('gpu:throttled_by_board_seconds:total')})", "{{node}}"),
            thresholds=Thresholds(((0.01, Colour.NOTICE), (0.05, Colour.BAD))),
            low=0,
            leads_to=("node",),
            width=8,
        ),
        time(
            "Throttled by power",
            Unit.RATIO,
            "Share of time at the power limit. Usual under full load; on one node alone its limit or its supply is wrong.",
            (f"max by (node) ({_rate('gpu:throttled_by_power_seconds:total')})", "{{node}}"),
            low=0,
            leads_to=("node",),
            width=8,
        ),
    ),
)
_LINKS = Row(
    "Links",
    (
        time(
            "NVLink",
            Unit.BYTES_PER_SECOND,
            "Sent and received by the GPUs of each node. A node of a job that lies below the others has a link that is down.",
            (
                f"sum by (node) (DCGM_FI_PROF_NVLINK_TX_BYTES{_IN}) + sum by (node) (DCGM_FI_PROF_NVLINK_RX_BYTES{_IN})",
                "{{node}}",
            ),
            low=0,
            leads_to=("node",),
        ),
        time(
            "NVLink errors",
            Unit.PER_SECOND,
            "CRC errors, replays and recoveries of all links. Should be zero; a rate that stays is a bad link.",
            (
                (
                    f"sum by (node) ({_rate('gpu:nvlink_crc_errors:total')})"
                    f" + sum by (node) ({_rate('gpu:nvlink_replays:total')})"
                    f" + sum by (node) ({_rate('gpu:nvlink_recoveries:total')})"
                ),
                "{{node}}",
            ),
            low=0,
            leads_to=("node",),
        ),
        time(
            "PCIe",
            Unit.BYTES_PER_SECOND,
            "What GPUs and hosts exchange. High all the time: data does not stay on the GPU, or NCCL does not use NVLink.",
            (
                f"sum by (node) (DCGM_FI_PROF_PCIE_TX_BYTES{_IN} + DCGM_FI_PROF_PCIE_RX_BYTES{_IN})",
                "{{node}}",
            ),
            low=0,
            leads_to=("node",),
        ),
        time(
            "PCIe replays",
            Unit.PER_SECOND,
            "Packets that were sent again. More than some each hour: reseat the card or its riser.",
            (f"sum by (node) ({_rate('gpu:pcie_replays:total')})", "{{node}}"),
            low=0,
            leads_to=("node",),
        ),
    ),
)
_FAULTS = Row(
    "Faults",
    (
        time(
            "XID",
            Unit.NUMBER,
            "The last XID of each GPU that had one: 48, 63, 64, 94 and 95 are memory, 74 NVLink, 79 is a GPU that fell off "
            "the bus, 13 and 31 are usually the program.",
            (each_gpu("DCGM_FI_DEV_XID_ERRORS", _RACK) + " > 0", "{{node}} GPU {{gpu}}"),
            leads_to=("node",),
            empty="No GPU has reported an XID.",
        ),
        table(
            "Memory of GPUs",
            "GPUs with errors or remapped rows. `not correctable` above zero or a failed remap: replace the card.",
            ("node", "gpu", "modelName"),
            (
                f"sum by (node, gpu, modelName) (DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{_IN}) > 0",
                "double-bit errors",
                Unit.NUMBER,
            ),
            (
                f"sum by (node, gpu, modelName) (DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{_IN}) > 0",
                "rows remapped, not correctable",
                Unit.NUMBER,
            ),
            (
                f"sum by (node, gpu, modelName) (DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS{_IN}) > 0",
                "rows remapped, correctable",
                Unit.NUMBER,
            ),
            (
                f"sum by (node, gpu, modelName) (DCGM_FI_DEV_ROW_REMAP_FAILURE{_IN}) > 0",
                "remap failed",
                Unit.NUMBER,
            ),
            empty="No GPU has memory errors or remapped rows.",
        ),
    ),
)
GPU = Dashboard(
    "gpu",
    "GPUs",
    "Every GPU: which is hotter, slower or less busy than the others, which is throttled, and which has errors.",
    (_NOW, _FLEET, _LIMITS, _LINKS, _FAULTS),
    (RACK,),
    since="6h",
)
