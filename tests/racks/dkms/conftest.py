"""One rack for the set, and the two builds that tests look at; a test that asks for none of them boots nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.racks.dkms.pairs import (
    BUILD_SECONDS,
    asking_for,
    bad_alone,
    both_nodes,
    good_alone,
    lock_by_hand,
)
from tests.racks.program import Ran
from tests.racks.site import Site


@dataclass(frozen=True)
class FailedBuild:
    """An apply of the pair that does not build, and the node as it left it."""

    site: Site
    ran: Ran


@pytest.fixture(scope="session")
def both(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Cluster file of a rack that is down."""
    return Site(tmp_path_factory.mktemp("dkms"), "gpu", both_nodes())


@pytest.fixture(scope="session")
def rack(both: Site) -> Iterator[Site]:
    """Both nodes, up and bare."""
    with both.booted():
        yield both


@pytest.fixture(scope="session")
def built(rack: Site) -> Site:
    """The Debian 12 node, locked and applied."""
    site = asking_for(rack, "built", good_alone)
    site.cli("lock", str(site.file))
    site.cli("apply", str(site.file), "--yes", timeout=BUILD_SECONDS)
    return site


@pytest.fixture
def good(built: Site, put_right: Callable[[Site], None]) -> Site:
    """The Debian 12 node as declared, repaired after the previous test."""
    put_right(built)
    return built


@pytest.fixture(scope="session")
def failed_build(rack: Site) -> FailedBuild:
    """The Debian 13 node after its lock was written by hand and the build was forced."""

    def forced(content: dict[str, Any]) -> None:
        bad_alone(content)
        content["roles"]["nvidia_driver"] = {"known_bad": "try"}

    site = asking_for(rack, "forced", forced)
    lock_by_hand(site)
    return FailedBuild(site, site.cli("apply", str(site.file), "--yes", expect=1, timeout=BUILD_SECONDS))
