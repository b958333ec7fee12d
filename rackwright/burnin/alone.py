"""Tests of each node alone, before the collectives: DCGM's diagnostic, and a matrix product on each GPU."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from rackwright.burnin.copies import CopyFigure, measure_copies
from rackwright.burnin.finding import Finding
from rackwright.burnin.on_each import by_node, last_output_line, no_nvidia, step_on_each
from rackwright.burnin.port_output import LatencyFigure, PortFigure
from rackwright.burnin.ports import PortStage, measure_ports
from rackwright.burnin.possible import gemm_max, impossible
from rackwright.burnin.profiles import Plan
from rackwright.health.checks.dcgm import judge_result
from rackwright.health.dcgm_records import DiagSection
from rackwright.health.probe.dcgm import parse_diag
from rackwright.health.probe.source import Unavailable
from rackwright.health.records import Unreadable
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import RunsDcgm
from rackwright.model.ranges import fold
from rackwright.model.settings import Burnin
from rackwright.model.sku import Floor, Metric
from rackwright.status import Status
from rackwright.workload.protocol import JobStep, Manager

STRAGGLER_PERCENT = 7.0
"""Azure ai-infrastructure-on-azure repairs a GPU whose matrix product is below 0.93 of the expected rate."""
NOISE_PERCENT = 2.0
"""Between equal GPUs, and between the figures of one (250.4 to 254.0 TFLOPS in the published A100 log)."""
TENSOR_ACTIVE = 1004
"""DCGM_FI_PROF_PIPE_TENSOR_ACTIVE: the load is a matrix product on the tensor cores."""
GEMM_START_SECONDS = 300
DIAG_SECONDS = {1: 300, 2: 900, 3: 3600, 4: 4 * 3600}
"""Limits by level: seconds, about 2, about 15 minutes, 45 minutes to over 2 hours (DCGM 4.6 user guide; AWS)."""
RESULTS_MAX = 100
"""The most findings of one node that are listed."""
# "Worker 0:0 [1004]: TensorEngineActive: generated ???, dcgm 0 (1.89e+05 gflops)." since DCGM 3.2, without the space before
_FIGURE = re.compile(
    r"Worker ([0-9]{1,3}):\d+ ?\[1004\]: \w+: .{0,400}\(([0-9]{1,12}(?:\.[0-9]{1,12})?(?:e[+-]?[0-9]{1,2})?) gflops\)"
)
_FILTER = "/gflops|[Ee]rror|not / { print; fflush() }"


@dataclass(frozen=True)
class GpuFigure:
    """The result of one GPU."""

    node: str
    gpu: int
    tflops: float


@dataclass(frozen=True)
class Alone:
    """Findings against nodes, GPUs and ports, by name."""

    findings: tuple[Finding, ...] = ()
    gemm: tuple[GpuFigure, ...] = ()
    copies: tuple[CopyFigure, ...] = ()
    ports: tuple[PortFigure, ...] = ()
    latencies: tuple[LatencyFigure, ...] = ()


def measure_alone(
    manager: Manager,
    cluster: Cluster,
    members: tuple[Node, ...],
    plan: Plan,
    progress: Callable[[str], None],
) -> Alone:
    """Run the plan's tests; those that do not apply to these nodes are OUT OF SCOPE by name."""
    settings = cluster.burnin
    findings, gemm = _with_dcgm(manager, settings, members, plan, progress)
    copies: tuple[CopyFigure, ...] = ()
    ports = PortStage()
    if plan.copies:
        copies, against = measure_copies(manager, settings, members, progress)
        findings += against
    if plan.ports:
        ports = measure_ports(manager, cluster, members, progress)
        findings += ports.findings
    return Alone(tuple(findings), gemm, copies, ports.figures, ports.latencies)


