"""One rack with Ray: the shipped inventory on its own network, with a page of wheels while it is applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests import ray_wheels
from tests.racks.site import REPO, Site

_BRIDGE = "10.94.0.1"


def declared() -> dict[str, Any]:
    """The shipped file on another network."""
    content: dict[str, Any] = yaml.safe_load(
        (REPO / "inventory" / "ray.yaml").read_text().replace("10.78.0.", "10.94.0.")
    )
    return content


@pytest.fixture(scope="package")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once; wheels stay on its bridge."""
    ray_wheels.downloaded()
    site = Site(tmp_path_factory.mktemp("ray"), "ra", declared())
    with site.booted(), ray_wheels.served(site.name, _BRIDGE):
        site.apply()
        yield site


@pytest.fixture
def site(rack: Site, put_right: Callable[[Site], None]) -> Site:
    """The rack, as declared again after a test on it has failed."""
    put_right(rack)
    return rack
