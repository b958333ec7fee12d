"""Judges one document with every check that applies, each with a separate outcome."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rackwright.boundary import printable
from rackwright.health import absent
from rackwright.health.checks import (
    amd,
    bluefield,
    bmc,
    cpu,
    dcgm,
    disk,
    ethernet,
    filesystem,
    gpu_memory,
    gpu_pcie,
    gpu_present,
    gpu_running,
    gpu_xid,
    links,
    machine_log,
    memory,
    nvlink,
    os_driver,
    os_firmware,
    os_kernel,
    os_state,
    rdma,
    services,
)
from rackwright.health.display import computing
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.records import Missing, Unreadable
from rackwright.health.registry import AREAS, CHECKS, HealthCheck
from rackwright.health.verdict import SEVERITY, Action, Finding, HealthResult, unknown
from rackwright.status import Status

MODULES = (
    gpu_present, gpu_memory, gpu_pcie, gpu_running, gpu_xid, dcgm, amd, nvlink, rdma, links, bluefield, ethernet, cpu, memory,
    disk, filesystem, machine_log, os_driver, os_kernel, os_firmware, os_state, services, bmc,
)  # fmt: skip
"""Importing these modules registers their checks."""


def all_checks() -> list[HealthCheck]:
    """Every check, by area and then in the order of its module."""
    place = {module.__name__: number for number, module in enumerate(MODULES)}
    return sorted(
        CHECKS.values(), key=lambda check: (AREAS.index(check.area), place[check.function.__module__])
    )


EVIDENCE_MAX_CHARACTERS = 600
FINDINGS_MAX = 200
"""Limit for one check. A node with every GPU, port and drive broken has fewer."""
SILENT = (Status.PASS, Status.DISABLED, Status.OUT_OF_SCOPE)


def judge(expected: Expected, raw: Any, *, now: float | None = None) -> list[HealthResult]:  # noqa: ANN401
    """Every result about one node, by area.

    `raw` is untrusted input in place of a probe document: it never makes this raise, and every text in the results
    is printable. If `now` is given, a document that is too old is not judged.
    """
    document, damage = _document(expected, raw)
    fast = isinstance(raw, dict) and raw.get("fast") is True
    node = expected.node or _name_of(document)
    misfit = damage or _misfit(expected, document, now)
    results: list[HealthResult] = []
    for check in all_checks():
        if not check.applies(expected) or (fast and not check.fast):
            continue
        found = _shortcut(check, expected)
        if found is None:
            found = [misfit] if misfit is not None else _run(check, expected, document)
        results.extend(_result(node, check, one) for one in found)
    return results


def _document(expected: Expected, raw: Any) -> tuple[Document, Finding | None]:  # noqa: ANN401
    """The document to judge, or the reason why it cannot be judged."""
    try:
        return Document(computing(expected, raw)), None
    except Exception as error:  # noqa: BLE001 - a document that breaks its reader is not known
        return Document(raw), unknown(f"the document cannot be read: {_shown(error)}")


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:EVIDENCE_MAX_CHARACTERS]


def _name_of(document: Document) -> str:
    try:
        return printable(document.node, 100)
    except Unreadable:
        return "unknown"


def _misfit(expected: Expected, document: Document, now: float | None) -> Finding | None:
    """Why the whole document cannot be used for this node."""
    try:
        if expected.node is not None and document.node.split(".")[0] != expected.node:
            return unknown(f"the document is from node {document.node}, not {expected.node}")
        if now is not None:
            age, most = now - document.taken_at, expected.limit("document_age_s")
            if age > most:
                return unknown(f"the document is {age} s old (most {most:.0f} s)")
    except Unreadable as error:
        return unknown(str(error))
    return None


def _shortcut(check: HealthCheck, expected: Expected) -> list[Finding] | None:
    if check.id in expected.disabled:
        return [Finding(Status.DISABLED, f"switched off: {expected.disabled[check.id]}")]
    for need in check.needs:
        if need in expected.lacking:
            return [Finding(Status.OUT_OF_SCOPE, expected.lacking[need])]
    return None


def _run(check: HealthCheck, expected: Expected, document: Document) -> list[Finding]:
    found: list[Finding] = []
    try:
        for one in check.function(expected, document):
            if len(found) == FINDINGS_MAX:
                found.append(unknown(f"more than {FINDINGS_MAX} findings; the rest are not listed"))
                break
            found.append(one)  # keep what the check found before it crashed
    except Missing as error:
        found.append(unknown(str(error), error.place))
    except Unreadable as error:
        found.append(unknown(str(error)))
    except Exception as error:  # noqa: BLE001 - a check that breaks does not know
        found.append(unknown(f"the check crashed: {_shown(error)}"))
    return _gathered([_excused(expected, document, one) for one in found])


def _excused(expected: Expected, document: Document, finding: Finding) -> Finding:
    try:
        return absent.excused(expected, document, finding)
    except Exception:  # noqa: BLE001 - what cannot be looked up excuses nothing
        return finding


def _gathered(found: list[Finding]) -> list[Finding]:
    """The problems, else the pass, else each reason why the check is out of scope for this node."""
    problems = [one for one in found if one.status not in (Status.PASS, Status.OUT_OF_SCOPE)]
    passed = [one for one in found if one.status is Status.PASS]
    return problems or passed[:1] or list(dict.fromkeys(found)) or [unknown("the check gave no verdict")]


def _result(node: str, check: HealthCheck, found: Finding) -> HealthResult:
    quiet = found.status in SILENT
    default = check.action if found.status is Status.FAIL else Action.NONE
    return HealthResult(
        node=node,
        check=check.id,
        claim=check.claim,
        area=check.area,
        status=found.status,
        evidence=printable(found.evidence, EVIDENCE_MAX_CHARACTERS),
        action=Action.NONE if quiet else found.action or default,
        remedy="" if quiet else printable(found.remedy or check.remedy),
    )


def worst(results: Iterable[HealthResult]) -> Status:
    """The worst status; UNKNOWN if nothing was judged."""
    there = {result.status for result in results}
    for status in SEVERITY[:4]:
        if status in there:
            return status
    return Status.UNKNOWN


def hardest(results: Iterable[HealthResult]) -> Action:
    """The hardest action of any result."""
    return max((result.action for result in results), key=lambda action: action.rank, default=Action.NONE)