def _with_dcgm(
    manager: Manager,
    settings: Burnin,
    members: tuple[Node, ...],
    plan: Plan,
    progress: Callable[[str], None],
) -> tuple[list[Finding], tuple[GpuFigure, ...]]:
    asked = [
        name for name, wanted in (("dcgmi diag", plan.diag_level), ("gemm", plan.gemm_seconds)) if wanted
    ]
    if not asked:
        return [], ()
    if (why := no_nvidia(members[0])) is not None:
        return [Finding(Status.OUT_OF_SCOPE, f"{name}: {why}") for name in asked], ()
    engines = {node.name: node.offers(RunsDcgm) for node in members}
    without = [name for name, engine in engines.items() if engine is None]
    if without:
        why = f"{' and '.join(asked)}: needs the dcgm role, which {fold(without)} lacks"
        return [Finding(Status.UNKNOWN, why)], ()
    findings: list[Finding] = []
    figures: tuple[GpuFigure, ...] = ()
    if plan.diag_level:
        host = next(engine.dcgm_host for engine in engines.values() if engine is not None)
        progress(f"dcgmi diag -r {plan.diag_level} on {fold(engines)}")
        output = manager.run(diag_step(settings, members, plan.diag_level, host))
        findings += judge_diag(output.text, output.problem, tuple(engines))
    if plan.gemm_seconds:
        figures, against = run_gemm(manager, settings, members, plan.gemm_seconds, progress)
        findings += against
    return findings, figures


def run_gemm(
    manager: Manager,
    settings: Burnin,
    members: tuple[Node, ...],
    seconds: int,
    progress: Callable[[str], None],
) -> tuple[tuple[GpuFigure, ...], list[Finding]]:
    """The matrix product on all GPUs, judged."""
    names, gpus = tuple(node.name for node in members), members[0].sku.gpus
    if members[0].mig or gpus is None:
        return (), [
            Finding(Status.OUT_OF_SCOPE, "gemm: the GPUs are in MIG mode, and the floor is for whole GPUs")
        ]
    progress(f"matrix product on {fold(names)}")
    output = manager.run(gemm_step(settings, members, seconds))
    floor = members[0].sku.floor(Metric.GEMM_BF16_TFLOPS)
    found = judge_gemm(output.text, output.problem, names, gpus.count, floor)
    return tuple(_of_nodes(parse_gemm(output.text), names, floor)), found


def diag_step(settings: Burnin, members: tuple[Node, ...], level: int, host: str) -> JobStep:
    """`dcgmi diag` on every node."""
    seconds = max(settings.timeout_seconds, DIAG_SECONDS[level])
    return step_on_each(settings, members, f"dcgmi diag --host {host} -r {level} -j", seconds)


def gemm_step(settings: Burnin, members: tuple[Node, ...], seconds: int) -> JobStep:
    """DCGM's load generator on all GPUs of every node at once, for the installed CUDA major version."""
    program = (
        "tester=$(command -v dcgmproftester13 || command -v dcgmproftester12) || tester=dcgmproftester13; "
        f'"$tester" --no-dcgm-validation -t {TENSOR_ACTIVE} -d {seconds}'
    )
    return step_on_each(settings, members, program, seconds + GEMM_START_SECONDS, _FILTER)


def judge_diag(text: str, problem: str | None, nodes: tuple[str, ...]) -> list[Finding]:
    """Failed tests by node and entity; a node whose result cannot be read is UNKNOWN."""
    outputs = by_node(text)
    findings = []
    for node in nodes:
        try:
            section = DiagSection(
                {"at": None, "results": parse_diag(outputs.get(node.split(".")[0], ""))}, "diag"
            )
            results = section.results
            judged = [found for result in results if (found := judge_result(result)) is not None][
                :RESULTS_MAX
            ]
            passed = any(result.status == "pass" for result in results)
        except (Unavailable, Unreadable, ValueError, TypeError, LookupError, RecursionError) as error:
            findings.append(Finding(Status.UNKNOWN, f"dcgmi diag: {node}: {error}"))
            continue
        findings += [Finding(found.status, f"dcgmi diag: {node}: {found.evidence}") for found in judged]
        if not passed:
            findings.append(Finding(Status.UNKNOWN, f"dcgmi diag: {node}: no test passed"))
    if problem is not None and not findings:
        findings.append(Finding(Status.UNKNOWN, f"dcgmi diag: {problem}"))
    return findings


