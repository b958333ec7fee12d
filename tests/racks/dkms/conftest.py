"""One rack for the set: booted once, taken down in the end whatever happened."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rackwright.lab.rack import Rack
from tests.racks.dkms.site import Site


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two nodes as the lab boots them."""
    site = Site(tmp_path_factory.mktemp("gpu"))
    try:
        site.cli("lab", "up", str(site.both))
        yield site
    finally:
        if site.name in Rack.names():
            Rack.named(site.name).down()
