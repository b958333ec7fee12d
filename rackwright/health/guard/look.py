"""Reads the node. Cheap sections are read each time; a GPU query is cached and reused.

`nvidia-smi -q -x` takes seconds on a node with eight busy GPUs and disturbs the job that runs there. The
scheduler's health check queries the GPUs while no job runs, and an epilog after each job. A prolog and a
health check beside a job use the cached query, unless

- it is older than the site allows, or from another boot, driver or set of GPUs: the GPUs are then queried again;
- a check fails on it: a stale reading never counts against a node.

The kernel log, where a failing GPU shows up first, is read each time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rackwright.health.expected import Expected
from rackwright.health.guard import places
from rackwright.health.guard.clock import without_log
from rackwright.health.guard.found import Outcome, found_in
from rackwright.health.guard.memory import Policy
from rackwright.health.history import SPACING_SECONDS
from rackwright.health.judge import judge
from rackwright.health.probe.main import FAST, probe
from rackwright.health.probe.source import Source, Unavailable
from rackwright.health.registry import CHECKS
from rackwright.health.request import request_of
from rackwright.health.verdict import HealthResult
from rackwright.status import Status

QUERIED = ("gpus", "nvlink")
"""Sections that need nvidia-smi."""
COUNTED = ("pci", "network", "cpu")
"""Sections that no pass judges: their error counters are saved so that `rackwright health` can judge an increase."""
CHEAP = tuple(name for name in FAST if name not in QUERIED)
GPUS = "/proc/driver/nvidia/gpus"
VERSION = 2


@dataclass(frozen=True)
class Looked:
    """The result of one look."""

    results: tuple[HealthResult, ...]
    document: dict[str, Any]
    gpus_at: float | None
    """When the GPUs were queried; None: never."""
    queried: bool
    """Whether they were queried just now."""

    @property
    def read_now(self) -> dict[str, Any]:
        """The document without cached sections."""
        sections = self.document["sections"]
        if not self.queried:
            sections = {name: data for name, data in sections.items() if name not in QUERIED}
        return {**self.document, "sections": sections}


@dataclass(frozen=True)
class Kept:
    """The last query of the GPUs."""

    gpus: str
    """Boot, driver and GPUs at the time of the query."""
    sections: dict[str, Any]
    """By section: when it was read (`at`), and the probe's report (`section`)."""

    @property
    def at(self) -> float:
        """The time of the oldest section."""
        return min(float(one["at"]) for one in self.sections.values())

    @property
    def documents(self) -> dict[str, Any]:
        """Each section as the probe reported it, by name."""
        return {name: one["section"] for name, one in self.sections.items()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Kept | None:
        """The reverse of `to_json`; None for anything else."""
        try:
            sections = {name: data["sections"][name] for name in QUERIED}
            kept = cls(str(data["gpus"]), sections)
            return kept if data["version"] == VERSION and kept.at > 0 and kept.documents else None
        except (KeyError, TypeError, ValueError):
            return None

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"version": VERSION, "gpus": self.gpus, "sections": self.sections}


def present(source: Source) -> str:
    """Boot, driver and GPUs as the kernel reports them, without nvidia-smi."""
    boot = source.maybe("/proc/sys/kernel/random/boot_id") or ""
    driver = (source.maybe("/proc/driver/nvidia/version") or "").partition("\n")[0]
    gpus = [f"{name} {_vendor(source, name)}" for name in source.names(GPUS)]
    return "; ".join((boot, driver, *gpus))


def _vendor(source: Source, address: str) -> str:
    """The first bytes of its configuration space: all ones if it has fallen off the bus."""
    try:
        return source.data(f"/sys/bus/pci/devices/{address}/config", 0, 2).hex()
    except Unavailable:
        return "unread"


def newer(kept: Kept | None, gpus: str, sections: dict[str, Any], at: float) -> Kept | None:
    """The cache after a query: a section that could not be read does not replace one that was."""
    if not all(name in sections for name in QUERIED):
        return kept
    found = {name: {"at": round(at, 3), "section": sections[name]} for name in QUERIED}
    if kept is not None and kept.gpus == gpus:
        for name, one in kept.sections.items():
            if one["section"].get("ok") is True and sections[name].get("ok") is not True:
                found[name] = one
    return Kept(gpus, found)


