"""Kernels: named, of the tables, of an index; and what makes a lock exact."""

from __future__ import annotations

import gzip

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.errors import RackwrightError
from rackwright.lock.content import GroupLock
from rackwright.lock.index import Entry, Index, read_index
from rackwright.lock.lock_file import lock_text
from rackwright.lock.request import shipped_tables
from rackwright.lock.solve import solve
from rackwright.osfamily.known import os_release
from tests.unit.lock.clusters import write_cluster

UBUNTU = "ubuntu-24.04"
REPOSITORY = "https://developer.download.nvidia.com/compute/cuda/repos"


def _index(**packages: str) -> Index:
    return Index(
        ("Packages",),
        {
            name.replace("_", "-"): tuple(
                Entry(name.replace("_", "-"), version, "ab" * 32) for version in at.split()
            )
            for name, at in packages.items()
        },
    )


def _archive(*releases: str, extra: bool = True) -> Index:
    """An index of Ubuntu's own archive, where every kernel has separate package names."""
    names = ["linux-image", "linux-headers", "linux-modules", *(["linux-modules-extra"] if extra else [])]
    packages = {
        f"{name}-{release}": (Entry(f"{name}-{release}", f"{release.rpartition('-')[0]}.1", "ab" * 32),)
        for release in releases
        for name in names
    }
    return Index(("Packages",), packages)


def _locked(folder, sku, os, stack, index=None) -> GroupLock:
    solution = solve(
        load_cluster(write_cluster(folder, {sku: os}, stack)), shipped_tables(), index or Index()
    )
    assert solution.refused == (), solution.refused
    return solution.lock.groups[0]


def _refused(folder, sku, os, stack, index=None) -> list[str]:
    solution = solve(
        load_cluster(write_cluster(folder, {sku: os}, stack)), shipped_tables(), index or Index()
    )
    assert solution.lock.groups == ()
    return [reason.message for reason in solution.refused[0].reasons]


def _kernels(group: GroupLock) -> dict[str, str]:
    return {name: group.packages[name] for name in group.components.get("kernel", ())}


def test_the_newest_of_the_table_is_locked_with_a_note(tmp_path):
    group = _locked(tmp_path, "dgx-h100", UBUNTU, "{}")
    release, version = "6.8.0-139-generic", "6.8.0-139.139"
    parts = ("headers", "image", "modules", "modules-extra")
    assert group.kernel == release
    assert _kernels(group) == {f"linux-{part}-{release}": version for part in parts}
    assert (
        "The kernel 6.8.0-139-generic is the newest in the shipped table of 2026-11-23; the archive may have a newer one. Set `gpu_stack.kernel` to use another."
    ) in group.notes


GRACE = """\
skus:
  own:
    vendor: Example
    description: A server of ours with one Grace Hopper
    sockets: 1
    cores_per_socket: 72
    threads_per_core: 1
    memory_mib: 491520
    cpu_architecture: aarch64
    gpus: {model: GH200, gres_type: gh200, count: 1, memory_mib: 97871, architecture: hopper, nvswitch: none, nvlinks: 0}
    sources: [{text: "the site's own order", read: 2026-11-20}]
"""
NAMED = [
    ("dgx-h100", UBUNTU, "6.8.0-79-generic", "6.8.0-79-generic", "linux-{}-6.8.0-79-generic", "*"),
    (
        "dgx-gb200",
        UBUNTU,
        "6.14.0-1013-nvidia-64k",
        "6.14.0-1013-nvidia-64k",
        "linux-{}-6.14.0-1013-nvidia-64k",
        "*",
    ),
]


@pytest.mark.parametrize(("sku", "os", "named", "release", "names", "version"), NAMED)
def test_a_kernel_that_no_table_lists_is_locked_by_name(tmp_path, sku, os, named, release, names, version):
    group = _locked(tmp_path, sku, os, f"{{kernel: {named}}}")
    assert group.kernel == release
    assert _kernels(group) == {names.format(part): version for part in ("headers", "image", "modules")}
    assert "linux-image" not in " ".join(group.notes)


@pytest.mark.parametrize(
    ("named", "release"),
    [
        ("5.14.0-570.12.1.el9_6", "5.14.0-570.12.1.el9_6.x86_64"),
        ("5.14.0-570.12.1.el9_6.x86_64", "5.14.0-570.12.1.el9_6.x86_64"),
    ],
)
def test_el_s_release_has_the_version_in_it(tmp_path, named, release):
    group = _locked(tmp_path, "dgx-h100", "rocky-9", f"{{kernel: {named}}}")
    assert group.kernel == release
    assert _kernels(group) == dict.fromkeys(("kernel", "kernel-devel-matched"), "5.14.0-570.12.1.el9_6")


