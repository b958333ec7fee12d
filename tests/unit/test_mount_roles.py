"""What the roles that mount filesystems share."""

from __future__ import annotations

import subprocess
from typing import ClassVar

import pytest

from rackwright.model.package_archive import PackageArchive
from rackwright.model.storage import FilesystemKind, FilesystemPurpose, Mount
from rackwright.mount_roles import MountingOptions, Rail, declared_kernel, options_of, rails, shown_of
from rackwright.operations.modules import module_available
from rackwright.render import render
from tests.unit.roles.mount_sites import KERNEL, filesystem, mounting_site
from tests.unit.roles.sites import head, worker


class Mounts(MountingOptions):
    """A role that mounts Lustre."""

    role: ClassVar[str] = "mounts"
    mounts_kinds: ClassVar[frozenset[FilesystemKind]] = frozenset({FilesystemKind.LUSTRE})

    def mount_of(self, node, filesystem):
        """As declared."""
        return Mount(filesystem, what="x", type="lustre")


FS = filesystem(FilesystemKind.LUSTRE, "10.0.0.5", fsname="l")


def test_where_it_runs():
    cluster = mounting_site(
        {"mounts": Mounts()}, FS, filesystem(FilesystemKind.GPFS, name="other", path="/other")
    )
    assert [node.name for node in cluster.running("mounts")] == ["gpu1", "gpu2"]
    assert [one.name for one in Mounts().mounted(worker(cluster))] == ["scratch"]
    at_boot = FS.model_copy(update={"automount": False})
    cluster = mounting_site({"mounts": Mounts()}, at_boot)
    assert len(Mounts().unit_files(worker(cluster))) == 2  # with the automount unit that may be left behind


@pytest.mark.parametrize(
    ("purpose", "declared", "found"),
    [
        (FilesystemPurpose.HOME, (), ("nosuid", "nodev", "noatime")),
        (FilesystemPurpose.SOFTWARE, (), ("nodev", "noatime")),
        (FilesystemPurpose.DATA, ("relatime", "dev"), ("nosuid", "relatime", "dev")),
    ],
)
def test_options(purpose, declared, found):
    one = FS.model_copy(update={"purpose": purpose, "options": declared})
    assert options_of(one, ("noatime",)) == found


def test_what_is_shown():
    assert shown_of(("nosuid", "flock", "rasize=8", "noatime")) == {"nosuid": None, "noatime": None}
    assert shown_of(("flock",), frozenset({"flock"})) == {"flock": None}


def test_rails_and_kernel():
    cluster = mounting_site({"mounts": Mounts()}, FS)
    assert rails(cluster, worker(cluster), "fabric") == (
        Rail(0, "10.11.0.11", "rail0"),
        Rail(1, "10.11.1.11", "rail1"),
    )
    assert rails(cluster, head(cluster), "fabric") == ()
    assert declared_kernel(cluster, worker(cluster)) == KERNEL
    unnamed = mounting_site({"mounts": Mounts()}, FS, kernel=None, named=False)
    assert declared_kernel(unnamed, worker(unnamed)) is None
    assert [rail.interface for rail in rails(unnamed, worker(unnamed), "fabric")] == [None, None]


@pytest.mark.parametrize(("there", "kernel"), [(True, KERNEL), (False, KERNEL), (True, None), (False, None)])
def test_a_module_that_is_not_there_ends_the_run(tmp_path, monkeypatch, there, kernel):
    asked = []
    monkeypatch.setattr("rackwright.operations.modules.settings.setting", lambda **given: asked.append(given))
    cluster = mounting_site({"mounts": Mounts()}, FS, kernel=kernel)

    class Site:
        node = worker(cluster)

    Site.cluster = cluster
    module_available(Site, "lustre")
    for name, text in (
        ("modinfo", f"exit {0 if there else 1}"),
        ("depmod", f'echo "$*" >{tmp_path}/depmod.args'),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    (given,) = asked
    read = subprocess.run(["sh", "-c", given["read"]], capture_output=True, text=True, check=False, env=env)
    assert (read.stdout == "built\n") is there
    done = subprocess.run(["sh", "-c", given["write"]], capture_output=True, text=True, check=False, env=env)
    assert (done.returncode == 0) is there
    if not there:
        assert "module lustre does not exist for kernel " in done.stderr
        assert (kernel or "") in done.stderr


def test_archives_of_packages():
    given = PackageArchive.model_validate(
        {
            "url": "http://m/lustre",
            "suite": "trixie",
            "components": ["main"],
            "key_url": "http://m/key",
            "fingerprint": "A" * 40,
        }
    )
    assert render("package_archive/apt.sources.j2", name="lustre", archive=given, key="/k").splitlines()[
        1:
    ] == [
        "Types: deb",
        "URIs: http://m/lustre",
        "Suites: trixie",
        "Components: main",
        "Signed-By: /k",
    ]
    flat = given.model_copy(update={"suite": "/", "components": ()})
    assert "Components" not in render("package_archive/apt.sources.j2", name="lustre", archive=flat, key="/k")
    assert render("package_archive/dnf.repo.j2", name="lustre", archive=given, key="/k").splitlines()[1:] == [
        "[rackwright-lustre]",
        "name=lustre",
        "baseurl=http://m/lustre",
        "enabled=1",
        "gpgcheck=1",
        "gpgkey=file:///k",
    ]
