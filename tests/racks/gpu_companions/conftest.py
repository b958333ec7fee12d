"""One rack for the set, and how far it is with what the lock holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.racks.gpu_companions.nodes import NODES, declared, place_driver, serve, version_of
from tests.racks.gpu_companions.repository import EVERYTHING, OLDER_FABRICMANAGER, build
from tests.racks.program import Ran
from tests.racks.site import Site


@dataclass(frozen=True)
class Refused:
    """An apply on a node whose repository lacks the locked version."""

    ran: Ran
    installed: str
    """Version of nvidia-fabricmanager afterwards; empty: none."""


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two nodes with a driver and nothing beside it, locked."""
    site = Site(tmp_path_factory.mktemp("gpus"), "gpus", declared())
    build(site.folder / "repository", EVERYTHING)
    site.cli("lock", str(site.file))
    with site.booted():
        place_driver(site)
        yield site


@pytest.fixture(scope="session")
def refused(rack: Site) -> Refused:
    """What becomes of gpu1 where only an older Fabric Manager is to be had."""
    build(rack.folder / "older", OLDER_FABRICMANAGER)
    serve(rack, "gpu1", rack.folder / "older")
    ran = rack.apply(1, "--limit", "gpu1", "--role", "fabricmanager")
    return Refused(ran, version_of(rack, "gpu1", "nvidia-fabricmanager"))


@pytest.fixture(scope="session")
def applied(rack: Site, refused: Refused) -> Site:
    """The rack as declared. The refused apply goes first: it needs a node without Fabric Manager."""
    for node in NODES:
        serve(rack, node, rack.folder / "repository")
    rack.apply()
    return rack


@pytest.fixture
def site(applied: Site, put_right: Callable[[Site], None]) -> Site:
    """The rack as declared, repaired after the previous test."""
    put_right(applied)
    return applied
