"""Queries Prometheus for the data of dashboards and determines the state of each panel."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from itertools import islice

from rackwright.dashboards.model import RATE_WINDOW, SPAN, Dashboard, Panel, Variable, filled, pattern, quoted
from rackwright.dashboards.sources import Source, comes_with, for_cluster, left_out, sources_of
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.prometheus.query import Query, Result, Series, collectors

Ask = Callable[[Sequence[Query]], Sequence[Result]]
PAGES = 12
"""Most pages of a dashboard about one node or job, if no node or job is chosen."""
POINTS = 240
"""Of a series, about."""
_STEPS = (15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400)
_SPAN = re.compile(r"([1-9][0-9]{0,4})(m|h|d|w)")
_SPAN_SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 604800}


class State(StrEnum):
    """Whether a panel has something to show."""

    DATA = "data"
    NOTHING = "nothing"
    """An empty result is a valid answer here: no node is drained."""
    NO_DATA = "no data"
    ERROR = "error"


@dataclass(frozen=True)
class Drawn:
    """A panel and what Prometheus has for it."""

    panel: Panel
    state: State
    reason: str
    """The text in place of missing data, or next to partial data."""
    series: tuple[tuple[Series, ...], ...] = ()
    """Of each expression."""


@dataclass(frozen=True)
class Page:
    """A dashboard, of one node or job where it is about one, with its data."""

    dashboard: Dashboard
    value: str | None
    """Of the dashboard's subject; None where it has none, or no value of it was found."""
    span_seconds: int
    step_seconds: int
    rows: tuple[tuple[str, tuple[Drawn, ...]], ...]
    left_out: Mapping[str, str]
    others: int = 0
    """Values of the subject without a page."""

    @property
    def name(self) -> str:
        """Of its file, without `.html`; the value of a label may hold anything."""
        if self.value is None:
            return self.dashboard.name
        plain = re.sub(r"[^A-Za-z0-9_.-]", "_", self.value)[:60]
        if plain != self.value:
            plain = f"{plain}-{sha256(self.value.encode()).hexdigest()[:8]}"
        return f"{self.dashboard.name}-{plain}"

    @property
    def drawn(self) -> tuple[Drawn, ...]:
        """All panels, in order."""
        return tuple(drawn for _, row in self.rows for drawn in row)

    @property
    def end(self) -> float | None:
        """The newest point of all panels, seconds since 1970."""
        times = (
            one.points[-1][0] for drawn in self.drawn for found in drawn.series for one in found if one.points
        )
        return max(times, default=None)

    def count(self, state: State) -> int:
        """Panels in a state."""
        return sum(drawn.state is state for drawn in self.drawn)


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Key by which gpu9 comes before gpu10."""
    return tuple(
        (0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", text) if part
    )


def span_of(text: str) -> int:
    """`90m`, `6h`, `7d` in seconds; RackwrightError for anything else."""
    found = _SPAN.fullmatch(text)
    if found is None:
        raise RackwrightError(f"{text!r} is not a span of time.", hint="90m, 6h, 7d or 4w")
    return int(found[1]) * _SPAN_SECONDS[found[2]]


def step_of(span_seconds: int) -> int:
    """Seconds between two points."""
    return next((step for step in _STEPS if span_seconds / step <= POINTS), _STEPS[-1])


def collect(
    cluster: Cluster,
    dashboards: Iterable[Dashboard],
    ask: Ask,
    *,
    since: str | None = None,
    chosen: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Page, ...]:
    """The pages of these dashboards. `chosen`: values of variables; `since`: None: each dashboard's own span."""
    plans = [_Plan(cluster, one, span_of(since or one.since), chosen or {}) for one in dashboards]
    alive = _alive(plans, ask)
    _find_subjects(plans, ask)
    asked = [(plan, value) for plan in plans for value in plan.values]
    results = iter(ask([query for plan, value in asked for query in plan.queries(value)]))
    pages = {(plan, value): plan.page(value, results, alive) for plan, value in asked}
    return tuple(
        pages[plan, value] if plan.values else plan.without()
        for plan in plans
        for value in plan.values or [None]
    )


