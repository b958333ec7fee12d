"""enroot_pyxis on a worker: fetched by digest, built against the Slurm that is there, known to srun."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rackwright.errors import ExitCode
from tests.racks.containers import site_files
from tests.racks.containers.conftest import apply_role, bad
from tests.racks.site import Site, operations

pytestmark = [pytest.mark.lab, pytest.mark.proof]

CAPS = f"enroot+caps_{site_files.ENROOT}-1_amd64.deb"


@pytest.mark.smoke
def test_srun_knows_the_flag_and_runs_jobs(site: Site):
    assert "--container-image=IMAGE" in site.on("worker1", "srun --help")
    assert site.on("worker1", "srun --container-image=any echo ran") == "ran\n"


def test_a_build_for_another_slurm_is_done_again(site: Site):
    """As after an upgrade of Slurm: its version is in the mark."""
    site.on("worker1", "echo '0.24.0 slurm-wlm 22.05.8' >/usr/local/share/pyxis/rackwright-built")
    found = bad(site, ExitCode.CHECK_FAILED, "enroot_pyxis")
    assert ("worker1", "pyxis was built for the installed Slurm") in found
    assert ("worker1", "enroot_pyxis", "Build pyxis") in operations(
        apply_role(site, "enroot_pyxis").to_json()
    )
    assert operations(site.plan(0, role="enroot_pyxis")) == set()


@pytest.fixture
def damaged(site: Site, mirror: Path) -> Iterator[None]:
    """The mirror has another enroot+caps than the one that is declared, for a while."""
    path = mirror / CAPS
    declared = path.read_bytes()
    path.write_bytes(declared + b"x")
    yield
    path.write_bytes(declared)
    apply_role(site, "enroot_pyxis")
    assert operations(site.plan(0, role="enroot_pyxis")) == set()


@pytest.mark.usefixtures("damaged")
def test_another_file_than_declared_never_lands(site: Site):
    site.on("worker1", "apt-get -qy remove enroot+caps >/dev/null; rm /var/cache/rackwright/*caps*")
    failed = site.apply(1, "--role", "enroot_pyxis")
    assert "is declared" in failed.out + failed.err
    assert site.on("worker1", "ls /var/cache/rackwright").split() == [
        "enroot_4.1.2-1_amd64.deb",
        "pyxis-0.24.0.tar.gz",
    ]