def test_el_s_kernel_with_large_pages_has_packages_of_its_own(tmp_path):
    family = os_release("rocky-9").family
    assert (
        family.kernel_release("5.14.0-570.12.1.el9_6+64k", "aarch64") == "5.14.0-570.12.1.el9_6.aarch64+64k"
    )
    path = write_cluster(tmp_path, {"own": "rocky-9"}, "{kernel: 5.14.0-570.12.1.el9_6+64k}", GRACE)
    (group,) = solve(load_cluster(path), shipped_tables(), Index()).lock.groups
    assert group.kernel == "5.14.0-570.12.1.el9_6.aarch64+64k"
    names = ("kernel-64k", "kernel-64k-devel-matched")
    assert _kernels(group) == dict.fromkeys(names, "5.14.0-570.12.1.el9_6")


@pytest.mark.parametrize("text", ["newest", "6.8", "5.14.0-570.12.1.el9_6", "6.8.0-79-generic; reboot"])
def test_what_is_not_a_kernel_of_ubuntu(tmp_path, text):
    assert os_release(UBUNTU).family.kernel_release(text, "x86_64") is None
    found = _refused(tmp_path, "t4-4x", UBUNTU, f'{{kernel: "{text}"}}')
    assert found == [f"{text} is not a kernel release of ubuntu-24.04."]


def test_without_table_or_index_the_note_says_what_to_write(tmp_path):
    group = _locked(tmp_path, "dgx-gb200", UBUNTU, "{}")
    assert group.kernel is None
    assert "kernel" not in group.components
    (note,) = [note for note in group.notes if "kernel" in note]
    assert note == (
        "The kernel is not locked: the shipped tables have no default for ubuntu-24.04 on aarch64. Set `gpu_stack.kernel`, e.g. to `6.8.0-1031-nvidia-64k`, or add the index of the OS archive to `gpu_stack.package_index`."
    )
    named = _locked(tmp_path, "dgx-gb200", UBUNTU, "{kernel: 6.8.0-1031-nvidia-64k}")
    assert set(_kernels(named).values()) == {"6.8.0-1031.34"}


def test_an_index_of_the_archive_decides_and_leaves_the_rest_to_the_tables(tmp_path):
    index = _archive("6.8.0-139-generic", "6.8.0-151-generic", "6.8.0-160-lowlatency")
    stack = "{package_index: [Packages]}"
    group = _locked(tmp_path, "dgx-h100", UBUNTU, stack, index)
    assert group.kernel == "6.8.0-151-generic"
    assert set(_kernels(group).values()) == {"6.8.0-151.1"}
    assert "linux-modules-extra-6.8.0-151-generic" in group.components["kernel"]
    assert group.sha256["linux-image-6.8.0-151-generic"] == "ab" * 32
    assert group.packages["nvidia-open"] == "580.173.02-*"  # the index says nothing about NVIDIA's repository
    assert group.needs_index == (f"{REPOSITORY}/ubuntu2404/x86_64/Packages.gz",)
    without = _locked(tmp_path, "dgx-h100", UBUNTU, stack, _archive("6.17.0-40-generic", extra=False))
    assert "linux-modules-extra-6.17.0-40-generic" not in without.packages


def test_an_index_s_newer_series_and_other_flavours_are_only_taken_by_name(tmp_path):
    index = _archive("6.8.0-139-generic", "6.17.0-40-generic", "7.0.0-34-generic")
    group = _locked(tmp_path, "dgx-h100", UBUNTU, "{package_index: [Packages]}", index)
    assert group.kernel == "6.8.0-139-generic"
    stack = "{kernel: 6.17.0-40-generic, package_index: [Packages]}"
    assert _locked(tmp_path, "dgx-h100", UBUNTU, stack, index).kernel == "6.17.0-40-generic"
    debian = os_release("debian-13").family
    for name, usual in (
        ("linux-image-6.12.117+deb13-amd64", True),
        ("linux-image-6.12.117+deb13-rt-amd64", False),
        ("linux-image-6.12.117+deb13-cloud-amd64", False),
        ("linux-image-6.12.117+deb13-amd64-unsigned", False),
        ("linux-image-6.12.117+deb13-arm64", False),
        ("linux-image-amd64", False),
        ("linux-image-unsigned-6.8.0-139-generic", False),
        ("linux-headers-6.8.0-139-generic", False),
    ):
        assert (debian.kernel_of(name, "6.12.117-1", "x86_64") is not None) is usual


def test_a_named_kernel_is_looked_up_in_the_index(tmp_path):
    index = _archive("6.8.0-139-generic", "6.8.0-1040-nvidia")
    stack = "{kernel: 6.8.0-1040-nvidia, package_index: [Packages]}"
    group = _locked(tmp_path, "dgx-h100", UBUNTU, stack, index)
    assert set(_kernels(group).values()) == {"6.8.0-1040.1"}
    missing = _refused(tmp_path, "dgx-h100", UBUNTU, stack.replace("1040", "1041"), index)
    assert missing[0] == "The package index has no linux-image-6.8.0-1041-nvidia."


def test_debian_s_archive_was_read_whole_and_a_newer_kernel_needs_its_index(tmp_path):
    stack = "{source: distribution, modules: proprietary, kernel: 6.1.0-60-amd64, package_index: [Packages]}"
    assert _refused(tmp_path, "t4-4x", "debian-12", stack)[0].startswith(
        "debian-12's archive as read on 2026-11-20 has"
    )
    group = _locked(tmp_path, "t4-4x", "debian-12", stack, _archive("6.1.0-60-amd64"))
    assert _kernels(group) == dict.fromkeys(
        ("linux-headers-6.1.0-60-amd64", "linux-image-6.1.0-60-amd64"), "6.1.0-60.1"
    )


