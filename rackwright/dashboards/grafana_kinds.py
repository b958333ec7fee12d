"""The kinds of panels, as Grafana's own panels of them."""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_uppercase

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    stat,
    statetimeline,
    statushistory,
    timeseries,
)
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import table as table_panel
from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models import dashboard as model

from rackwright.dashboards.model import Kind, Panel

Builder = (
    timeseries.Panel
    | stat.Panel
    | bargauge.Panel
    | table_panel.Panel
    | statushistory.Panel
    | statetimeline.Panel
)


def _time(panel: Panel) -> Builder:
    made = (
        timeseries.Panel()
        .draw_style(options.GraphDrawStyle.LINE)
        .line_width(1)
        .fill_opacity(40 if panel.stacked else 8)
        .show_points(options.VisibilityMode.NEVER)
        .span_nulls(False)
        .color_scheme(build.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
        .legend(
            common.VizLegendOptions()
            .display_mode(options.LegendDisplayMode.LIST)
            .placement(options.LegendPlacement.BOTTOM)
            .show_legend(True)
        )
        .tooltip(
            common.VizTooltipOptions()
            .mode(options.TooltipDisplayMode.MULTI)
            .sort(options.SortOrder.DESCENDING)
        )
    )
    if panel.stacked:
        made = made.stacking(common.StackingConfig().mode(options.StackingMode.NORMAL).group("A"))
    if panel.thresholds is not None:
        style = options.GraphThresholdsStyleMode.DASHED
        made = made.thresholds_style(common.GraphThresholdsStyleConfig().mode(style))
    return made


def _newest() -> common.ReduceDataOptions:
    return common.ReduceDataOptions().calcs(["lastNotNull"]).values(False).fields("")


def _stat(panel: Panel) -> Builder:
    several = len(panel.expressions) > 1
    coloured = panel.thresholds is not None or bool(panel.states) or bool(panel.colours)
    return (
        stat.Panel()
        .reduce_options(_newest())
        .graph_mode(options.BigValueGraphMode.NONE)
        .color_mode(options.BigValueColorMode.VALUE if coloured else options.BigValueColorMode.NONE)
        .text_mode(options.BigValueTextMode.VALUE_AND_NAME if several else options.BigValueTextMode.VALUE)
    )


def _bars(panel: Panel) -> Builder:
    made = (
        bargauge.Panel()
        .reduce_options(_newest())
        .orientation(options.VizOrientation.HORIZONTAL)
        .display_mode(options.BarGaugeDisplayMode.BASIC)
        .show_unfilled(True)
    )
    if panel.thresholds is None:
        made = made.color_scheme(build.FieldColor().mode(model.FieldColorModeId.CONTINUOUS_BLUES))
    return made


def _table(panel: Panel) -> Builder:
    """One row for each set of labels, with the values of all expressions."""
    titles = [one.legend for one in panel.expressions]
    letters = ascii_uppercase[: len(titles)]
    values = [f"Value #{letter}" for letter in letters]
    renamed = {**dict(zip(values, titles, strict=True)), "Value": titles[0]}
    order = [*panel.columns, *values]
    made = (
        table_panel.Panel()
        .frame_index(0)
        .show_header(True)
        .align(options.FieldTextAlignment.AUTO)
        .inspect(False)
        .with_transformation(model.DataTransformerConfig("merge", options={}))
        .with_transformation(
            model.DataTransformerConfig(
                "filterFieldsByName", options={"include": {"names": [*order, "Value"]}}
            )
        )
        .with_transformation(
            model.DataTransformerConfig(
                "organize",
                options={
                    "indexByName": {name: index for index, name in enumerate(order)},
                    "renameByName": renamed,
                },
            )
        )
    )
    for one in panel.expressions:
        properties = [model.DynamicConfigValue("unit", (one.unit or panel.unit).value)]
        if panel.thresholds is not None and one is panel.expressions[0]:
            properties.append(model.DynamicConfigValue("custom.cellOptions", {"type": "color-text"}))
        made = made.override_by_name(one.legend, properties)
    return made


def _racks(panel: Panel) -> Builder:
    """A panel for each rack with a tile for each of its nodes."""
    made = (
        stat.Panel()
        .reduce_options(_newest())
        .repeat(panel.by)
        .repeat_direction("h")
        .graph_mode(options.BigValueGraphMode.NONE)
        .color_mode(options.BigValueColorMode.BACKGROUND_SOLID)
        .text_mode(options.BigValueTextMode.VALUE_AND_NAME)
    )
    return made if panel.thresholds is not None or panel.states else made.color_scheme(_scale())


def _heat(panel: Panel) -> Builder:
    return (
        statushistory.Panel()
        .show_value(options.VisibilityMode.NEVER)
        .max_data_points(100)
        .row_height(0.95)
        .col_width(1)
        .color_scheme(_scale())
    )


def _timeline(panel: Panel) -> Builder:
    return statetimeline.Panel().show_value(options.VisibilityMode.NEVER).merge_values(True)


def _scale() -> build.FieldColor:
    return build.FieldColor().mode(model.FieldColorModeId.CONTINUOUS_BL_YL_RD)


KINDS: dict[Kind, Callable[[Panel], Builder]] = {
    Kind.TIME: _time,
    Kind.STAT: _stat,
    Kind.BARS: _bars,
    Kind.TABLE: _table,
    Kind.RACKS: _racks,
    Kind.HEAT: _heat,
    Kind.STATES: _timeline,
}
