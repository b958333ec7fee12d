"""docs/alerts.md and the runbooks are what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.alerts.catalogue import ALERTS
from rackwright.alerts.pages import files, write

DOCS = Path(__file__).parents[3] / "docs"
ANEW = "write the pages anew: python -m rackwright.alerts.pages docs"


@pytest.mark.parametrize("name", files())
def test_a_page_is_current(name):
    assert (DOCS / name).read_text() == files()[name], ANEW


def test_no_page_is_left_over():
    assert {path.stem for path in (DOCS / "alerts").glob("*.md")} == set(ALERTS), ANEW


def test_writing_replaces_and_removes(tmp_path):
    (tmp_path / "alerts").mkdir()
    (tmp_path / "alerts" / "Gone.md").write_text("old")
    (tmp_path / "alerts.md").write_text("old")
    write(tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")} == set(files())
    assert (tmp_path / "alerts.md").read_text() == files()["alerts.md"]


def test_the_index_lists_every_alert_once():
    index = files()["alerts.md"]
    for name in ALERTS:
        assert index.count(f"[{name}](alerts/{name}.md)") == 1


def test_a_whole_page():
    assert (
        files()["alerts/BondDegraded.md"]
        == """\
# BondDegraded

Warning. Fires after 5 min.

The next lost link takes the node off that network.

## What to do

1. `cat /proc/net/bonding/BOND` on the node: the member with `MII Status: down`.
2. `ethtool MEMBER`: `Link detected: no` is cable, module or switch port. `yes`: LACP; compare the partner's MAC address.
3. Many nodes: one of the two switches, or its MLAG, is at fault.

## The rule

```promql
node_bonding_active{job="node"} < node_bonding_slaves{job="node"}
```

Scrape jobs: `node`.

[All alerts](../alerts.md)
"""
    )
