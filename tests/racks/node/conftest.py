"""A head and two workers as virtual machines, with what jobs need and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.racks.site import REPO, Site

APPLY_SECONDS = 3000
DRAIN_SECONDS = 60
_ROLES = ("base", "access", "munge", "mariadb", "slurm", "time", "tuning")


def declared() -> dict[str, Any]:
    """The content of the rack's cluster file."""
    content: dict[str, Any] = yaml.safe_load((REPO / "inventory" / "vm.yaml").read_text())
    content["roles"] = {role: content["roles"][role] for role in _ROLES}
    content["waves"] = {"size": 1, "drain_deadline_seconds": DRAIN_SECONDS}
    del content["burnin"]
    return content


@pytest.fixture(scope="session")
def _booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once."""
    made = Site(tmp_path_factory.mktemp("node"), "node", declared())
    with made.booted():
        made.cli("apply", str(made.file), "--yes", timeout=APPLY_SECONDS)
        yield made


@pytest.fixture
def site(_booted: Site, put_right: Callable[[Site], None]) -> Site:
    """The rack as declared: what a failed test left behind is repaired first."""
    put_right(_booted)
    return _booted
