"""One rack for the set: booted once, applied once, always taken down in the end."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.racks.program import Ran
from tests.racks.site import REPO, Site
from tests.racks.slurm import sampler
from tests.racks.snapshot import Snapshot, snapshots

NODES = ("head1", "worker1", "worker2")
_MONITORING = (
    *("alertmanager", "dcgm_exporter", "job_metrics", "logs", "node_exporter", "prometheus", "site_ca"),
    "slurm_exporter",
)


@dataclass(frozen=True)
class FirstApply:
    """The first apply of the rack, and what the process lists had meanwhile."""

    ran: Ran
    samples: Path
    baseline: dict[str, Snapshot]


def _declared() -> dict[str, Any]:
    """The lab's file with more to drift: an admin with a key, QOS, a second account."""
    declared: dict[str, Any] = yaml.safe_load((REPO / "inventory" / "lab.yaml").read_text())
    roles = declared["roles"]
    for monitoring in _MONITORING:  # the suite alerts has a rack for it
        del roles[monitoring]
    blob = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + bytes(range(32))).decode()
    bob = {"name": "bob", "uid": 3001, "sudo": True, "authorized_keys": [f"ssh-ed25519 {blob} bob@example"]}
    roles["access"]["users"].append(bob)
    # What the tests break, the nodes' own health checks find as well: they come back soon after the repair.
    roles["health"]["drain"] = {"clean_passes": 1}
    roles["health"]["probe_seconds"] = 30  # a busy host is not the node's fault
    roles["health"]["prolog_seconds"] = 30
    roles["slurm"]["health_check"] = {"interval_seconds": 15}
    # The floor of a machine most of whose CPU is taken by others.
    declared["burnin"] |= {"floor_busbw_gbs": 0.005, "iterations": 5}
    roles["slurm"]["prune"] = True  # what is added by hand is drift here
    roles["slurm"]["qos"] = {"urgent": {"priority": 100}}
    roles["slurm"]["accounts"]["teaching"] = {"fairshare": 2}
    return declared


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack of the set, up and bare."""
    site = Site(tmp_path_factory.mktemp("slurm"), "slurm", _declared())
    with site.booted():
        yield site


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
            process.wait(480)
    assert process.returncode == 0, "the sampler broke off"
    return FirstApply(ran, samples, snapshots(site))


@pytest.fixture
def rack(site: Site, first_apply: FirstApply, put_right: Callable[[Site], None]) -> Site:
    """The rack as declared, repaired first if a test failed."""
    put_right(site)
    return site


@pytest.fixture(scope="session")
def once_accepted() -> list[Ran]:
    return []


@pytest.fixture
def accepted(rack: Site, once_accepted: list[Ran]) -> Ran:
    """`rackwright accept` of the rack as declared, once; its report is in `report` beside the outputs."""
    if not once_accepted:
        report = str(rack.outputs / "report")
        once_accepted.append(rack.cli("accept", str(rack.file), "--yes", "--report", report))
    return once_accepted[0]
