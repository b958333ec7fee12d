"""One rack for the set: booted, locked and applied once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.racks.containers import site_files
from tests.racks.dgx import mirror
from tests.racks.dgx.example import BRIDGE, NODES, declared
from tests.racks.site import Site

_DIRECT = "/etc/apt/apt.conf.d/99-mirror"
"""The lab's proxy leads out of the rack, and the mirror is inside."""


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied."""
    folder = tmp_path_factory.mktemp("dgx")
    files = folder / "mirror"
    files.mkdir()
    digests = site_files.make(files)
    site = Site(folder, "dgx", declared(mirror.make(files, folder / "mirror.asc"), digests))
    site.cli("lock", str(site.file))
    with site.booted(), mirror.served(site, files):
        for node in NODES:
            site.on(node, f"echo 'Acquire::http::Proxy::{BRIDGE} \"DIRECT\";' >{_DIRECT}")
        site.apply()
        yield site


@pytest.fixture
def site(rack: Site, put_right: Callable[[Site], None]) -> Site:
    """The rack as declared, repaired after the previous test."""
    put_right(rack)
    return rack
