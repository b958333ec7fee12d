"""Hours of the same load: judges every round, reads the health of every node, and reports drift.

A round is one all-reduce and, on GPUs, one matrix product. The probe runs while the matrix product (or the
all-reduce) does, so that temperatures and throttling are those under load. Results before an interruption are
kept: the report is stored after every reading.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import median
from typing import Protocol

from rackwright.burnin.alone import GpuFigure
from rackwright.burnin.finding import Finding
from rackwright.burnin.floors import Floor, judge_floor
from rackwright.burnin.measurement import Measurement
from rackwright.burnin.measuring import trouble_of
from rackwright.burnin.readings import Reading, judge_readings
from rackwright.errors import RackwrightError
from rackwright.ssh.side_by_side import side_by_side
from rackwright.status import Status

READING_SECONDS = 120
"""From the begin of one reading to the next; the probe of a node takes up to 40 s."""
PAUSE_SECONDS = 30
"""After a round without a figure."""
GIVE_UP_AFTER = 5
"""Rounds in a row without a figure."""
DRIFT_PERCENT = 5.0
"""The handbook's bound of node against fleet; a fabric that loses as much in hours has heat or link problems."""
GEMM_PERCENT = 7.0
"""As alone.STRAGGLER_PERCENT, here of a GPU against its own first round."""
_FIGURE = re.compile(r"\d+(?:\.\d+)?(?= (?:GB/s|TFLOPS|B|%))|\d+\.\d+")


class Clock(Protocol):
    """The part of the module time that a soak needs."""

    def monotonic(self) -> float: ...
    def time(self) -> float: ...
    def sleep(self, seconds: float, /) -> None: ...


@dataclass(frozen=True)
class Sample:
    """One round."""

    at: str
    """UTC."""
    busbw_gbs: float | None
    problem: str | None = None
    gemm_tflops: float | None = None
    """The slowest GPU's."""


@dataclass(frozen=True)
class Soak:
    """The results of a soak."""

    hours_asked: float
    hours: float
    samples: tuple[Sample, ...]
    readings: tuple[Reading, ...]
    ended: str = ""
    """Why it ended early; empty: it ran to its end."""
    drift_percent: float | None = None
    """The median of the last quarter of the rounds against that of the first; None with fewer than eight."""


@dataclass
class Load:
    """What a soak runs and reads."""

    all_reduce: Callable[[], Measurement]
    gemm: Callable[[], tuple[tuple[GpuFigure, ...], list[Finding]]] | None
    """None: no GPUs, or they do not run it."""
    read: Callable[[], Reading]
    floor: Floor | None
    keep: Callable[[Soak], None] = lambda soak: None
    """Called after every reading."""


