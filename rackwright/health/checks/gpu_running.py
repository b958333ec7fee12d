"""GPUs at work: temperature, power, clocks, throttling, what a job left behind."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.health.checks import scope
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.gpu_records import Gpu
from rackwright.health.records import Unreadable
from rackwright.health.registry import check, each
from rackwright.health.verdict import Action, Finding, fail, unknown, warn

COOLING = "Check fans, inlet temperature and dust (liquid cooling: the flow). If it is one GPU alone, check its heat sink."
CLEARLY_COOL_C = 60
IDLE_PERCENT = 10
BUSY_PERCENT = 90


@check(
    "gpu", "Every GPU is well below its slowdown temperature", reads=("gpus",), applies=scope.gpus,
    limits=("gpu_margin_warn_c", "gpu_margin_fail_c"), remedy=COOLING, source="the board's own slowdown threshold",
)  # fmt: skip
def gpu_temperature(expected: Expected, document: Document) -> Iterator[Finding]:
    least, good_margin = expected.limit("gpu_margin_fail_c"), expected.limit("gpu_margin_warn_c")

    def judge(gpu: Gpu) -> Finding | None:
        now, margin = gpu.temperature.gpu_c, gpu.temperature.margin_c
        if margin is None:
            if gpu.temperature.slowdown_c is None:
                raise Unreadable(f"{gpu.label} reports neither a margin nor its slowdown temperature")
            margin = gpu.temperature.slowdown_c - now
        if margin <= 0 and now < CLEARLY_COOL_C:  # gpud has seen this on H100: such a margin is meaningless
            return unknown(f"{gpu.label} reports a margin of {margin} C at {now} C")
        if margin <= least:
            return fail(f"{gpu.label}: {now} C, {margin} C below its slowdown")
        return warn(f"{gpu.label}: {now} C, {margin} C below its slowdown") if margin <= good_margin else None

    yield from each(document.gpus.some(), judge, "cool")


@check(
    "gpu", "No GPU is hot while it is idle", reads=("gpus",), applies=scope.gpus, action=Action.NONE,
    limits=("gpu_idle_temperature_c",), remedy=COOLING, source="OCI alert HotWhileIdle; ClusterMAX: idle thermals sane",
)  # fmt: skip
def gpu_idle_temperature(expected: Expected, document: Document) -> Iterator[Finding]:
    most = expected.limit("gpu_idle_temperature_c")

    def judge(gpu: Gpu) -> Finding | None:
        if gpu.temperature.gpu_c <= most:
            return None
        # A GPU is still hot right after a job, when the epilog runs: a warning, not a drain.
        return fail(f"{gpu.label}: {gpu.temperature.gpu_c} C and idle") if idle(gpu) else None

    yield from each(document.gpus.some(), judge, "cool")


def idle(gpu: Gpu) -> bool:
    return not gpu.processes and gpu.utilization < IDLE_PERCENT


@check(
    "gpu", "GPU memory is within its temperature limit", reads=("gpus",), applies=scope.hbm,
    limits=("gpu_memory_warn_c", "gpu_memory_fail_c"), remedy=COOLING, source="the board's memory threshold",
)  # fmt: skip
def gpu_memory_temperature(expected: Expected, document: Document) -> Iterator[Finding]:
    usual, high = expected.limit("gpu_memory_fail_c"), expected.limit("gpu_memory_warn_c")

    def judge(gpu: Gpu) -> Finding | None:
        now, most = gpu.temperature.memory_c, gpu.temperature.memory_max_c
        if now >= (usual if most is None else most):
            # Newer boards do not report their own maximum; the limit of an older board must not drain them.
            return fail(f"memory of {gpu.label}: {now} C", Action.NONE if most is None else None)
        return warn(f"memory of {gpu.label}: {now} C") if now >= high else None

    yield from each(document.gpus.some(), judge, "cool")


@check(
    "gpu", "Only power limits and settings hold the clocks down", reads=("gpus",), applies=scope.gpus,
    remedy=COOLING + " For a power brake, check the power supplies and their redundancy.",
    source="nvidia-smi clocks event reasons, as gcm and oci-hpc use them",
)  # fmt: skip
def gpu_throttle(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: Gpu) -> Finding | None:
        now = gpu.throttle
        reasons = (
            (now.hw_slowdown, "hardware slowdown"),
            (now.hw_thermal_slowdown, "too hot"),
            (now.hw_power_brake_slowdown, "power brake from the supply"),
        )
        hard = [reason for active, reason in reasons if active]
        soft = now.sw_thermal_slowdown
        if hard:
            return fail(f"{gpu.label}: {', '.join(hard)}")
        return warn(f"{gpu.label}: slowed down by the driver to stay cool") if soft else None

    yield from each(document.gpus.some(), judge, "nothing")


@check(
    "gpu", "The power limit is the board's default", reads=("gpus",), applies=scope.gpus, action=Action.NONE,
    limits=("gpu_power_limit_percent",), remedy="Reset it with nvidia-smi -pl, or declare the limit under health.limits.",
    source="the board's default power limit; ClusterMAX",
)  # fmt: skip
def gpu_power_limit(expected: Expected, document: Document) -> Iterator[Finding]:
    share = expected.limit("gpu_power_limit_percent") / 100

    def judge(gpu: Gpu) -> Finding | None:
        wanted = max(gpu.power.default_w, float(expected.the_gpus().power_watts or 0))
        if gpu.power.limit_w >= wanted * share:
            return None
        # Set by an administrator or by a facility power cap: the node itself is healthy.
        return fail(f"{gpu.label} is limited to {gpu.power.limit_w:g} W of {wanted:g} W")

    yield from each(document.gpus.some(), judge, "the board's default")


@check(
    "gpu", "Every GPU reports a plausible power draw", reads=("gpus",), applies=scope.gpus,
    limits=("gpu_power_over_percent",), action=Action.RESET_GPU,
    remedy="Reset the GPU. If it recurs, open an RMA: its regulator or sensor is broken.",
    source="physics: no board draws nothing, or a fifth above its limit",
)  # fmt: skip
def gpu_power_draw(expected: Expected, document: Document) -> Iterator[Finding]:
    over = expected.limit("gpu_power_over_percent") / 100

    def judge(gpu: Gpu) -> Finding | None:
        draw, limit = gpu.power.draw_w, gpu.power.limit_w
        if draw <= 0 or draw > limit * over:
            return fail(f"{gpu.label} draws {draw:g} W under a limit of {limit:g} W")
        return None

    yield from each(document.gpus.some(), judge, "plausible")


@check(
    "gpu", "A busy GPU runs near its maximum clock", reads=("gpus",), applies=scope.gpus, limits=("gpu_busy_clock_percent",),
    action=Action.RESET_GPU, remedy="Run nvidia-smi -rgc and -rac, see what limits the clock, then reset the GPU.",
    source="facebookresearch gcm clock_freq",
)  # fmt: skip
def gpu_clocks(expected: Expected, document: Document) -> Iterator[Finding]:
    share = expected.limit("gpu_busy_clock_percent") / 100

    def judge(gpu: Gpu) -> Finding | None:
        clock, most, busy = gpu.clocks.sm_mhz, gpu.clocks.sm_max_mhz, gpu.utilization
        if busy < BUSY_PERCENT or clock >= most * share:
            return None
        evidence = f"{gpu.label} is {busy} % busy at {clock} of {most:.0f} MHz"
        if gpu.throttle.sw_power_cap or gpu.throttle.applications_clocks_setting:
            return warn(evidence + ": held down by its power limit or by application clocks")
        return fail(evidence)

    yield from each([gpu for gpu in document.gpus.some() if not divided(gpu)], judge, "fast")


@check(
    "gpu", "The memory clock of a busy GPU is at its maximum", reads=("gpus",), applies=scope.gpus,
    action=Action.RESET_GPU, remedy="Run nvidia-smi -rmc, then reset the GPU.", source="the board's maximum memory clock",
)  # fmt: skip
def gpu_memory_clock(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: Gpu) -> Finding | None:
        clock, most = gpu.clocks.memory_mhz, gpu.clocks.memory_max_mhz
        if gpu.pstate == "P0" and clock < most * 0.9 and gpu.utilization >= BUSY_PERCENT:
            return fail(f"memory of {gpu.label} is clocked at {clock} of {most:.0f} MHz")
        return None

    yield from each([gpu for gpu in document.gpus.some() if not divided(gpu)], judge, "full")


def divided(gpu: Gpu) -> bool:
    """A GPU in MIG mode does not report how busy it is."""
    try:
        return gpu.mig.current
    except Unreadable:
        return False


@check(
    "gpu", "No GPU has memory in use without a process", reads=("gpus",), applies=scope.gpus,
    limits=("gpu_idle_memory_mib", "gpu_stuck_memory_mib"), action=Action.RESET_GPU,
    remedy="Find the process (`fuser -v /dev/nvidia*`), else reset the GPU.", source="gcm mem_usage; deepops epilog",
)  # fmt: skip
def gpu_leftovers(expected: Expected, document: Document) -> Iterator[Finding]:
    little, much = expected.limit("gpu_idle_memory_mib"), expected.limit("gpu_stuck_memory_mib")

    def judge(gpu: Gpu) -> Finding | None:
        used = gpu.memory.used_mib
        if used <= little or gpu.processes:
            return None
        if used >= much and gpu.utilization < IDLE_PERCENT:  # busy: a process in another PID namespace
            return fail(f"{gpu.label}: {used} MiB in use without a process")
        return warn(f"{gpu.label}: {used} MiB in use without a process")

    yield from each([gpu for gpu in document.gpus.some() if not divided(gpu)], judge, "none")
