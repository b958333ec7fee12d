"""What the answers of nodes mean: rates, and findings against a filesystem. Pure.

FAIL accuses the filesystem: wrong data, an I/O error, a floor that is missed. What was not measured is UNKNOWN.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from rackwright.boundary import Refused, last_line
from rackwright.burnin.finding import Finding
from rackwright.model.ranges import fold
from rackwright.model.storage import FLOORS, Filesystem
from rackwright.status import Status
from rackwright.storage.fio import BROKEN, WRONG_DATA, Kind, Unreadable, parse_fio
from rackwright.storage.plan import SAVES_ON_DISK, Sizes
from rackwright.storage.received import ALONE, FioAnswer, Looked, Together, result_of, together_of
from rackwright.storage.report import Figure, NodeRates
from rackwright.workload.protocol import Output

METADATA = ("create", "stat", "remove")
SHORT_SECONDS = 1.0
"""A shorter measurement is one of caches and of how precise the clock is."""
FAR_FRACTION = 0.5
"""Of the median of all nodes; a node under it is worth a look, though the clients of one server share it unevenly."""
ENOUGH_TO_COMPARE = 3


@dataclass(frozen=True)
class Judged:
    """What one run came to."""

    rates: tuple[NodeRates, ...] = ()
    figures: tuple[Figure, ...] = ()
    findings: tuple[Finding, ...] = ()
    version: str | None = None
    """fio's."""
    hung: bool = False
    """Whether it did not end in time: what comes after it would not either."""

    @property
    def sound(self) -> bool:
        """Whether nothing failed and nothing is unknown."""
        return not any(found.status in (Status.FAIL, Status.UNKNOWN) for found in self.findings)


def judge_look(one: Filesystem, node: str, look: Looked) -> Finding | None:
    """Why a node cannot take part, or None."""
    if look.trouble is not None:
        return Finding(Status.UNKNOWN, f"{node}: {one.path}: {look.trouble}")
    if look.mounted is None:
        return Finding(
            Status.UNKNOWN, f"{node}: nothing is mounted on {one.path}: the bench would fill another disk"
        )
    return None


def judge_space(
    one: Filesystem, sizes: Sizes, nodes: int, save_bytes: int, look: Looked, node: str
) -> Finding | None:
    """Whether what the bench writes would leave too little; `save_bytes`: of one checkpoint, all ranks."""
    writers = nodes if one.kind.shared else 1
    needed = max(2 * sizes.size * sizes.jobs * writers, SAVES_ON_DISK * save_bytes)
    kept = int(look.size_bytes * one.min_free_percent / 100)
    if look.free_bytes - needed < kept:
        said = (
            f"{node}: {one.path} has {_gib(look.free_bytes)} free; the bench needs {_gib(needed)}, and "
            f"{_gib(kept)} ({one.min_free_percent:g} %) are kept free: nothing was written"
        )
        return Finding(Status.UNKNOWN, f"{said}; lower `bench.size_mib`, or run with --quick")
    made = (sizes.files + 4) * sizes.jobs * writers
    kept_files = int(look.files * one.min_free_files_percent / 100)
    if look.files and look.free_files - made < kept_files:
        said = f"{node}: {one.path} has {look.free_files} free inodes; the bench makes {made}"
        return Finding(Status.UNKNOWN, f"{said}, and {kept_files} are kept free: nothing was written")
    return None


def _gib(count: int) -> str:
    return f"{count / 2**30:.3g} GiB"


def judge_alone(node: str, output: Output, sizes: Sizes, seconds: int) -> Judged:
    """fio on one node."""
    try:
        answer = result_of(ALONE, output.text)
    except Refused as error:
        why = output.problem or f"its answer cannot be used: {error}"
        return Judged(findings=(Finding(Status.UNKNOWN, f"{node} alone: {why} ({last_line(output.text)})"),))
    if answer.error is not None:
        return Judged(findings=(Finding(Status.UNKNOWN, f"{node} alone: {answer.error}"),))
    findings: list[Finding] = []
    rates, version = NodeRates(node), None
    for kind, given in (("write", answer.write), ("read", answer.read)):
        if given is None:
            findings += (
                [] if findings else [Finding(Status.UNKNOWN, f"{node} alone: fio did not run to {kind}")]
            )
            continue
        gbs, found, said = _fio(node, "write" if kind == "write" else "read", given, sizes, seconds)
        findings += found
        version = said or version
        rates = replace(rates, write_gbs=gbs) if kind == "write" else replace(rates, read_gbs=gbs)
    hung = any(given is not None and given.hung for given in (answer.write, answer.read))
    return Judged((rates,), findings=tuple(findings), version=version, hung=hung)