def test_rpm_s_index_lists_several_kernels_under_one_name(tmp_path):
    versions = "5.14.0-687.46.1.el9_8 5.14.0-687.50.1.el9_8"
    index = _index(kernel=versions, kernel_devel_matched=versions)
    stack = "{package_index: [primary.xml]}"
    group = _locked(tmp_path, "dgx-h100", "rocky-9", stack, index)
    assert group.kernel == "5.14.0-687.50.1.el9_8.x86_64"
    assert set(_kernels(group).values()) == {"5.14.0-687.50.1.el9_8"}
    older = _locked(
        tmp_path, "dgx-h100", "rocky-9", stack.replace("{", "{kernel: 5.14.0-687.46.1.el9_8, ", 1), index
    )
    assert set(_kernels(older).values()) == {"5.14.0-687.46.1.el9_8"}
    missing = _refused(
        tmp_path, "dgx-h100", "rocky-9", stack.replace("{", "{kernel: 5.14.0-1.1.el9_8, ", 1), index
    )
    assert missing == [
        "The package index has no kernel 5.14.0-1.1.el9_8.",
        "The package index has no kernel-devel-matched 5.14.0-1.1.el9_8.",
    ]


@pytest.mark.parametrize(
    ("sku", "os", "stack", "needed"),
    [
        ("dgx-h100", UBUNTU, "{}", [f"{REPOSITORY}/ubuntu2404/x86_64/Packages.gz"]),
        (
            "dgx-gb200",
            UBUNTU,
            "{}",
            [
                f"{REPOSITORY}/ubuntu2404/sbsa/Packages.gz",
                "http://ports.ubuntu.com/ubuntu-ports/dists/noble-updates/main/binary-arm64/Packages.xz",
            ],
        ),
        ("dgx-h100", "rocky-9", "{}", [f"{REPOSITORY}/rhel9/x86_64/repodata/repomd.xml"]),
        ("dgx-h100", UBUNTU, "{source: mirror}", ["the mirror's index"]),
        (
            "dgx-h100",
            UBUNTU,
            "{kernel: 6.8.0-79-generic, ofed: doca}",
            [
                f"{REPOSITORY}/ubuntu2404/x86_64/Packages.gz",
                "the index of the site's DOCA-Host repository",
                "http://archive.ubuntu.com/ubuntu/dists/noble-updates/main/binary-amd64/Packages.xz",
            ],
        ),
        ("t4-4x", "debian-12", "{source: distribution}", []),
    ],
)
def test_a_lock_names_the_indexes_that_would_make_it_exact(tmp_path, sku, os, stack, needed):
    group = _locked(tmp_path, sku, os, stack)
    assert list(group.needs_index) == needed
    assert group.exact == (not needed)


REPOMD = """\
<?xml version="1.0" encoding="UTF-8"?>
<repomd xmlns="http://linux.duke.edu/metadata/repo"><data type="filelists"><location href="repodata/f.xml.gz"/></data>
<data type="primary"><location href="repodata/1f-primary.xml.gz"/></data></repomd>
"""
PRIMARY = """\
<metadata xmlns="http://linux.duke.edu/metadata/common"><package type="rpm"><name>kernel</name><arch>x86_64</arch>
<version epoch="0" ver="5.14.0" rel="687.50.1.el9_8"/></package></metadata>
"""


def test_a_repomd_leads_to_its_primary(tmp_path):
    folder = tmp_path / "repodata"
    folder.mkdir()
    (folder / "repomd.xml").write_text(REPOMD)
    (folder / "1f-primary.xml.gz").write_bytes(gzip.compress(PRIMARY.encode()))
    index = read_index([str(folder / "repomd.xml")])
    assert index.packages == {"kernel": (Entry("kernel", "5.14.0-687.50.1.el9_8", None),)}
    (folder / "repomd.xml").write_text(REPOMD.replace('"primary"', '"other"'))
    with pytest.raises(RackwrightError, match=r"repomd\.xml without a primary\.xml"):
        read_index([str(folder / "repomd.xml")])
    (tmp_path / "repomd.xml").write_text(REPOMD)
    with pytest.raises(RackwrightError, match="is not in a folder `repodata`"):
        read_index([str(tmp_path / "repomd.xml")])


def test_the_lock_file_keeps_what_was_read_and_by_which_hash(tmp_path):
    path = write_cluster(tmp_path, {"dgx-h100": "rocky-9"}, "{package_index: [primary.xml]}")
    (tmp_path / "primary.xml").write_text(PRIMARY)
    cluster = load_cluster(path)
    assert cluster.gpu_stack is not None
    lock = solve(cluster, shipped_tables(), read_index(cluster.gpu_stack.package_index)).lock
    assert lock.index == ("primary.xml",)
    (digest,) = lock.index_sha256.values()
    assert digest in lock_text(lock, "demo.yaml")
    assert len(digest) == 64