class _Plan:
    """A dashboard on its way to pages."""

    def __init__(
        self, cluster: Cluster, dashboard: Dashboard, span: int, chosen: Mapping[str, Sequence[str]]
    ) -> None:
        self.cluster, self.dashboard, self.span, self.chosen = cluster, dashboard, span, chosen
        self.interval = collectors(cluster)[0].interval_seconds
        self.step = max(step_of(span), self.interval)
        self.fitting = for_cluster(dashboard, cluster)
        self.values: list[str | None] = [None]
        self.others = 0
        if dashboard.subject is not None:
            self.values = list(chosen.get(dashboard.subject.name, ()))

    @property
    def seeks(self) -> Variable | None:
        """The subject, if none of its values is chosen and there is something to show."""
        return self.dashboard.subject if not self.values and self.fitting.rows else None

    def _node(self, value: str | None) -> Node | None:
        """The node that a page is about."""
        subject = self.dashboard.subject
        return (
            self.cluster.by_name.get(value or "") if subject is not None and subject.label == "node" else None
        )

    def _dashboard(self, value: str | None) -> Dashboard:
        node = self._node(value)
        return self.fitting if node is None else for_cluster(self.dashboard, self.cluster, node)

    def queries(self, value: str | None) -> list[Query]:
        """Of all panels of a page, in order."""
        given = self._placeholders(value)
        return [
            Query(
                filled(one.text, given), float(self.span) if panel.kind.over_time else None, float(self.step)
            )
            for panel in self._dashboard(value).panels
            for one in panel.expressions
        ]

    def _placeholders(self, value: str | None) -> dict[str, str]:
        window = max(4 * self.interval, self.step + self.interval)  # as Grafana reckons $__rate_interval
        values = {RATE_WINDOW: f"{window}s", SPAN: f"{self.span}s"}
        for variable in self.dashboard.variables:
            if variable.several:
                given = self.chosen.get(variable.name)
                values[variable.name] = ".*" if given is None else pattern(given)
            else:
                values[variable.name] = quoted(value or "")
        return values

    def page(self, value: str | None, results: Iterator[Result], alive: Mapping[Source, bool]) -> Page:
        """With the results of its queries, the next ones."""
        rows = tuple(
            (
                row.title,
                tuple(
                    _drawn(panel, list(islice(results, len(panel.expressions))), alive)
                    for panel in row.panels
                ),
            )
            for row in self._dashboard(value).rows
        )
        left = left_out(self.dashboard, self.cluster, self._node(value))
        return Page(self.dashboard, value, self.span, self.step, rows, left, self.others)

    def without(self) -> Page:
        """The page without a node or job to show."""
        return Page(self.dashboard, None, self.span, self.step, (), left_out(self.dashboard, self.cluster))


def _find_subjects(plans: Sequence[_Plan], ask: Ask) -> None:
    """Values of subjects that had series in the span, in natural order."""
    wanted = [(plan, variable) for plan in plans if (variable := plan.seeks) is not None]
    results = ask(
        [
            Query(f"group by ({variable.label}) (last_over_time({variable.selector}[{plan.span}s]))")
            for plan, variable in wanted
        ]
    )
    for (plan, variable), result in zip(wanted, results, strict=True):
        if result.error is not None:
            raise RackwrightError(f"Prometheus did not list the {variable.title.lower()}s: {result.error}.")
        found = sorted({one.labels.get(variable.label, "") for one in result.series} - {""}, key=natural)
        plan.values = list(found[:PAGES])
        plan.others = len(found) - len(plan.values)


def _alive(plans: Sequence[_Plan], ask: Ask) -> dict[Source, bool]:
    """Whether each source of the dashboards has any series, so that an empty result means something."""
    sources = dict.fromkeys(
        source
        for plan in plans
        for panel in plan.fitting.panels
        for one in panel.expressions
        for source in sources_of(one.text)
    )
    asked = {source: text for source in sources if (text := _sign_of_life(source)) is not None}
    results = ask([Query(text) for text in asked.values()])
    found = {source: bool(result.series) for source, result in zip(asked, results, strict=True)}
    return {source: found.get(source, True) for source in sources}


def _sign_of_life(source: Source) -> str | None:
    if source.comes_with is not None:
        return f'count({{__name__=~"{source.names}.+"}})'
    if not source.jobs:
        return None
    return " and on () ".join(f'max(up{{job="{job}"}}) > 0' for job in source.jobs)


def _drawn(panel: Panel, results: Sequence[Result], alive: Mapping[Source, bool]) -> Drawn:
    series = tuple(result.series for result in results)
    errors = [result.error for result in results if result.error is not None]
    if any(_has_number(one) for found in series for one in found):
        return Drawn(panel, State.DATA, errors[0] if errors else "", series)
    if errors:
        return Drawn(panel, State.ERROR, errors[0])
    silent = [source for one in panel.expressions for source in sources_of(one.text) if not alive[source]]
    if silent:
        return Drawn(panel, State.NO_DATA, _silence(silent[0]))
    if panel.empty is not None:
        return Drawn(panel, State.NOTHING, panel.empty)
    made_by = comes_with(panel)
    return Drawn(
        panel, State.NO_DATA, "No data." if made_by is None else f"No data: it comes with {made_by}."
    )


def _silence(source: Source) -> str:
    if source.comes_with is not None:
        return f"No data: it comes with {source.comes_with}."
    return f"No data: nothing of the job {' or '.join(source.jobs)} answers."


def _has_number(series: Series) -> bool:
    return any(not math.isnan(value) for _, value in series.points)