def _fio(
    node: str, kind: Kind, given: FioAnswer, sizes: Sizes, seconds: int
) -> tuple[float | None, list[Finding], str | None]:
    def against(status: Status, text: str) -> list[Finding]:
        return [Finding(status, f"{node} alone: {kind}: {text}")]

    if given.missing is not None:
        return None, against(Status.UNKNOWN, f"{given.missing}: the role storage_bench installs it"), None
    if given.hung:
        return (
            None,
            against(Status.UNKNOWN, f"no end within {seconds} s: the filesystem hangs, or is far too slow"),
            None,
        )
    try:
        run = parse_fio(given.output, kind)
    except Unreadable as error:
        return None, against(Status.UNKNOWN, f"{error} (exit status {given.exit_status})"), None
    if run.error == WRONG_DATA:
        return (
            None,
            against(Status.FAIL, f"what is read is not what was written: {run.complaint}"),
            run.version,
        )
    if run.error or given.exit_status:
        status = Status.FAIL if run.error in BROKEN else Status.UNKNOWN
        named = f"fio ended with {errno.errorcode.get(run.error, run.error)} ({os.strerror(run.error)})"
        why = f"{named if run.error else f'fio exited {given.exit_status}'}: {run.complaint}"
        refused = run.error == errno.EINVAL and sizes.direct
        hint = "; a filesystem without O_DIRECT needs `bench: {direct: false}`" if refused else ""
        return None, against(status, f"{why}{hint}"), run.version
    wanted = sizes.size * sizes.jobs
    if run.bytes != wanted or run.gbs is None:
        said = f"fio moved {run.bytes} of {wanted} bytes in {run.seconds:g} s: no rate"
        return None, against(Status.UNKNOWN, said), run.version
    short = (
        against(Status.WARN, f"took {run.seconds:g} s: too short for a steady rate, raise `bench.size_mib`")
        if run.seconds < SHORT_SECONDS
        else []
    )
    return run.gbs, short, run.version


def alone_figures(one: Filesystem, rates: Sequence[NodeRates]) -> tuple[Figure, ...]:
    """The slowest node's rates."""
    found = []
    for key, name in (("read_gbs", "read, one node alone"), ("write_gbs", "write, one node alone")):
        known = [(value, each.node) for each in rates if (value := getattr(each, key)) is not None]
        if known:
            value, node = min(known)
            found.append(Figure(key, name, "GB/s", value, _floor(one, key), node))
    return tuple(found)


def judge_together(one: Filesystem, nodes: Sequence[str], output: Output, sizes: Sizes) -> Judged:
    """All nodes at once."""
    try:
        answer = together_of(output.text, nodes)
    except Refused as error:
        why = output.problem or f"the answer cannot be used: {error}"
        return Judged(findings=(Finding(Status.UNKNOWN, f"together: {why} ({last_line(output.text)})"),))
    findings = _troubles(answer)
    figures: list[Figure] = []
    failed: set[str] = {one.phase for one in answer.phases[-1:]} if answer.errors else set()
    for name, key in (("read", "together_read_gbs"), ("write", "together_write_gbs")):
        phase = answer.phase(name)
        wanted = sizes.size * sizes.jobs * len(nodes)
        if phase is None or name in failed or phase.done != wanted or phase.seconds <= 0:
            findings += [] if findings else [Finding(Status.UNKNOWN, f"together: {name}: no rate")]
            continue
        value = phase.done / phase.seconds / 1e9
        figures.append(Figure(key, f"{name}, {len(nodes)} nodes together", "GB/s", value, _floor(one, key)))
    figures += _metadata(one, answer, failed)
    if sizes.direct and not answer.direct and not answer.errors and answer.phases:
        said = "together: the filesystem refuses O_DIRECT, so that a page cache may have served what was read"
        findings.append(
            Finding(Status.UNKNOWN, f"{said}; declare `bench: {{direct: false}}` where that is known")
        )
    rates = _rates(nodes, answer, failed)
    hung = any(trouble.kind == "hung" for trouble in answer.errors)
    return Judged(rates, tuple(figures), (*findings, *_far(rates)), hung=hung)


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


def _metadata(one: Filesystem, answer: Together, failed: set[str]) -> list[Figure]:
    phases = [phase for name in METADATA if (phase := answer.phase(name)) is not None and name not in failed]
    found = [
        Figure(f"{phase.phase}_ops", f"{phase.phase} of files", "ops/s", phase.done / phase.seconds)
        for phase in phases
        if phase.seconds > 0
    ]
    seconds = sum(phase.seconds for phase in phases)
    if len(phases) == len(METADATA) and seconds > 0:
        value = sum(phase.done for phase in phases) / seconds
        key = "metadata_ops"
        found.insert(0, Figure(key, "create, stat and remove together", "ops/s", value, _floor(one, key)))
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
            said = f"together: {key.removesuffix('_gbs')}: {fold(far)} under half of the median of all nodes"
            found.append(Finding(Status.WARN, f"{said} ({worst:.3g} of {middle:.3g} GB/s)"))
    return found


def judge_floors(
    one: Filesystem, figures: Sequence[Figure], rates: Sequence[NodeRates]
) -> tuple[Finding, ...]:
    """FAIL for each figure under its floor, every node alone by name; WARN where no floor is declared at all."""
    source = f" ({one.floor.source.text})" if one.floor is not None and one.floor.source is not None else ""
    found = []
    for figure in figures:
        if not figure.under:
            continue
        bad: Mapping[str, float] = {}
        if figure.node is not None and figure.floor is not None:
            bad = {
                each.node: value
                for each in rates
                if (value := getattr(each, figure.key)) is not None and value < figure.floor
            }
        who = f"{fold(bad)}: " if bad else ""
        said = f"{figure.value:.3g} {figure.unit} is under the floor of {figure.floor:g}{source}"
        found.append(Finding(Status.FAIL, f"{who}{figure.name}: {said}"))
    if one.floor is None and figures:
        found.append(Finding(Status.WARN, f"{one.name} is measured, not judged: no floor is declared"))
    elif figures:
        missing = [
            key for key in FLOORS if _floor(one, key) is not None and key not in {f.key for f in figures}
        ]
        if missing:
            found.append(
                Finding(
                    Status.UNKNOWN, f"a floor is declared for {', '.join(missing)}, and there is no figure"
                )
            )
    return tuple(found)


def _floor(one: Filesystem, key: str) -> float | None:
    value = getattr(one.floor, key) if one.floor is not None else None
    return float(value) if value is not None else None