def parse_gemm(text: str) -> list[GpuFigure]:
    """The median of each GPU's figures without the first one, taken while the clocks still rise."""
    samples: dict[tuple[str, int], list[float]] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        if found := _FIGURE.match(rest):
            samples.setdefault((name, int(found[1])), []).append(float(found[2]) / 1000)
    return [
        GpuFigure(node, gpu, round(median(figures[1:] or figures), 1))
        for (node, gpu), figures in sorted(samples.items())
    ]


def _of_nodes(figures: list[GpuFigure], nodes: tuple[str, ...], floor: Floor | None) -> list[GpuFigure]:
    """The figures of the nodes that ran it, without physically impossible ones."""
    names, most = {node.split(".")[0] for node in nodes}, gemm_max(floor.floor if floor is not None else None)
    return [one for one in figures if one.node in names and 0 < one.tflops <= most]


def judge_gemm(
    text: str, problem: str | None, nodes: tuple[str, ...], gpus: int, floor: Floor | None = None
) -> list[Finding]:
    """GPUs slower than the others or below the floor, by name; a GPU without a figure is UNKNOWN."""
    printed, said = parse_gemm(text), by_node(text)
    figures, most = _of_nodes(printed, nodes, floor), gemm_max(floor.floor if floor is not None else None)
    findings = [
        Finding(Status.UNKNOWN, impossible(f"gemm: GPU {one.gpu} of {one.node}", one.tflops, most, "TFLOPS"))
        for one in printed
        if not one.tflops <= most
    ]
    for node in nodes:
        there = sum(figure.node == node.split(".")[0] for figure in figures)
        if there != gpus:
            last = last_output_line(said.get(node.split(".")[0], ""))
            why = f"gemm: {there} of {gpus} GPUs of {node} have a figure: {last}"
            findings.append(Finding(Status.UNKNOWN, why))
    if figures:
        findings += _against_median(figures) + _against_floor(figures, floor)
    if problem is not None:
        findings.append(Finding(Status.UNKNOWN, f"gemm: {problem}"))
    return findings


def _against_median(figures: list[GpuFigure]) -> list[Finding]:
    middle = median(figure.tflops for figure in figures)
    return [
        Finding(
            Status.FAIL,
            f"gemm: GPU {figure.gpu} of {figure.node} reaches {figure.tflops:.1f} TFLOPS, "
            f"{100 * (1 - figure.tflops / middle):.1f} % below the median of {middle:.1f} (most {STRAGGLER_PERCENT:g} %)",
        )
        for figure in figures
        if figure.tflops < middle * (1 - STRAGGLER_PERCENT / 100)
    ]


def _against_floor(figures: list[GpuFigure], floor: Floor | None) -> list[Finding]:
    """Compare with the catalogue. A fleet with a median below the floor need not be slow: floors are for cuBLAS's best shapes.

    The one published figure of DCGM's generator that has a floor (A100: 250 to 254 TFLOPS, floor 252) agrees with it.
    """
    if floor is None:
        return []
    cited = f"{floor.floor:g} TFLOPS ({floor.source.text}, read {floor.source.read.isoformat()})"
    middle = median(figure.tflops for figure in figures)
    if middle < floor.floor:
        why = (
            f"gemm: the median of {len(figures)} GPUs is {middle:.1f} TFLOPS, below the floor of {cited}: either all are slow "
            "(power cap, clocks), or this DCGM release's generator is slower than the program behind the floor"
        )
        return [Finding(Status.UNKNOWN, why)]
    return [
        Finding(
            Status.FAIL,
            f"gemm: GPU {figure.gpu} of {figure.node} reaches {figure.tflops:.1f} TFLOPS, below the floor of {cited}",
        )
        for figure in figures
        if figure.tflops < min(floor.floor, middle * (1 - NOISE_PERCENT / 100))
    ]
