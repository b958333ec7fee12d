"""What holds for every dashboard: its expressions, legends, units and words."""

from __future__ import annotations

import re

import promql_parser
import pytest

from rackwright.dashboards.catalogue import BY_NAME, DASHBOARDS
from rackwright.dashboards.model import RATE_WINDOW, SPAN, Kind, Unit, filled, placeholders
from rackwright.dashboards.sources import SOURCES, metrics_of, sources_of
from tests.unit.dashboards.known_metrics import known_metrics, selected

WANTED = [
    "overview",
    "racks",
    "node",
    "gpu",
    "job",
    "fabric",
    "storage",
    "queue",
    "waste",
    "health",
    "burnin",
    "power",
]  # what issue 17 asks for
PANELS = [(dashboard, panel) for dashboard in DASHBOARDS for panel in dashboard.panels]
IDS = [f"{dashboard.name}-{panel.name}" for dashboard, panel in PANELS]
EXPRESSIONS = [
    pytest.param(dashboard, panel, one, id=f"{dashboard.name}-{panel.name}-{number}")
    for dashboard, panel in PANELS
    for number, one in enumerate(panel.expressions)
]


def parsed(text):
    values = dict.fromkeys(placeholders(text), "x") | {RATE_WINDOW: "120s", SPAN: "3600s"}
    return promql_parser.parse(filled(text, values))


def test_every_dashboard_is_there():
    assert [dashboard.name for dashboard in DASHBOARDS] == WANTED
    assert list(BY_NAME) == WANTED


def test_users_see_jobs_alone():
    assert [one.name for one in DASHBOARDS if one.for_users] == ["job"]


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda one: one.name)
def test_a_dashboard_is_whole(dashboard):
    titles = [panel.title for panel in dashboard.panels]
    assert all(row.panels for row in dashboard.rows)
    assert len(set(titles)) == len(titles), "two panels with one title have one address"
    assert dashboard.about.endswith(".")
    assert sum(not variable.several for variable in dashboard.variables) <= 1


@pytest.mark.parametrize(("dashboard", "panel"), PANELS, ids=IDS)
def test_a_panel_says_what_it_shows(dashboard, panel):
    assert re.fullmatch(r"[A-Z`].{29,}[.]", panel.description, re.DOTALL), "what to look for, in sentences"
    assert "  " not in panel.description
    assert panel.title == panel.title.strip()
    assert panel.expressions
    assert panel.empty is None or panel.empty.endswith(".")
    assert isinstance(panel.unit, Unit)
    assert (panel.unit is Unit.STATE) == bool(panel.states), (
        "named states, and no other quantity, have no unit"
    )
    assert 1 <= panel.width <= 24


@pytest.mark.parametrize(("dashboard", "panel"), PANELS, ids=IDS)
def test_a_panel_leads_to_dashboards(dashboard, panel):
    for label in panel.leads_to:
        assert BY_NAME[label].subject.label == label
        named = panel.kind is Kind.RACKS or label in panel.columns
        assert named or any(f"{{{{{label}}}}}" in one.legend for one in panel.expressions)


@pytest.mark.parametrize(("dashboard", "panel", "one"), EXPRESSIONS)
def test_an_expression_is_promql(dashboard, panel, one):
    parsed(one.text)
    known = {RATE_WINDOW, SPAN, *(variable.name for variable in dashboard.variables)}
    assert placeholders(one.text) <= known


@pytest.mark.parametrize(("dashboard", "panel", "one"), EXPRESSIONS)
def test_a_variable_is_used_as_it_is_chosen(dashboard, panel, one):
    """Several values need a regular expression; one value must not be read as one."""
    for variable in dashboard.variables:
        operator = "=~" if variable.several else "="
        for found in re.findall(rf'(\S\S)"\${variable.name}"', one.text):
            assert found[-len(operator) :] == operator
            assert variable.several or found != "=~"


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda one: one.name)
def test_no_variable_is_idle(dashboard):
    used = {
        name for panel in dashboard.panels for one in panel.expressions for name in placeholders(one.text)
    }
    by = {panel.by for panel in dashboard.panels if panel.kind is Kind.RACKS}
    assert {variable.name for variable in dashboard.variables} <= used | by


@pytest.mark.parametrize(("dashboard", "panel", "one"), EXPRESSIONS)
def test_a_metric_is_one_that_something_serves(dashboard, panel, one):
    names = selected(parsed(one.text))
    assert names
    assert names <= known_metrics(), (
        f"no exporter, recorded or declared, has {sorted(names - known_metrics())}"
    )


@pytest.mark.parametrize(("dashboard", "panel", "one"), EXPRESSIONS)
def test_a_metric_has_a_source(dashboard, panel, one):
    """Else a panel without data could not say why."""
    assert set(metrics_of(one.text)) == selected(parsed(one.text))
    assert sources_of(one.text)


def test_every_source_is_used():
    used = {source for _, panel in PANELS for one in panel.expressions for source in sources_of(one.text)}
    assert set(SOURCES) <= used


@pytest.mark.parametrize(
    "variable", [variable for one in DASHBOARDS for variable in one.variables], ids=lambda one: one.name
)
def test_a_variable_s_series_are_served(variable):
    assert selected(promql_parser.parse(variable.selector)) <= known_metrics()


def test_a_metric_that_nothing_serves_is_seen():
    assert selected(promql_parser.parse('rate(node_invented_total{a="b"}[5m]) or up')) == {
        "node_invented_total",
        "up",
    }
    assert "node_invented_total" not in known_metrics()
