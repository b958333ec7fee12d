"""The Slurm rack with health checks every other second; before and after, it is as its own tests have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.racks.site import Site
from tests.racks.slurm.conftest import FirstApply
from tests.racks.watch import WORKERS, Watch

INTERVAL_SECONDS = 2


def _watchful(declared: dict[str, Any]) -> None:
    declared["roles"]["health"]["drain"] = {"clean_passes": 2, "unknown_passes": 5}
    declared["roles"]["slurm"]["health_check"] = {
        "interval_seconds": INTERVAL_SECONDS,
        "node_states": ["ANY"],
    }


@pytest.fixture(scope="package")
def watched(site: Site, first_apply: FirstApply) -> Iterator[Watch]:
    """The rack, with Slurm's health checks running all the time."""
    with site.declaring(_watchful):
        site.converge()
        yield Watch(site)
    site.converge()


@pytest.fixture
def watch(watched: Watch, put_right: Callable[[Site], None]) -> Iterator[Watch]:
    """Both workers healthy and in service, before a test and after it."""
    put_right(watched.site)
    for node in WORKERS:
        watched.on(
            node, "systemctl is-system-running --wait || :"
        )  # one that was healed may have been rebooted
        watched.in_service(node)
    yield watched
    for status in watched.site.rack.status().nodes:
        if status.faults:
            watched.heal(status.name)
