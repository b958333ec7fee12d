"""Dashboards as Grafana reads them, built with grafana-foundation-sdk.

Grafana's own placeholders, ids of transformations and of field options as in its documentation, "Transform data" and
"Field overrides" (read 2026-11-27); everything else is typed by the SDK.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from string import ascii_uppercase

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import prometheus
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from rackwright.dashboards.grafana_kinds import KINDS, Builder
from rackwright.dashboards.model import Dashboard, Expression, Kind, Panel, Row, Variable

PROMETHEUS = "rackwright-prometheus"
"""uid of the data source that the role provisions."""
TAG = "rackwright"
COLUMNS = 24
_NO_DATA = "No data"
_ALL = ".*"


def text(dashboard: Dashboard, datasource: str = PROMETHEUS) -> str:
    """The file that Grafana's provisioning reads; the same dashboard makes the same text."""
    return json.dumps(document(dashboard, datasource), cls=JSONEncoder, indent=1, sort_keys=True) + "\n"


def document(dashboard: Dashboard, datasource: str = PROMETHEUS) -> model.Dashboard:
    """The dashboard in Grafana's types."""
    source = model.DataSourceRef(type_val="prometheus", uid=datasource)
    made = (
        build.Dashboard(dashboard.title)
        .uid(dashboard.uid)
        .description(dashboard.about)
        .tags([TAG])
        .readonly()
        .timezone("browser")
        .refresh("30s")
        .time(f"now-{dashboard.since}", "now")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .link(
            build.DashboardLink("Dashboards")
            .type(model.DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .as_dropdown(True)
            .keep_time(True)
        )
    )
    for variable in dashboard.variables:
        made = made.with_variable(_variable(variable, source))
    number = 0
    y = 0
    for row in dashboard.rows:
        number += 1
        made = made.with_row(
            build.Row(row.title).id(number).grid_pos(model.GridPos(h=1, w=COLUMNS, x=0, y=y))
        )
        for panel, place in _placed(row, y + 1):
            number += 1
            made = made.with_panel(_panel(panel, source).id(number).grid_pos(place))
            y = max(y, place.y + place.h)
    return made.build()


def _placed(row: Row, y: int) -> Iterator[tuple[Panel, model.GridPos]]:
    """Panels from left to right, and then in the next line."""
    x = height = 0
    for panel in row.panels:
        width = COLUMNS if panel.kind is Kind.RACKS else panel.width
        if x + width > COLUMNS:
            x, y, height = 0, y + height, 0
        yield panel, model.GridPos(h=panel.height, w=width, x=x, y=y)
        x, height = x + width, max(height, panel.height)


def _variable(variable: Variable, source: model.DataSourceRef) -> build.QueryVariable:
    made = (
        build.QueryVariable(variable.name)
        .label(variable.title)
        .datasource(source)
        .query(f"label_values({variable.selector}, {variable.label})")
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_CASE_INSENSITIVE_ASC)
        .multi(variable.several)
        .include_all(variable.several)
    )
    if not variable.several:
        return made
    chosen = model.VariableOption(text="All", value="$__all", selected=True)
    return made.all_value(_ALL).current(chosen)


def _panel(panel: Panel, source: model.DataSourceRef) -> Builder:
    made = KINDS[panel.kind](panel)
    made = made.title(_title(panel)).description(panel.description).datasource(source)
    made = made.unit(panel.unit.value).no_value(panel.empty or _NO_DATA)
    for letter, expression in zip(ascii_uppercase, panel.expressions, strict=False):
        made = made.with_target(_target(panel, expression, letter))
    if panel.low is not None:
        made = made.min(panel.low)
    if panel.high is not None:
        made = made.max(panel.high)
    if panel.decimals is not None:
        made = made.decimals(panel.decimals)
    if panel.states:
        made = made.mappings([_states(panel)])
    if panel.thresholds is not None:
        steps = [model.Threshold(None, panel.thresholds.base)]
        steps += [model.Threshold(value, colour) for value, colour in panel.thresholds.steps]
        made = made.thresholds(build.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps))
    for name, colour in panel.colours.items():
        made = made.override_by_name(
            name, [model.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": str(colour)})]
        )
    return _linked(made, panel)


def _title(panel: Panel) -> str:
    return f"{panel.title}: ${panel.by}" if panel.kind is Kind.RACKS else panel.title


def _target(panel: Panel, expression: Expression, letter: str) -> prometheus.Dataquery:
    wanted = expression.text
    if panel.kind is Kind.RACKS:
        wanted = f'({wanted}) and on (node) rackwright_declared_cpus{{{panel.by}="${panel.by}"}}'
    made = prometheus.Dataquery().ref_id(letter).expr(wanted).legend_format(expression.legend)
    made = made.range() if panel.kind.over_time else made.instant()
    return made.format(PromQueryFormat.TABLE if panel.kind is Kind.TABLE else PromQueryFormat.TIME_SERIES)


def _states(panel: Panel) -> model.ValueMap:
    return model.ValueMap(
        {
            f"{value:g}": model.ValueMappingResult(text=name, color=str(colour), index=index)
            for index, (value, (name, colour)) in enumerate(sorted(panel.states.items()))
        }
    )


def _linked(made: Builder, panel: Panel) -> Builder:
    for label in panel.leads_to:
        if panel.kind is Kind.TABLE:
            link = {"title": f"Open the {label}", "url": _address(label, "${__value.text}")}
            made = made.override_by_name(label, [model.DynamicConfigValue("links", [link])])
        else:
            made = made.data_links(
                [
                    build.DashboardLink(f"Open the {label}")
                    .type(model.DashboardLinkType.LINK)
                    .url(_address(label, f"${{__field.labels.{label}}}"))
                ]
            )
    return made


def _address(label: str, value: str) -> str:
    return f"/d/rackwright-{label}?var-{label}={value}&${{__url_time_range}}"
