"""One rack for the set: booted once, taken down in the end whatever happened."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rackwright.lab.rack import Rack
from tests.racks.gpu_companions.repository import EVERYTHING, build
from tests.racks.gpu_companions.site import Site


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two nodes with a driver and nothing beside it, and the whole repository, not yet served."""
    site = Site(tmp_path_factory.mktemp("gpus"))
    build(site.repository, EVERYTHING, site.folder)
    try:
        site.lab("up")
        site.place_driver()
        yield site
    finally:
        if site.name in Rack.names():
            Rack.named(site.name).down()
