"""A dashboard as data: rows of panels, each with its expressions, its unit and what to look for.

Two backends render it without adding text: rackwright.dashboards.grafana and rackwright.dashboards.page.
Expressions are PromQL with Grafana's placeholders: `$node` is the value of the dashboard's variable `node`,
`$__rate_interval` a window that is wide enough for rate(), and `$__range` the span that is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum

RATE_WINDOW, SPAN = "__rate_interval", "__range"
"""Placeholders that every dashboard has."""
_PLACEHOLDER = re.compile(r"\$(\w+)")


class Kind(StrEnum):
    """How a panel is drawn."""

    TIME = "time series"
    STAT = "number"
    BARS = "bars"
    TABLE = "table"
    RACKS = "rack map"
    """A cell for each node, by rack and position or by leaf: of expressions with one series for each node."""
    HEAT = "heat map"
    """A row for each series and a column for each time, the value as colour."""
    STATES = "timeline"
    """A row for each series, the value as a named state."""

    @property
    def over_time(self) -> bool:
        """Whether it shows a span, not only what is now."""
        return self in (Kind.TIME, Kind.HEAT, Kind.STATES)


class Unit(Enum):
    """The unit of a number; the value is Grafana's name for it."""

    NUMBER = "short"
    RATIO = "percentunit"
    """0 to 1, shown as per cent."""
    PERCENT = "percent"
    """0 to 100."""
    BYTES = "bytes"
    BYTES_PER_SECOND = "Bps"
    GIGABYTES_PER_SECOND = "GBs"
    WATTS = "watt"
    KILOWATT_HOURS = "kwatth"
    GRAMS = "massg"
    CELSIUS = "celsius"
    SECONDS = "s"
    PER_SECOND = "cps"
    MEGAHERTZ = "rotmhz"
    ROTATIONS_PER_MINUTE = "rotrpm"
    STATE = "none"
    """Not a quantity: `Panel.states` names the values."""


class Colour(StrEnum):
    """Colours with a meaning, the same in every dashboard and both backends."""

    GOOD = "#2f9e62"
    NOTICE = "#d9a21b"
    WARN = "#e2711d"
    BAD = "#d13438"
    BUSY = "#3574c4"
    PARTLY = "#2a9d9d"
    GONE = "#7a1f3d"
    OFF = "#8a8f98"
    PLANNED = "#8b62c9"


@dataclass(frozen=True)
class Expression:
    """A PromQL expression and the name of each of its series."""

    text: str
    legend: str
    """With labels in braces: `{{node}} GPU {{gpu}}`; in a table the title of its column."""
    unit: Unit | None = None
    """In a table, where it is not the panel's."""


@dataclass(frozen=True)
class Thresholds:
    """Colours of values: `base` below the first step."""

    steps: tuple[tuple[float, Colour], ...]
    base: Colour = Colour.GOOD

    def colour(self, value: float) -> Colour:
        """The colour of a value."""
        return next((colour for least, colour in reversed(self.steps) if value >= least), self.base)


@dataclass(frozen=True)
class Panel:
    """One chart, number or table."""

    title: str
    kind: Kind
    unit: Unit
    description: str
    """What it shows, and what to look for."""
    expressions: tuple[Expression, ...]
    width: int = 12
    """Of 24 columns."""
    height: int = 8
    """In Grafana's units of 30 pixels."""
    thresholds: Thresholds | None = None
    stacked: bool = False
    low: float | None = None
    high: float | None = None
    """Ends of the axis, or of the scale of colours."""
    decimals: int | None = None
    states: Mapping[float, tuple[str, Colour]] = field(default_factory=dict)
    """Name and colour of values."""
    colours: Mapping[str, Colour] = field(default_factory=dict)
    """Of series, by their legend."""
    columns: tuple[str, ...] = ()
    """Of a table: labels in front of its values."""
    leads_to: tuple[str, ...] = ()
    """Labels whose value is a link to the dashboard of that name: `node`, `job`."""
    by: str = "rack"
    """Of a rack map: the label that makes its columns."""
    empty: str | None = None
    """What an empty result means, e.g. `No node is drained.`; None: something is wrong."""

    @property
    def name(self) -> str:
        """Its title as part of an address."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class Row:
    """Panels that answer one question."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Variable:
    """What a dashboard is shown for: values of a label."""

    name: str
    title: str
    selector: str
    """Series that have the label."""
    label: str
    several: bool = False
    """Whether several values, or all, can be chosen: used with `=~`, else with `=`."""


@dataclass(frozen=True)
class Dashboard:
    """A page of panels."""

    name: str
    title: str
    about: str
    """Which questions it answers, and for whom."""
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...] = ()
    since: str = "1h"
    """The span that is shown first."""
    for_users: bool = False
    """Whether it is for the cluster's users, too; the others are for its staff."""

    @property
    def uid(self) -> str:
        """Grafana's name of it in addresses."""
        return f"rackwright-{self.name}"

    @property
    def panels(self) -> Iterator[Panel]:
        """All panels, in order."""
        return (panel for row in self.rows for panel in row.panels)

    @property
    def subject(self) -> Variable | None:
        """The variable with a single value: what the dashboard is about, e.g. the node."""
        return next((one for one in self.variables if not one.several), None)


def placeholders(text: str) -> frozenset[str]:
    """Names of the placeholders of an expression."""
    return frozenset(_PLACEHOLDER.findall(text))


def filled(text: str, values: Mapping[str, str]) -> str:
    """The expression with the values of its placeholders; KeyError for one without a value."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], text)


def quoted(value: str) -> str:
    """A value as it stands between the double quotes of PromQL."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def pattern(values: Iterable[str]) -> str:
    """A regular expression that matches these values alone, between the double quotes of PromQL."""
    return quoted("|".join(re.escape(value) for value in values))
