"""One rack for the whole set: booted once, applied once, taken down in the end whatever happened."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rackwright.lab.rack import Rack
from tests.racks.slurm import sampler
from tests.racks.slurm.site import NODES, Ran, Site
from tests.racks.slurm.snapshot import Snapshot, snapshots

_FAILED = pytest.StashKey[list[str]]()
"""Tests that failed since the rack was last brought back to what is declared."""


@dataclass(frozen=True)
class FirstApply:
    """The first apply of the rack, and what the process lists had meanwhile."""

    ran: Ran
    samples: Path
    baseline: dict[str, Snapshot]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack of the set, up and bare."""
    site = Site(tmp_path_factory.mktemp("e2e"), f"e2e{os.getpid()}")
    try:
        site.cli("lab", "up", str(site.file))
        yield site
    finally:
        if site.name in Rack.names():
            Rack.named(site.name).down()


@pytest.fixture(scope="session")
def first_apply(site: Site) -> FirstApply:
    """The rack after its first apply, sampled while it ran."""
    samples = site.outputs / "samples"
    watch = [sys.executable, sampler.__file__, site.name, str(site.folder), str(samples)]
    with subprocess.Popen(watch, stdin=subprocess.PIPE, start_new_session=True) as process:
        try:
            ran = site.apply(expect=0)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(120)
    assert process.returncode == 0, "the sampler broke off"
    return FirstApply(ran, samples, snapshots(site))


@pytest.fixture
def rack(site: Site, first_apply: FirstApply, request: pytest.FixtureRequest) -> Site:
    """The rack as declared: whatever a test that failed has left behind is repaired first."""
    failed = request.config.stash.get(_FAILED, [])
    if failed:
        failed.clear()
        for node in NODES:
            site.heal(node)
        site.apply()
    return site


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Remember what failed."""
    report = yield
    if report.failed:
        item.config.stash.setdefault(_FAILED, []).append(item.nodeid)
    return report
