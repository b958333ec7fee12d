"""The rack of inventory/vm.yaml: three virtual machines, up and applied once. Emulated ones take ten to twenty times longer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.racks.program import Ran
from tests.racks.site import REPO, Site

APPLY_SECONDS = 3000
WORKERS = ("worker1", "worker2")
TOOLS = ("ibverbs-utils", "nfs-common", "nfs-kernel-server", "perftest")
"""To look at what these machines' kernels can do; they are in the boot images, so that no machine installs them itself."""


def declared() -> dict[str, Any]:
    """The content of the set's cluster file."""
    content: dict[str, Any] = yaml.safe_load((REPO / "inventory" / "vm.yaml").read_text())
    content["roles"]["base"]["packages"] = list(TOOLS)
    content["roles"]["health"]["drain"] = {"clean_passes": 1}  # tests that break a node need it back soon
    content["roles"]["slurm"]["health_check"] = {"interval_seconds": 60}
    return content


def alone() -> dict[str, Any]:
    """One machine with what every node has."""
    content = declared()
    del content["nodes"][1:], content["burnin"]
    content["roles"] = {"base": {}, "access": {}, "tuning": {}, "time": {"max_offset_seconds": 0.25}}
    return content


class Times:
    """How long parts took, for the ledger."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._parts: list[str] = []

    def note(self, what: str) -> None:
        now = time.monotonic()
        self._parts.append(f"{what} {now - self._began:.0f} s")
        self._began = now

    def __str__(self) -> str:
        return ", ".join(self._parts)


@pytest.fixture(scope="session")
def times() -> Times:
    return Times()


@pytest.fixture(scope="session")
def first_apply() -> list[Ran]:
    """The first apply of the rack, when there was one."""
    return []


@pytest.fixture(scope="session")
def booted(tmp_path_factory: pytest.TempPathFactory, times: Times, first_apply: list[Ran]) -> Iterator[Site]:
    """The rack, applied once."""
    site = Site(tmp_path_factory.mktemp("vm"), "vm", declared())
    times.note("before the rack")
    with site.booted():
        times.note("lab up with its boot images")
        first_apply.append(site.cli("apply", str(site.file), "--yes", timeout=APPLY_SECONDS))
        times.note("first apply")
        yield site


@pytest.fixture
def rack(booted: Site, put_right: Callable[[Site], None]) -> Site:
    """The rack as declared: what a failed test left behind is repaired first."""
    put_right(booted)
    return booted


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A single machine, up and bare; down again before the rack is booted."""
    site = Site(tmp_path_factory.mktemp("vmone"), "vmone", alone())
    with site.booted():
        yield site
