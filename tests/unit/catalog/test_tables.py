"""The shared tables: every row cited, and the rows agree with each other."""

from __future__ import annotations

from datetime import date

import pytest

from rackwright.catalog import table_files
from rackwright.catalog.mig import placed
from rackwright.catalog.read import catalogue
from rackwright.catalog.tables import XidAction
from rackwright.lock.versions import at_least, numbers, upstream
from rackwright.model.sku import Architecture
from rackwright.osfamily.known import FAMILIES, RELEASES, os_release

READERS = [
    table_files.xid_table,
    table_files.mig_table,
    table_files.driver_table,
    table_files.cuda_table,
    table_files.security_table,
    table_files.pair_table,
    table_files.offer_table,
    table_files.package_table,
]

WITHOUT_OFFERS = {"ubuntu-26.04", "rocky-10", "rhel-10"}
"""Releases whose package sources no table has yet: the lock refuses them."""


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_every_table_and_every_row_with_sources_is_cited(reader):
    table = reader()
    assert table.rows
    rows = [*table.rows, *getattr(table, "architectures", ())]
    own = [source for row in rows for source in getattr(row, "sources", ())]
    own += [row.source for row in rows if not isinstance(getattr(row, "source", ""), str)]
    for source in (*table.sources, *own):
        assert date(2026, 1, 1) <= source.read
        assert len(source.text) > 20


def test_xids():
    rows = {row.code: row for row in table_files.xid_table().rows}
    assert len(rows) == len(table_files.xid_table().rows) > 100
    assert (rows[79].action, rows[79].drain) == (XidAction.REBOOT, True)
    assert (rows[13].action, rows[13].drain) == (XidAction.RESTART_JOB, False)
    assert rows[48].action is XidAction.INVESTIGATE
    assert rows[154].action is XidAction.OBEY_TEXT
    for row in rows.values():
        if row.action in (XidAction.REBOOT, XidAction.RESET_GPU, XidAction.INVESTIGATE):
            assert row.drain, row.code
        if row.action in (XidAction.NONE, XidAction.RESTART_JOB):
            assert not row.drain, row.code
        if row.published:
            assert row.action is not None
            assert row.vendor is not None or row.reason is not None
        if row.vendor is None:
            assert row.reason, f"{row.code}: the vendor says nothing, so we must"


def test_mig_layouts_fit():
    for gpu in table_files.mig_table().rows:
        most = {profile.name: profile.most for profile in gpu.profiles}
        assert gpu.balanced is not None
        assert sum(int(name[0]) * count for name, count in gpu.balanced.items()) == 7
        for name, count in gpu.balanced.items():
            assert count <= most[name]
        assert any(name.startswith("7g.") and count == 1 for name, count in most.items())
        assert placed(gpu.balanced, gpu) is not None
        for profile in gpu.profiles:
            assert placed({profile.name: profile.most}, gpu) is not None, (gpu.gpu, profile.name)
            assert placed({profile.name: profile.most + 1}, gpu) is None or profile.name.endswith("+me")


def test_cuda_releases_run_on_the_drivers_they_came_with():
    table = table_files.cuda_table()
    floors = {floor.major: floor.driver for floor in table.floors}
    for row in table.rows:
        assert at_least(row.driver, floors[numbers(row.release)[0]])
    drivers = [numbers(row.driver) for row in table.rows]
    assert drivers == sorted(drivers)


def test_branches():
    table = table_files.driver_table()
    branches = {row.branch: row for row in table.rows}
    assert branches[table.default_branch].kind == "long-term"
    releases = {row.release for row in table_files.cuda_table().rows}
    assert {row.cuda for row in table.rows if row.cuda} <= releases
    assert {rule.architecture for rule in table.architectures} == set(Architecture) - {Architecture.CDNA3}
    used = {sku.gpus.architecture for sku in catalogue().values() if sku.gpus is not None}
    assert used == set(Architecture)


