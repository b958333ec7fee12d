"""What holds for every alert: its texts, its thresholds, its sources."""

from __future__ import annotations

import re

import pytest

from rackwright.alerts.catalogue import ALERTS, GROUPS, RECORDINGS, mistakes
from rackwright.alerts.gpus import GROUP as GPUS
from rackwright.alerts.overrides import Override
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert
from rackwright.alerts.text import with_thresholds
from rackwright.catalog.table_files import xid_table
from rackwright.catalog.tables import XidAction
from tests.unit.alerts.promtool import name_of

_DATED = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}")
_PLACEHOLDER = re.compile(r"<[a-z_]+>")
_OF_A_NODE = re.compile(
    r"by \(rack\)|by \(leaf\)|by \(job\)|by \(device, fstype|vector\(1\)|slurm_|job:|snmp|rackwright_run_|count\(max"
)
"""Expressions of alerts that are not about one node."""


def test_names_are_there_once():
    names = [name_of(rule) for group in GROUPS for rule in group.rules]
    assert len(names) == len(set(names)) == len(ALERTS) + len(RECORDINGS)
    assert len({group.name for group in GROUPS}) == len(GROUPS)


@pytest.mark.parametrize("alert", ALERTS.values(), ids=name_of)
def test_texts_are_whole(alert):
    assert re.fullmatch(r"([A-Z][a-z0-9]*)+", alert.name)
    assert len(alert.steps) >= 2 or alert.name == "Watchdog"
    for text in (alert.summary, alert.description, alert.means, *alert.steps):
        assert text == prose(text)
        assert text
    assert not alert.summary.endswith(".")
    for text in (alert.description, alert.means, *alert.steps):
        assert text.endswith((".", "?", "`.")), text


@pytest.mark.parametrize("alert", ALERTS.values(), ids=name_of)
def test_thresholds_are_used_and_cited(alert):
    for name, one in alert.thresholds.items():
        assert f"<{name}>" in alert.expr
        assert _DATED.search(one.source), f"{one.source}: read when?"
        assert one.unit
        assert one.about.endswith(".")
    for text in (alert.expr, alert.summary, alert.description):
        assert not _PLACEHOLDER.search(with_thresholds(text, alert))
    assert alert.source is None or _DATED.search(alert.source)


@pytest.mark.parametrize("alert", ALERTS.values(), ids=name_of)
def test_an_alert_about_a_node_names_it(alert):
    if not _OF_A_NODE.search(alert.expr):
        named = alert.summary + alert.description
        assert "$labels.node" in named or "$labels.instance" in named


def test_xids_are_classed_as_the_catalogue_has_them():
    """Each number is in one class at most; those that ask for nothing are in none."""
    classes = {
        alert.name: set(re.findall(r'xid=~"([0-9|]+)"', alert.expr)[0].split("|"))
        for alert in GPUS.rules
        if isinstance(alert, Alert) and "xid=~" in alert.expr
    }
    (known,) = [alert.expr for alert in GPUS.rules if isinstance(alert, Alert) and "xid!~" in alert.expr]
    for row in xid_table().rows:
        expected = set()
        if row.action is XidAction.OBEY_TEXT:
            expected = {"GpuRecoveryActionChanged"}
        elif row.drain:
            expected = {"GpuXidCritical"}
        elif row.action in (XidAction.RESTART_JOB, XidAction.FOLLOW_OTHER):
            expected = {"GpuXidApplication"}
        assert {name for name, codes in classes.items() if str(row.code) in codes} == expected, row.code
        assert re.search(rf"[\"|]{row.code}[\"|]", known)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"NodeDown": Override(hold_seconds=60)}, []),
        ({"FilesystemFull": Override(thresholds={"percent": 3})}, []),
        ({"NodeDwon": Override()}, [("There is no alert NodeDwon.", "did you mean `NodeDown`?")]),
        ({"X": Override()}, [("There is no alert X.", "docs/alerts.md lists them")]),
        (
            {"FilesystemFillingUp": Override(thresholds={"hour": 12, "days": 1})},
            [
                ("The alert FilesystemFillingUp has no threshold hour.", "did you mean `hours`?"),
                ("The alert FilesystemFillingUp has no threshold days.", "known: percent, hours"),
            ],
        ),
        (
            {"NodeDown": Override(thresholds={"x": 1})},
            [("The alert NodeDown has no threshold x.", "it has no thresholds")],
        ),
    ],
)
def test_changes_that_name_nothing(changes, found):
    assert list(mistakes(changes)) == found


def test_lists_are_read_item_by_item():
    text = """
        - one
          and on
            - two
        - `a - b`
    """
    assert listed(text) == ("one and on", "two", "`a - b`")
