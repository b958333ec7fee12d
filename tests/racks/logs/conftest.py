"""One rack for the set: the nodes and Slurm of inventory/drill.yaml, and the central journal with small bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.racks.site import REPO, Site

_ROLES = ("base", "access", "firewall", "site_ca", "time", "munge", "mariadb", "slurm")
# as small as three nodes allow, so that a test can write more than is kept
_STORE = {"type": "journal", "max_use": "64M", "keep_free": "1G", "max_file": "8M"}


def declared() -> dict[str, Any]:
    """The shipped file on another network, without what serves metrics."""
    shipped = (REPO / "inventory" / "drill.yaml").read_text()
    content: dict[str, Any] = yaml.safe_load(shipped.replace("10.98.0.", "10.96.0."))
    content["roles"] = {**{role: content["roles"][role] for role in _ROLES}, "logs": {"store": _STORE}}
    return content


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once."""
    site = Site(tmp_path_factory.mktemp("logs"), "lo", declared())
    with site.booted():
        site.apply()
        yield site


@pytest.fixture
def site(rack: Site, put_right: Callable[[Site], None]) -> Site:
    """The rack, as declared again after a test on it has failed."""
    put_right(rack)
    return rack