class Looker:
    """Reads and judges the node behind `source`."""

    def __init__(self, source: Source, policy: Policy, expected: Expected, kept: Kept | None) -> None:
        self._source, self._policy, self._expected = source, policy, expected
        self.kept = kept
        self._present = present(source)

    def look(
        self,
        mode: str,
        log_since: float,
        busy: Callable[[], bool],
        *,
        confirm: bool,
        set_back: float = 0.0,
    ) -> Looked:
        """`confirm`: a failure on cached data is queried again before it counts.

        `set_back`: seconds by which the clock was set back since `log_since` was saved; if any, the kernel log is not judged.
        """
        usable = self._usable()
        query = mode in ("epilog", "show", "again") or not usable or (mode == "check" and not busy())
        patient = query or mode != "prolog"
        seconds = self._policy.probe_seconds if patient else self._policy.prolog_seconds
        counted = COUNTED if mode == "check" and self._counters_due() else ()
        document = self._probe((*CHEAP, *(QUERIED if query else ()), *counted), seconds, log_since)
        if set_back:
            document = without_log(document, set_back)
        if query:
            self._keep(document)
        elif self.kept is not None:
            document["sections"].update(self.kept.documents)
        results = judge(self._expected, document)
        if not query and confirm and _fails_on_queried(results):
            fresh = self._probe(QUERIED, self._policy.probe_seconds, log_since)
            self._keep(fresh)
            document["sections"].update(fresh["sections"])
            results, query = judge(self._expected, document), True
        return self._looked(results, document, query)

    def _counters_due(self) -> bool:
        try:
            last = json.loads(self._source.text(places.COUNTERS))[-1]["at"]
            return not 0 <= self._source.now() - last < SPACING_SECONDS
        except (Unavailable, ValueError, LookupError, TypeError):
            return True

    def _usable(self) -> bool:
        kept = self.kept
        if kept is None or kept.gpus != self._present or kept.documents["gpus"].get("ok") is not True:
            return False
        return 0 <= self._source.now() - kept.at <= self._policy.busy_query_hours * 3600

    def _probe(self, sections: Sequence[str], seconds: float, log_since: float) -> dict[str, Any]:
        request = {
            "fast": True,
            "sections": sections,
            "seconds": seconds,
            **request_of(self._expected),
            "log_since": log_since,
        }
        return probe(self._source, request)

    def _keep(self, document: dict[str, Any]) -> None:
        self.kept = newer(self.kept, self._present, document["sections"], document["taken_at"])

    def _looked(self, results: Sequence[HealthResult], document: dict[str, Any], queried: bool) -> Looked:
        at = document["taken_at"] if queried else self.kept.at if self.kept is not None else None
        if not queried and at is not None:
            minutes = max(0.0, document["taken_at"] - at) / 60
            results = [_dated(one, minutes) for one in results]
        return Looked(tuple(results), document, at, queried)


def _reads_queried(result: HealthResult) -> bool:
    check = CHECKS.get(result.check)
    return check is not None and any(name in check.reads for name in QUERIED)


def _fails_on_queried(results: Sequence[HealthResult]) -> bool:
    found = found_in(results)
    return found.outcome is Outcome.BAD and any(_reads_queried(one) for one in found.results)


def _dated(result: HealthResult, minutes: float) -> HealthResult:
    """The result with the age of its data, if the data was cached."""
    if result.status not in (Status.FAIL, Status.UNKNOWN, Status.WARN) or not _reads_queried(result):
        return result
    return replace(result, evidence=f"{result.evidence} (queried {minutes:.0f} min ago)")


def command_lines(source: Source) -> Iterator[str]:
    """Command lines of all processes, read lazily."""
    for name in source.names("/proc"):
        if name.isdigit():
            yield (source.maybe(f"/proc/{name}/cmdline") or "").replace("\0", " ").strip()
