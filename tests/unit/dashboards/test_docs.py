"""The documentation of dashboards says what the dashboards are."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.dashboards.catalogue import DASHBOARDS
from rackwright.dashboards.markdown import main, page, pages, table
from rackwright.dashboards.model import Unit

DOCS = Path(__file__).parents[3] / "docs"
AGAIN = "write them anew: python -m rackwright.dashboards.markdown docs/dashboards"


@pytest.mark.parametrize("name", pages())
def test_a_page_is_of_the_model(name):
    assert (DOCS / "dashboards" / name).read_text() == pages()[name], AGAIN


def test_there_are_no_other_pages():
    assert {path.name for path in (DOCS / "dashboards").glob("*.md")} == set(pages()), AGAIN


def test_all_are_listed():
    assert table() in (DOCS / "dashboards.md").read_text()


def test_a_page_has_every_panel():
    for dashboard in DASHBOARDS:
        text = page(dashboard)
        for panel in dashboard.panels:
            assert f"### {panel.title}\n\n{panel.description}\n" in text
            assert all(one.text in text for one in panel.expressions)
            assert panel.empty is None or panel.empty in text
            assert panel.unit is not Unit.STATE or all(name in text for name, _ in panel.states.values())


def test_pages_are_written(tmp_path):
    main(str(tmp_path / "new"))
    assert {path.name for path in (tmp_path / "new").iterdir()} == set(pages())
