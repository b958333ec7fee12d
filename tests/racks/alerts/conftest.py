"""One rack for the set: inventory/drill.yaml, with a network that strangers share, a BMC, a switch, a UPS and two PDUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.racks.alerts import devices
from tests.racks.site import REPO, Site

EXTERNAL = {"purpose": "external", "cidr": "10.99.0.0/24"}
HEAD = "10.98.0.10"
HEAD_OUTSIDE = "10.99.0.10"


def declared() -> dict[str, Any]:
    """The shipped file, with a port of the head on the external network, devices that the head reads, and burn-ins."""
    content: dict[str, Any] = yaml.safe_load((REPO / "inventory" / "drill.yaml").read_text())
    content["networks"]["outside"] = EXTERNAL
    content["nodes"][0]["addresses"]["outside"] = HEAD_OUTSIDE
    content["roles"].update(devices.ROLES)
    lab: dict[str, Any] = yaml.safe_load((REPO / "inventory" / "lab.yaml").read_text())
    content["roles"]["hpc_stack"] = lab["roles"]["hpc_stack"]
    content["roles"]["prometheus"]["carbon_grams_per_kwh"] = 300
    content["burnin"] = lab["burnin"]
    return content


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once."""
    site = Site(tmp_path_factory.mktemp("alerts"), "al", declared())
    with site.booted():
        devices.store_secrets(site)
        devices.plug_in(site)
        site.apply()
        site.cli("drift", "install", str(site.file), "--mode", "pull", "--every", "1m", "--yes")
        yield site