def test_security_versions_are_of_their_branch_and_stand_once():
    rows = table_files.security_table().rows
    assert len({(row.component, row.branch) for row in rows}) == len(rows)
    for row in rows:
        assert row.advisory.startswith("https://")
        if row.component == "nvidia-driver":
            assert row.version.split(".")[0] == row.branch


def test_offers():
    table = table_files.offer_table()
    kinds = [(row.source, os) for row in table.rows for os in row.os]
    assert len(kinds) == len(set(kinds))
    assert set(RELEASES) - {str(os) for source, os in kinds if source == "nvidia"} == WITHOUT_OFFERS
    releases = {row.release for row in table_files.cuda_table().rows}
    branches = {row.branch for row in table_files.driver_table().rows}
    for row in table.rows:
        assert set(row.cuda or {}) <= releases
        for driver in row.drivers:
            assert driver.branch in branches
            assert driver.revision is None or upstream(driver.revision) == driver.version
    ubuntu = next(
        row for row in table.rows if os_release("ubuntu-24.04") in row.os and row.source == "nvidia"
    )
    assert table.default_dcgm in ubuntu.dcgm
    assert table.default_container_toolkit in ubuntu.container_toolkit
    assert table.default_nccl in ubuntu.nccl
    assert table.default_doca in ubuntu.doca


def test_kernels():
    rows = table_files.kernel_table().rows
    kinds = [(str(os), row.cpu) for row in rows for os in row.os]
    listed = [os for os in RELEASES if os != "centos-stream-9"]  # its kernels come before RHEL's
    assert sorted(kinds) == sorted([*((os, "x86_64") for os in listed), ("ubuntu-24.04", "aarch64")])
    for row in rows:
        assert any(kernel.default for kernel in row.kernels) == (row.cpu == "x86_64")
        for os in row.os:
            for kernel in row.kernels:
                assert upstream(kernel.version) == kernel.upstream
                assert os.family.kernel_release(kernel.release, row.cpu) == kernel.release
                assert kernel.release.startswith(f"{kernel.upstream.rpartition('.')[0]}.")


def test_every_compute_capability_of_the_catalogue_is_in_the_table():
    table = table_files.cuda_table()
    known = {row.capability for row in table.capabilities}
    assert len(known) == len(table.capabilities)
    for sku in catalogue().values():
        if sku.gpus is not None and sku.gpus.compute_capability is not None:
            assert sku.gpus.compute_capability in known


def test_pairs_are_of_packages_and_kernels_on_offer():
    for pair in table_files.pair_table().rows:
        (offer,) = (
            row
            for row in table_files.offer_table().rows
            if pair.os in row.os and row.source == "distribution"
        )
        assert pair.revision in {driver.revision for driver in offer.drivers}
        (archive,) = (row for row in table_files.kernel_table().rows if pair.os in row.os)
        assert pair.kernel in {kernel.upstream for kernel in archive.kernels}


def test_the_pairs_that_were_seen():
    seen = {
        (row.os, row.package, row.revision, row.kernel): row.builds
        for row in table_files.pair_table().rows
        if row.evidence == "built"
    }
    assert seen == {
        (os_release("debian-13"), "nvidia-open-kernel-dkms", "550.163.01-2", "6.12.107"): False,
        (os_release("debian-13"), "nvidia-open-kernel-dkms", "550.163.01-4~bpo13+1", "6.12.107"): False,
        (os_release("debian-13"), "nvidia-kernel-dkms", "550.163.01-2", "6.12.117"): True,
        (os_release("debian-12"), "nvidia-open-kernel-dkms", "535.261.03-1", "6.1.176"): True,
    }


def test_a_component_has_names_wherever_it_is_offered():
    rows = table_files.package_table().rows
    for family in FAMILIES.values():
        nvidia = {row.component for row in rows if (row.family, row.source) == (family, "nvidia")}
        assert {"modules", "fabricmanager", "imex", "nvlsm", "cuda", "dcgm", "container_toolkit"} <= nvidia
    for row in rows:
        if row.component == "container_toolkit":
            assert len(row.packages) == 4
