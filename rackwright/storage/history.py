"""Compares a bench with earlier ones of the same filesystem, nodes and settings, to find drops beyond noise. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rackwright.burnin.finding import Finding
from rackwright.burnin.history import Point, Series, judge
from rackwright.model.ranges import fold
from rackwright.status import Status
from rackwright.storage.report import FilesystemResult

RUNS = 20
"""Earlier runs that are looked at."""


def series_of(result: FilesystemResult, documents: Sequence[Mapping[str, Any]]) -> tuple[Series, ...]:
    """Each figure of a result with those of earlier runs; `documents` are in the order of time."""
    past: list[tuple[str, dict[str, float]]] = []
    for document in documents:
        for one in _dicts(document.get("filesystems")):
            same = (one.get("name"), one.get("settings"), one.get("nodes"))
            if same == (result.name, result.settings, list(result.nodes)):
                past.append((str(document.get("started")), _stored_figures(one)))
    past = past[-RUNS:]
    found = []
    for key, name, unit, value in _own_figures(result):
        points = tuple(Point(when, figures[key]) for when, figures in past if key in figures)
        found.append(judge(Series(name, unit, value, points)))
    return tuple(found)


def compared(result: FilesystemResult, documents: Sequence[Mapping[str, Any]]) -> FilesystemResult:
    """With a warning for each figure that fell."""
    findings = []
    for one in series_of(result, documents):
        if one.regressed and one.limit is not None:
            change = (
                f"{result.name} on {fold(result.nodes)}: {one.name}: {one.value:.3g} {one.unit}, "
                f"{abs(one.change_percent or 0):g} % below the median of {len(one.earlier)} earlier runs"
            )
            findings.append(Finding(Status.WARN, f"{change}; noise reaches to {one.limit:.3g}"))
    return replace(result, findings=(*result.findings, *findings))


def _own_figures(result: FilesystemResult) -> Iterator[tuple[str, str, str, float]]:
    for figure in result.figures:
        yield figure.key, figure.name, figure.unit, figure.value
    if result.checkpoint is not None and result.checkpoint.save_gbs is not None:
        yield "checkpoint", "saving a checkpoint", "GB/s", result.checkpoint.save_gbs


def _stored_figures(one: Mapping[str, Any]) -> dict[str, float]:
    found = {
        str(figure.get("key")): float(figure["value"])
        for figure in _dicts(one.get("figures"))
        if isinstance(figure.get("value"), int | float) and not isinstance(figure.get("value"), bool)
    }
    saved = one.get("checkpoint")
    value = saved.get("save_gbs") if isinstance(saved, dict) else None
    if isinstance(value, int | float):
        found["checkpoint"] = float(value)
    return found


def _dicts(listed: object) -> list[Mapping[str, Any]]:
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
