"""What all racks share: after a test has failed, its rack is put right before the next test begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.racks.site import Site

_FAILED = pytest.StashKey[set[str]]()
"""Folders of racks on which a test has failed since they were last put right."""


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
    """Heals the nodes and applies what is declared, if the test before has failed."""

    def put_right(site: Site) -> None:
        failed = request.config.stash.get(_FAILED, set())
        if (rack := _rack_of(request.node)) in failed:
            failed.discard(rack)
            for node in site.nodes:
                site.heal(node)
            site.apply()

    return put_right
