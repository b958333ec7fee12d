"""What slows GPUs down: heat, power, the board's limits."""

from __future__ import annotations

from rackwright.alerts import sources, steps
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.recording import dcgm
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_DCGM = frozenset({"dcgm"})
_COOLING = f"""
    - Its neighbours in the node or the rack too (GPU dashboard, heat map)? Then it is the air: see InletTemperatureHigh.
    - `ipmitool sdr type Fan` on the node: every fan at speed? Liquid cooling: flow and inlet temperature of its manifold.
    - {steps.DRAIN}
    - This GPU alone: dust, a loose heat sink or cold plate. Have it opened.
    - Prove it: {steps.then(steps.DIAGNOSE)}
    - {steps.RESUME}
"""
_NS = "DCGM counts nanoseconds: dcgm-exporter 4.5.2, etc/default-counters.csv (read 2026-11-27)"

_HOT = Alert(
    name="GpuHot",
    expr=f"{dcgm('DEV_GPU_TEMP')} > ({dcgm('DEV_SLOWDOWN_TEMP')} > 0) * <percent> / 100",
    hold_seconds=300,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: GPU {{ $labels.gpu }} is at {{ $value | printf "%.0f" }} °C, about to slow down',
    description=prose("""
        GPU {{ $labels.gpu }} of {{ $labels.node }} has been above <percent> % of the temperature at which it slows itself down for 5 minutes, now at {{ $value | printf "%.0f" }} °C. Check the node's fans and its inlet temperature.
    """),
    means="The GPU is about to halve its clock, and shuts off a few degrees further. Its job waits for it.",
    steps=listed(_COOLING),
    jobs=_DCGM,
    thresholds={
        "percent": Threshold(98, "percent", "Temperature, of that at which the GPU slows down.", sources.OCI)
    },
)

_MEMORY_HOT = Alert(
    name="GpuMemoryHot",
    expr=f"{dcgm('DEV_MEMORY_TEMP')} > <celsius> < 1000",
    hold_seconds=300,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: memory of GPU {{ $labels.gpu }} is at {{ $value | printf "%.0f" }} °C',
    description=prose("""
        The memory of GPU {{ $labels.gpu }} on {{ $labels.node }} has been at {{ $value | printf "%.0f" }} °C for 5 minutes. Above
        <celsius> °C it loses bits and ages fast. Check cooling.
    """),
    means="HBM at its limit makes ECC errors, and then remapped rows.",
    steps=listed(_COOLING),
    jobs=_DCGM,
    thresholds={
        "celsius": Threshold(
            95,
            "°C",
            "Temperature of the GPU's memory.",
            "nvidia-smi of an A100 names 95 C as the highest for its memory (read 2026-11-20)",
        )
    },
    source="Below 1000: older versions of dcgm-exporter report a very large number for a missing sensor (its README, read 2026-11-27)",
)

_IDLE_HOT = Alert(
    name="GpuHotWhileIdle",
    expr=f"{dcgm('DEV_GPU_TEMP')} > <celsius> and {dcgm('DEV_GPU_UTIL')} < <percent>",
    hold_seconds=1800,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: GPU {{ $labels.gpu }} is idle and at {{ $value | printf "%.0f" }} °C',
    description=prose("""
        GPU {{ $labels.gpu }} of {{ $labels.node }} has been idle for 30 minutes and is at {{ $value | printf "%.0f" }} °C. Its cooling
        does not work, and the next job will be throttled. Check fans and heat sink.
    """),
    means="A GPU without work cools down to some 30 to 40 °C within minutes, unless nothing carries its heat away.",
    steps=listed(_COOLING),
    jobs=_DCGM,
    thresholds={
        "celsius": Threshold(70, "°C", "Temperature of an idle GPU.", sources.OCI),
        "percent": Threshold(10, "percent", "Utilisation below which a GPU counts as idle.", sources.OCI),
    },
)

_HEAT = Alert(
    name="GpuThrottledByHeat",
    expr="rate(gpu:throttled_by_heat_seconds:total[5m]) * 100 > <percent>",
    hold_seconds=600,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: heat slows GPU {{ $labels.gpu }} down {{ $value | printf "%.0f" }} % of the time',
    description=prose("""
        Heat has held down the clock of GPU {{ $labels.gpu }} on {{ $labels.node }} for {{ $value | printf "%.0f" }} % of the time over
        10 minutes. Its job runs at the speed of this GPU. Check fans, heat sink and inlet temperature.
    """),
    means="Every GPU of a training step waits for the slowest one.",
    steps=listed(_COOLING),
    jobs=_DCGM,
    thresholds={
        "percent": Threshold(
            5,
            "percent",
            "Time in which heat holds the clock down.",
            f"rackwright: stricter than the 20 % of {sources.OCI}",
        )
    },
    source=_NS,
)

_POWER = Alert(
    name="GpuThrottledByPower",
    expr="rate(gpu:throttled_by_power_seconds:total[5m]) * 100 > <percent>",
    hold_seconds=3600,
    severity=Severity.INFO,
    summary='{{ $labels.node }}: GPU {{ $labels.gpu }} is at its power limit {{ $value | printf "%.0f" }} % of the time',
    description=prose("""
        GPU {{ $labels.gpu }} of {{ $labels.node }} has spent {{ $value | printf "%.0f" }} % of the last hour at its power limit. Under full
        load that is normal. On one node of a job alone, its limit is wrong: nvidia-smi -q -d POWER.
    """),
    means="The load asks for more power than the limit allows, so that the clock is lowered. It matters where one node differs.",
    steps=listed("""
        - Do the other GPUs of the same job show the same? Then nothing is wrong.
        - This node alone: `nvidia-smi -q -d POWER | grep -i limit`. Below the board's default: `nvidia-smi -pl WATTS`, or the BMC's
          power cap (`ipmitool dcmi power get_limit`).
        - `rackwright health FILE --limit NODE` compares limit and default.
    """),
    jobs=_DCGM,
    thresholds={"percent": Threshold(20, "percent", "Time at the power limit.", sources.OCI)},
    source=_NS,
)

_BOARD = Alert(
    name="GpuThrottledByBoard",
    expr="rate(gpu:throttled_by_board_seconds:total[5m]) * 100 > <percent>",
    hold_seconds=300,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: the board holds GPU {{ $labels.gpu }} back",
    description=prose("""
        The board's or a reliability limit has held down GPU {{ $labels.gpu }} on {{ $labels.node }} for {{ $value | printf "%.0f" }} % of the
        time over 5 minutes. Suspect a power supply or the power brake. Look at the BMC's event log.
    """),
    means=prose("""
        Not the GPU but its surroundings ask for a lower clock: a lost power supply, a brake signal of the chassis, voltage
        regulators that are too hot.
    """),
    steps=listed(f"""
        - `nvidia-smi -q -d PERFORMANCE -i GPU`: `HW Power Brake Slowdown` or `HW Slowdown` active?
        - PsuFailed or BmcSensorCritical for the node? `ipmitool sdr type 'Power Supply'`.
        - {steps.SEL}
        - {steps.DRAIN}
        - Power supplies are whole: check their feeds and the chassis' power cap. If it happens again: {steps.then(steps.RMA)}
    """),
    jobs=_DCGM,
    thresholds={
        "percent": Threshold(
            1, "percent", "Time in which the board holds the clock down.", f"rackwright; {sources.OCI}: any"
        )
    },
    source=_NS,
)

GROUP = RuleGroup("gpu_clocks", (_HOT, _MEMORY_HOT, _IDLE_HOT, _HEAT, _POWER, _BOARD))
