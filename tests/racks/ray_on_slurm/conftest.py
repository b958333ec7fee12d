"""One rack with Slurm whose jobs start Ray: the lab's file on its own network, with a page of wheels while it is applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests import ray_wheels
from tests.racks.site import REPO, Site

_BRIDGE = "10.95.0.1"
_ROLES = ("base", "access", "firewall", "time", "munge", "mariadb", "slurm")


def declared() -> dict[str, Any]:
    """The shipped file on another network, with what jobs need, and two users."""
    content: dict[str, Any] = yaml.safe_load(
        (REPO / "inventory" / "lab.yaml").read_text().replace("10.77.0.", "10.95.0.")
    )
    del content["burnin"]
    roles = {name: content["roles"][name] for name in _ROLES}
    roles["access"]["users"].append({"name": "bob", "uid": 3001})
    roles["slurm"]["users"]["bob"] = {"default_account": "research"}
    roles["ray_on_slurm"] = {"wheels": f"http://{_BRIDGE}:{ray_wheels.PORT}/"}
    content["roles"] = roles
    content["nodes"][1]["lab"]["memory_mib"] = 3072
    return content


@pytest.fixture(scope="package")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once; wheels stay on its bridge."""
    ray_wheels.downloaded()
    site = Site(tmp_path_factory.mktemp("ray_on_slurm"), "rs", declared())
    with site.booted(), ray_wheels.served(site.name, _BRIDGE):
        site.apply()
        yield site


@pytest.fixture
def site(rack: Site, put_right: Callable[[Site], None]) -> Site:
    """The rack, as declared again after a test on it has failed."""
    put_right(rack)
    return rack
