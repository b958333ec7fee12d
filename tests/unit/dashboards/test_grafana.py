"""Dashboards as Grafana reads them: in the SDK's types, and all of what the model says."""

from __future__ import annotations

import json

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as sdk

from rackwright.dashboards.catalogue import BY_NAME, DASHBOARDS
from rackwright.dashboards.grafana import COLUMNS, PROMETHEUS, text
from rackwright.dashboards.model import Kind

TYPES = {
    Kind.TIME: "timeseries",
    Kind.STAT: "stat",
    Kind.BARS: "bargauge",
    Kind.TABLE: "table",
    Kind.RACKS: "stat",
    Kind.HEAT: "status-history",
    Kind.STATES: "state-timeline",
}
EVERY = pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda one: one.name)


def panels(dashboard):
    """Pairs of the model's panels and Grafana's."""
    made = [one for one in json.loads(text(dashboard))["panels"] if one["type"] != "row"]
    return list(zip(dashboard.panels, made, strict=True))


@EVERY
def test_the_sdk_reads_what_it_wrote(dashboard):
    """Parsed into the SDK's types and written again it is the same document: no key is unknown to them."""
    document = json.loads(text(dashboard))
    again = json.loads(json.dumps(sdk.Dashboard.from_json(document), cls=JSONEncoder))
    assert again == document


@EVERY
def test_the_text_is_the_same_each_time(dashboard):
    assert text(dashboard) == text(dashboard)
    assert json.loads(text(dashboard))["uid"] == f"rackwright-{dashboard.name}"
    assert json.loads(text(dashboard))["editable"] is False


@EVERY
def test_every_panel_is_drawn(dashboard):
    for panel, made in panels(dashboard):
        assert made["type"] == TYPES[panel.kind]
        assert made["title"].startswith(panel.title)
        assert made["description"] == panel.description
        assert made["fieldConfig"]["defaults"]["unit"] == panel.unit.value
        assert made["datasource"] == {"type": "prometheus", "uid": PROMETHEUS}
        assert made["fieldConfig"]["defaults"]["noValue"] == (panel.empty or "No data")
        for one, target in zip(panel.expressions, made["targets"], strict=True):
            assert one.text in target["expr"]
            assert target["legendFormat"] == one.legend
            assert target["instant"] is not panel.kind.over_time
            assert target["range"] is panel.kind.over_time


@EVERY
def test_panels_do_not_overlap(dashboard):
    taken = set()
    numbers = set()
    for made in json.loads(text(dashboard))["panels"]:
        place = made["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= COLUMNS
        assert not cells & taken, made["title"]
        assert made["id"] not in numbers
        taken |= cells
        numbers.add(made["id"])


@EVERY
def test_thresholds_and_states(dashboard):
    for panel, made in panels(dashboard):
        defaults = made["fieldConfig"]["defaults"]
        if panel.thresholds is not None:
            steps = defaults["thresholds"]["steps"]
            assert steps[0] == {"value": None, "color": panel.thresholds.base.value}
            assert [(step["value"], step["color"]) for step in steps[1:]] == [
                (value, colour.value) for value, colour in panel.thresholds.steps
            ]
        for value, (name, colour) in panel.states.items():
            (mapping,) = defaults["mappings"]
            assert mapping["options"][f"{value:g}"] == {
                "text": name,
                "color": colour.value,
                "index": sorted(panel.states).index(value),
            }


@EVERY
def test_variables(dashboard):
    made = json.loads(text(dashboard)).get("templating", {}).get("list", [])
    assert [one["name"] for one in made] == [variable.name for variable in dashboard.variables]
    for variable, one in zip(dashboard.variables, made, strict=True):
        assert one["query"] == f"label_values({variable.selector}, {variable.label})"
        assert one["multi"] is variable.several
        assert one["includeAll"] is variable.several
        assert one["datasource"]["uid"] == PROMETHEUS


def test_links_lead_from_a_job_to_its_nodes():
    made = {panel.title: one for panel, one in panels(BY_NAME["job"])}
    (link,) = made["Utilization"]["fieldConfig"]["defaults"]["links"]
    assert link["url"] == "/d/rackwright-node?var-node=${__field.labels.node}&${__url_time_range}"


def test_links_lead_from_a_node_to_its_jobs():
    made = {panel.title: one for panel, one in panels(BY_NAME["node"])}
    overrides = {
        one["matcher"]["options"]: one["properties"]
        for one in made["Jobs on this node"]["fieldConfig"]["overrides"]
    }
    (links,) = overrides["job"]
    assert links["value"][0]["url"] == "/d/rackwright-job?var-job=${__value.text}&${__url_time_range}"


def test_a_table_has_its_columns():
    made = {panel.title: one for panel, one in panels(BY_NAME["waste"])}["Utilization by user and account"]
    merge, keep, order = made["transformations"]
    assert merge["id"] == "merge"
    assert keep["options"]["include"]["names"] == [
        "user",
        "account",
        "Value #A",
        "Value #B",
        "Value #C",
        "Value",
    ]
    assert order["options"]["renameByName"]["Value #B"] == "GPUs held"
    units = {
        one["matcher"]["options"]: one["properties"][0]["value"] for one in made["fieldConfig"]["overrides"]
    }
    assert units == {"utilization": "percentunit", "GPUs held": "short", "idle": "short"}
    assert {target["format"] for target in made["targets"]} == {"table"}


def test_a_rack_map_is_a_panel_for_each_rack():
    made = {panel.title: one for panel, one in panels(BY_NAME["racks"])}["Alerts by leaf"]
    assert made["repeat"] == "leaf"
    assert made["title"] == "Alerts by leaf: $leaf"
    assert made["targets"][0]["expr"].endswith('and on (node) rackwright_declared_cpus{leaf="$leaf"}')


def test_another_data_source():
    document = json.loads(text(BY_NAME["job"], "rackwright-jobs"))
    assert {one["datasource"]["uid"] for one in document["panels"] if one["type"] != "row"} == {
        "rackwright-jobs"
    }
    assert document["templating"]["list"][0]["datasource"]["uid"] == "rackwright-jobs"


def test_the_refresh_is_no_faster_than_scrapes():
    assert all(json.loads(text(one))["refresh"] == "30s" for one in DASHBOARDS)
