"""One rack with Ray whose environment has torch, as a site's own lock gives it: Debian 12, for whose Python torch.txt has a wheel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.render import render
from tests import ray_wheels
from tests.racks.site import REPO, Site

_BRIDGE = "10.96.0.1"
_PYTORCH = ("--retries=1", "--extra-index-url=https://download.pytorch.org/whl/cpu")
"""Where the wheel for CPUs is published; PyPI has torch with CUDA."""
LOCK = "ray-torch.txt"


def _declared() -> dict[str, Any]:
    """The shipped file on another network, with another system and lock, and a floor."""
    content: dict[str, Any] = yaml.safe_load(
        (REPO / "inventory" / "ray.yaml").read_text().replace("10.78.0.", "10.96.0.")
    )
    content["defaults"]["os"] = "debian-12"
    content["roles"]["ray"]["lock"] = LOCK
    content["burnin"] = {
        "floor_busbw_gbs": 0.005,
        "floor_source": "a machine most of whose CPU is taken by others",
    }
    return content


@pytest.fixture(scope="package")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once; wheels stay on its bridge."""
    own, torch = render("ray/requirements.txt.j2"), (Path(__file__).parent / "torch.txt").read_text()
    wheels = ray_wheels.downloaded(own, "3.11", torch, *_PYTORCH)
    site = Site(tmp_path_factory.mktemp("ray_collective"), "rt", _declared())
    (site.file.parent / LOCK).write_text(own + torch)
    with site.booted(), ray_wheels.served(site.name, _BRIDGE, wheels):
        site.apply()
        site.cli(
            "verify", str(site.file), "--role", "ray"
        )  # a raylet joins seconds after its unit has started
        yield site


@pytest.fixture
def site(rack: Site, put_right: Callable[[Site], None]) -> Site:
    """The rack, as declared again after a test on it has failed."""
    put_right(rack)
    return rack
