"""Judges all nodes together. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rackwright.boundary import Refused, last_line, printable
from rackwright.burnin.finding import Finding
from rackwright.model.ranges import fold
from rackwright.model.storage import Filesystem
from rackwright.status import Status
from rackwright.storage.fio import BROKEN
from rackwright.storage.judge import POSSIBLE_GBS, Judged, floor_of
from rackwright.storage.plan import Sizes
from rackwright.storage.programs.children import MARK
from rackwright.storage.programs.pattern import compared_count
from rackwright.storage.received import Together, together_of
from rackwright.storage.report import Figure, NodeRates
from rackwright.workload.protocol import Output

METADATA = ("create", "stat", "remove")
FAR_FRACTION = 0.5
"""Of the median of all nodes; a node under it is worth a look, though the clients of one server share it unevenly."""
ENOUGH_TO_COMPARE = 3
POSSIBLE_OPS = 1e7
"""Operations per second of one node; on tmpfs a core makes some hundred thousand files a second."""


def judge_together(one: Filesystem, nodes: Sequence[str], output: Output, sizes: Sizes) -> Judged:
    """All nodes at once."""
    try:
        answer = together_of(output.text, nodes)
    except Refused as error:
        why = output.problem or f"unusable answer: {error}"
        return Judged(findings=(Finding(Status.UNKNOWN, f"together: {why} ({last_line(output.text)})"),))
    findings = [*_troubles(answer), *_printed(answer, output.text)]
    figures: list[Figure] = []
    failed: set[str] = {one.phase for one in answer.phases[-1:]} if answer.errors else set()
    if "compare" in failed or not _is_compared(answer, sizes, len(nodes)):
        failed.add("read")
    for name, key in (("read", "together_read_gbs"), ("write", "together_write_gbs")):
        phase = answer.phase(name)
        wanted = sizes.size * sizes.jobs * len(nodes)
        if phase is None or name in failed or phase.done != wanted or phase.seconds <= 0:
            findings += [] if findings else [Finding(Status.UNKNOWN, f"together: {name}: no rate")]
            continue
        value = phase.done / phase.seconds / 1e9
        if value > POSSIBLE_GBS * len(nodes):
            text = f"together: {name}: {value:.3g} GB/s is more than {len(nodes)} nodes can reach: not a measurement"
            findings.append(Finding(Status.UNKNOWN, text))
            continue
        figures.append(Figure(key, f"{name}, {len(nodes)} nodes together", "GB/s", value, floor_of(one, key)))
    figures += _metadata(one, answer, failed)
    if sizes.direct and not answer.direct and not answer.errors and answer.phases:
        text = "together: the filesystem refuses O_DIRECT, so that a page cache may have served what was read"
        findings.append(
            Finding(Status.UNKNOWN, f"{text}; declare `bench: {{direct: false}}` where that is known")
        )
    rates = _rates(nodes, answer, failed)
    hung = any(trouble.kind == "hung" for trouble in answer.errors)
    return Judged(rates, tuple(figures), (*findings, *_far(rates)), hung=hung)


def _is_compared(answer: Together, sizes: Sizes, nodes: int) -> bool:
    """Whether what was read is known to be what was written; a rate of other data is none."""
    phase = answer.phase("compare")
    wanted = compared_count(sizes.size, sizes.block) * sizes.block * sizes.jobs * nodes
    return phase is not None and phase.done == wanted


def _troubles(answer: Together) -> list[Finding]:
    worse = {"wrong": Status.FAIL, "hung": Status.UNKNOWN, "error": Status.UNKNOWN}
    found = []
    for trouble in answer.errors[:16]:
        status = worse[trouble.kind]
        if trouble.kind == "error" and any(f"[Errno {code}]" in trouble.text for code in BROKEN):
            status = Status.FAIL
        found.append(Finding(status, f"together: {trouble.node}: {trouble.text}"))
    if answer.errors_count > len(found):
        found.append(
            Finding(Status.UNKNOWN, f"together: {answer.errors_count - len(found)} further ranks had errors")
        )
    return found


def _printed(answer: Together, text: str) -> list[Finding]:
    """The output of a program before it ended, if the ranks report no errors."""
    other = [line for line in text.splitlines() if line.strip() and not line.startswith(MARK)]
    if not other or not any(trouble.kind == "hung" for trouble in answer.errors):
        return []
    return [Finding(Status.UNKNOWN, f"together: the job printed: {printable(other[0], 200)}")]


def _metadata(one: Filesystem, answer: Together, failed: set[str]) -> list[Figure]:
    phases = [phase for name in METADATA if (phase := answer.phase(name)) is not None and name not in failed]
    found = [
        Figure(f"{phase.phase}_ops", f"{phase.phase} of files", "ops/s", phase.done / phase.seconds)
        for phase in phases
        if phase.seconds > 0
    ]
    seconds = sum(phase.seconds for phase in phases)
    value = sum(phase.done for phase in phases) / seconds if seconds > 0 else 0.0
    if len(phases) == len(METADATA) and 0 < value <= POSSIBLE_OPS * len(phases[0].nodes):
        key = "metadata_ops"
        found.insert(0, Figure(key, "create, stat and remove together", "ops/s", value, floor_of(one, key)))
    return found


def _rates(nodes: Sequence[str], answer: Together, failed: set[str]) -> tuple[NodeRates, ...]:
    by_kind: dict[str, list[float | None]] = {}
    for name in ("read", "write"):
        phase = answer.phase(name) if name not in failed else None
        each = phase.nodes if phase is not None else ()
        by_kind[name] = [done / seconds / 1e9 if seconds > 0 else None for done, seconds in each]
    return tuple(
        NodeRates(
            node,
            by_kind["read"][index] if by_kind["read"] else None,
            by_kind["write"][index] if by_kind["write"] else None,
        )
        for index, node in enumerate(nodes)
    )


def _far(rates: Sequence[NodeRates]) -> list[Finding]:
    """Nodes far under the others."""
    found = []
    for key in ("read_gbs", "write_gbs"):
        known: dict[str, float] = {
            one.node: value for one in rates if (value := getattr(one, key)) is not None
        }
        if len(known) < ENOUGH_TO_COMPARE:
            continue
        middle = median(known.values())
        far = [node for node, value in known.items() if value < FAR_FRACTION * middle]
        if far:
            worst = min(known.values())
            text = f"together: {key.removesuffix('_gbs')}: {fold(far)} under half of the median of all nodes"
            found.append(Finding(Status.WARN, f"{text} ({worst:.3g} of {middle:.3g} GB/s)"))
    return found
