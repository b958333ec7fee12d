"""One rack for the set: inventory/drill.yaml, with a network that strangers share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.racks.site import REPO, Site

EXTERNAL = {"purpose": "external", "cidr": "10.99.0.0/24"}
HEAD = "10.98.0.10"
HEAD_OUTSIDE = "10.99.0.10"


def declared() -> dict[str, Any]:
    """The shipped file; its head has a port on the external network as well."""
    content: dict[str, Any] = yaml.safe_load((REPO / "inventory" / "drill.yaml").read_text())
    content["networks"]["outside"] = EXTERNAL
    content["nodes"][0]["addresses"]["outside"] = HEAD_OUTSIDE
    return content


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once."""
    site = Site(tmp_path_factory.mktemp("alerts"), "al", declared())
    with site.booted():
        site.apply()
        yield site