class Soaking:
    """One soak of one group."""

    def __init__(self, load: Load, hours: float, clock: Clock) -> None:
        self._load = load
        self._hours = hours
        self._clock = clock
        self._begun = clock.monotonic()
        self._samples: list[Sample] = []
        self._readings: list[Reading] = []
        self._findings: list[Finding] = []
        self._first_gemm: dict[tuple[str, int], float] = {}
        self.last: Measurement | None = None
        """The last all-reduce with a table."""

    def run(self) -> tuple[Soak, tuple[Finding, ...]]:
        """Run rounds until the time is over; Ctrl-C or a workload manager that stops answering end it early."""
        ended = ""
        try:
            self._readings.append(
                self._load.read()
            )  # a check that already fails is not an effect of the load
            ended = self._rounds()
        except KeyboardInterrupt:
            ended = "interrupted"
        except RackwrightError as error:
            ended = error.message
        soak = self._so_far(ended)
        return soak, (*self._findings, *judge_soak(soak, self._load.floor), *judge_readings(soak.readings))

    def _rounds(self) -> str:
        next_reading, missed = self._clock.monotonic(), 0
        with side_by_side(1) as executor:
            while self._clock.monotonic() - self._begun < self._hours * 3600:
                reading: Future[Reading] | None = None
                if self._clock.monotonic() >= next_reading:
                    next_reading = self._clock.monotonic() + READING_SECONDS
                    reading = executor.submit(self._load.read)
                sample = self._round()
                self._samples.append(sample)
                if reading is not None:
                    self._readings.append(reading.result())
                    self._load.keep(self._so_far("still running"))
                missed = missed + 1 if sample.busbw_gbs is None else 0
                if missed >= GIVE_UP_AFTER:
                    return f"{missed} rounds in a row gave no figure: {sample.problem}"
                if missed:
                    self._clock.sleep(PAUSE_SECONDS)
        return ""

    def _round(self) -> Sample:
        at = datetime.fromtimestamp(self._clock.time(), UTC).isoformat(timespec="seconds")
        measured = self._load.all_reduce()
        problem = trouble_of(measured)
        row = measured.table.largest if measured.table is not None else None
        if row is not None:
            self.last = measured
        self._name(at, [found for found in measured.findings if found.status is Status.FAIL], "all_reduce: ")
        busbw = row.busbw_gbs if row is not None and problem is None else None
        if busbw is not None:
            under = judge_floor(row, self._load.floor)
            self._name(
                at, [under] if under is not None and under.status is Status.FAIL else [], "all_reduce: "
            )
        sample = Sample(at, busbw, problem)
        if self._load.gemm is None:
            return sample
        figures, against = self._load.gemm()
        self._name(at, against, "")
        self._name(at, self._fallen(figures), "")
        slowest = min((figure.tflops for figure in figures), default=None)
        return replace(sample, gemm_tflops=slowest)

    def _fallen(self, figures: tuple[GpuFigure, ...]) -> list[Finding]:
        fallen = []
        for one in figures:
            first = self._first_gemm.setdefault((one.node, one.gpu), one.tflops)
            if one.tflops < first * (1 - GEMM_PERCENT / 100):
                why = f"gemm: GPU {one.gpu} of {one.node} fell from {first:.1f} to {one.tflops:.1f} TFLOPS"
                fallen.append(Finding(Status.FAIL, why))
        return fallen

    def _name(self, at: str, findings: list[Finding], prefix: str) -> None:
        """With the time; each kind of failure of a node or GPU once, when it is first seen."""
        seen = {_subject(found.text) for found in self._findings}
        for found in findings:
            if found.status is not Status.OUT_OF_SCOPE and _subject(prefix + found.text) not in seen:
                text = f"{prefix}{found.text} (first seen at {at})"
                self._findings.append(Finding(found.status, text))
                seen.add(_subject(text))

    def _so_far(self, ended: str) -> Soak:
        hours = (self._clock.monotonic() - self._begun) / 3600
        samples = tuple(self._samples)
        return Soak(self._hours, round(hours, 4), samples, tuple(self._readings), ended, drift_of(samples))


def _subject(text: str) -> str:
    """A finding without its figures: the same GPU slightly slower is the same finding."""
    return _FIGURE.sub("", text.split(" (first seen")[0])


def drift_of(samples: tuple[Sample, ...]) -> float | None:
    """How much the last quarter of the rounds is above the first, in percent."""
    known = [sample.busbw_gbs for sample in samples if sample.busbw_gbs is not None]
    quarter = len(known) // 4
    if quarter < 2 or not median(known[:quarter]):
        return None
    return round(100 * (median(known[-quarter:]) / median(known[:quarter]) - 1), 2)


def judge_soak(soak: Soak, floor: Floor | None) -> list[Finding]:
    """Against the rounds as a whole."""
    findings = []
    known = [sample.busbw_gbs for sample in soak.samples if sample.busbw_gbs is not None]
    if soak.ended:
        why = f"the soak ended after {soak.hours:.2f} of {soak.hours_asked:g} hours: {soak.ended}"
        findings.append(Finding(Status.UNKNOWN, why))
    if not known:
        findings.append(Finding(Status.UNKNOWN, "no round of the soak gave a figure"))
    elif len(known) < len(soak.samples):
        lost = next(sample for sample in soak.samples if sample.busbw_gbs is None)
        missed = len(soak.samples) - len(known)
        why = f"{missed} of {len(soak.samples)} rounds gave no figure, the first at {lost.at}: {lost.problem}"
        findings.append(Finding(Status.UNKNOWN, why))
    if known and floor is None:
        findings.append(Finding(Status.UNKNOWN, "no floor is declared for this many nodes"))
    if soak.drift_percent is not None and soak.drift_percent < -DRIFT_PERCENT:
        why = f"the bandwidth drifted by {soak.drift_percent:g} % from the first quarter of the soak to the last"
        findings.append(Finding(Status.WARN, f"{why} (most -{DRIFT_PERCENT:g} %)"))
    return findings
