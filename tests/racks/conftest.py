"""What all racks share: after a test has failed, its rack is put right before the next test begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.racks.site import Site

_FAILED = pytest.StashKey[set[str]]()
"""Folders of racks on which a test has failed since they were last put right."""
_SITES = pytest.StashKey[dict[str, Site]]()
"""Racks that can be put right, by folder."""


def _rack_of(item: pytest.Item) -> str:
    return item.nodeid.split("/")[2]  # tests/racks/<rack>/...


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Remember what failed."""
    report = yield
    if report.failed:
        item.config.stash.setdefault(_FAILED, set()).add(_rack_of(item))
    return report


@pytest.fixture
def put_right(request: pytest.FixtureRequest) -> Callable[[Site], None]:
    """Takes the rack that is to be healed and applied anew once a test on it has failed."""

    def put_right(site: Site) -> None:
        request.config.stash.setdefault(_SITES, {})[_rack_of(request.node)] = site

    return put_right


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Put the rack right, before the first fixture that could ask a broken node."""
    failed, rack = item.config.stash.get(_FAILED, set()), _rack_of(item)
    site = item.config.stash.get(_SITES, {}).get(rack)
    if site is None or rack not in failed:
        return
    failed.discard(rack)
    for node in site.nodes:
        site.heal(node)
    site.apply()
