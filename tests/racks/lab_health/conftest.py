"""One rack for the set: booted once, applied once, taken down in the end whatever happened."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rackwright.lab.rack import Rack
from tests.racks.lab_health.site import Site


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, as declared."""
    site = Site(tmp_path_factory.mktemp("health"))
    try:
        site.cli("lab", "up", str(site.file))
        site.cli("apply", str(site.file), "--yes")
        yield site
    finally:
        if site.name in Rack.names():
            Rack.named(site.name).down()


@pytest.fixture
def site(rack: Site) -> Iterator[Site]:
    """Both workers healthy and in service, before a test and after it."""
    for node in ("worker1", "worker2"):
        rack.on(node, "systemctl is-system-running --wait || :")  # one that was healed may have been rebooted
        rack.in_service(node)
    yield rack
    for node in rack.rack.status().nodes:
        if node.faults:
            rack.heal(node.name)
