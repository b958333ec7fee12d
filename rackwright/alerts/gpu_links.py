"""Links of GPUs: PCIe and NVLink."""

from __future__ import annotations

from rackwright.alerts import sources, steps
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.recording import dcgm
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_DCGM = frozenset({"dcgm"})
_DECLARED = frozenset({"dcgm", "node"})
_PCIE = f"""
    - `nvidia-smi -q -i GPU | grep -A12 'GPU Link Info'` and `lspci -vvs ADDRESS | grep -e LnkCap: -e LnkSta:` on the node.
    - `journalctl -k -g 'AER|PCIe Bus Error' -n 20`: which device of the path reports errors?
    - {steps.DRAIN}
    - {steps.REBOOT} A link often trains fully at the next boot.
    - It stays: power off, reseat the GPU, its riser or its cable. It moves with the GPU: {steps.then(steps.RMA)} Else it is the board.
    - Prove it: `nvbandwidth -t host_to_device_memcpy_ce` reaches the floor that `rackwright show FILE` names.
    - {steps.RESUME}
"""
_NVLINK = f"""
    - `nvidia-smi nvlink -e -i GPU` and `nvidia-smi nvlink -s -i GPU` on the node: one link or all? Is any inactive?
    - `journalctl -k -g 'NVRM: Xid.*(74|14[4-9]|150)|SXid' -n 20`, and /var/log/fabricmanager.log.
    - {steps.DRAIN}
    - {steps.REBOOT}
    - Prove it: {steps.then(steps.DIAGNOSE)} Then `rackwright burnin FILE --nodes NODE`, which uses NVLink alone.
    - {steps.RESUME}
    - The same link again: reseat the GPU or its bridge; then {steps.then(steps.RMA)}
"""

_REPLAYS = Alert(
    name="GpuPcieReplays",
    expr="increase(gpu:pcie_replays:total[1h]) > <replays>",
    hold_seconds=0,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: GPU {{ $labels.gpu }} repeated {{ $value | printf "%.0f" }} PCIe packets within an hour',
    description=prose("""
        GPU {{ $labels.gpu }} of {{ $labels.node }} had to repeat {{ $value | printf "%.0f" }} PCIe packets within an hour. The link is
        bad, and transfers to the host and the fabric are slow. Reseat the GPU.
    """),
    means="Packets arrive damaged and are sent again. More of them become uncorrected errors, and then XID 79.",
    steps=listed(_PCIE),
    jobs=_DCGM,
    thresholds={
        "replays": Threshold(
            480, "packets", "Packets repeated within an hour.", f"{sources.DCGM}: 8 a minute at most"
        )
    },
)

_WIDTH = Alert(
    name="GpuPcieWidthLow",
    expr=f"{dcgm('DEV_PCIE_LINK_WIDTH')} < on (node) group_left () rackwright_declared_gpu_pcie_lanes",
    hold_seconds=300,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: GPU {{ $labels.gpu }} uses {{ $value }} PCIe lanes",
    description=prose("""
        GPU {{ $labels.gpu }} of {{ $labels.node }} uses only {{ $value }} PCIe lanes, fewer than its SKU declares. Transfers to the host and through the fabric
        are slow, and every job on the node with them. Drain it and reseat the GPU.
    """),
    means="Lanes were lost when the link trained: a bad contact, riser or retimer. Width does not change with load.",
    steps=listed(_PCIE),
    jobs=_DECLARED,
)

_GENERATION = Alert(
    name="GpuPcieGenerationLow",
    expr=f"""
{dcgm("DEV_PCIE_LINK_GEN")} < on (node) group_left () rackwright_declared_gpu_pcie_generation
and {dcgm("DEV_GPU_UTIL")} > <percent>
""",
    hold_seconds=600,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: GPU {{ $labels.gpu }} is busy at PCIe generation {{ $value }}",
    description=prose("""
        GPU {{ $labels.gpu }} of {{ $labels.node }} is busy and its PCIe link runs at generation {{ $value }}, below the declared. Its
        transfers take twice as long or more. Drain the node and reboot it.
    """),
    means="A GPU lowers its PCIe generation to save power while it is idle, and raises it under load. This one did not.",
    steps=listed(_PCIE),
    jobs=_DECLARED,
    thresholds={
        "percent": Threshold(
            50,
            "percent",
            "Utilisation above which the link should be at full speed.",
            "rackwright: an idle GPU saves power (2026-11-27)",
        )
    },
)

_RECOVERED = Alert(
    name="GpuNvlinkRecovered",
    expr="increase(gpu:nvlink_recoveries:total[1h]) > 0",
    hold_seconds=0,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: an NVLink of GPU {{ $labels.gpu }} went down and recovered",
    description=prose("""
        An NVLink of GPU {{ $labels.gpu }} on {{ $labels.node }} was lost and recovered ({{ $value | printf "%.0f" }} within an hour). The job
        stood still meanwhile; the next time it may die with XID 74. Drain the node when its jobs have ended.
    """),
    means="The link was lost and trained again. A healthy one never does.",
    steps=listed(_NVLINK),
    jobs=_DCGM,
    source=f"{sources.DCGM}: any increase",
)

_ERRORS = Alert(
    name="GpuNvlinkErrors",
    expr="increase(gpu:nvlink_replays:total[1h]) > <replays> or increase(gpu:nvlink_crc_errors:total[1h]) > <crc>",
    hold_seconds=0,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: {{ $value | printf "%.0f" }} NVLink errors on GPU {{ $labels.gpu }} within an hour',
    description=prose("""
        The NVLinks of GPU {{ $labels.gpu }} on {{ $labels.node }} counted {{ $value | printf "%.0f" }} replays or CRC errors within an
        hour. Collectives inside the node slow down. Drain the node when its jobs have ended.
    """),
    means="Packets between GPUs arrive damaged and are repeated. Few do no harm; this many come from a bad link.",
    steps=listed(_NVLINK),
    jobs=_DCGM,
    thresholds={
        "replays": Threshold(
            100,
            "packets",
            "Packets repeated within an hour.",
            "rackwright, health checks, nvlink_replays: few harm no job (2026-11-23)",
        ),
        "crc": Threshold(
            360000,
            "errors",
            "CRC errors within an hour.",
            f"{sources.DCGM}: they matter from 100 a second on",
        ),
    },
)

GROUP = RuleGroup("gpu_links", (_REPLAYS, _WIDTH, _GENERATION, _RECOVERED, _ERRORS))
