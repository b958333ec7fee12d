"""What is chosen: a truth table, three whole files, and indexes."""

from __future__ import annotations

import gzip
import hashlib
import subprocess
import sys

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.errors import RackwrightError
from rackwright.lock.index import Index, parse_packages, read_index
from rackwright.lock.lock_file import lock_text, read_lock
from rackwright.lock.request import shipped_tables
from rackwright.lock.solve import solve
from rackwright.lock.versions import at_least, debian_key, newest, upstream
from tests.unit.lock.clusters import write_cluster

UBUNTU = "ubuntu-24.04"


def solved(folder, kinds, stack, index=None):
    cluster = load_cluster(write_cluster(folder, kinds, stack))
    solution = solve(cluster, shipped_tables(), index or Index())
    assert solution.refused == ()
    return solution.lock


# SKU, OS, request -> driver, open modules, CUDA, fabricmanager, nvlsm, IMEX
TRUTH = [
    ("dgx-a100", UBUNTU, "{}", ("580.173.02", True, "13.0", True, False, False)),
    ("dgx-h100", UBUNTU, "{}", ("580.173.02", True, "13.0", True, False, False)),
    ("hgx-h200", "ubuntu-22.04", "{}", ("580.173.02", True, "13.0", True, False, False)),
    ("dgx-b200", UBUNTU, "{}", ("580.173.02", True, "13.0", True, True, False)),
    ("dgx-b300", UBUNTU, "{security: enforce}", ("580.173.02", True, "13.1", True, True, False)),
    ("dgx-gb200", UBUNTU, "{}", ("580.173.02", True, "13.0", False, False, True)),
    ("dgx-gb300", UBUNTU, "{}", ("580.173.02", True, "13.0", False, False, True)),
    ("dgx1-v100", UBUNTU, "{}", ("580.173.02", False, "12.9", False, False, False)),
    ("t4-4x", UBUNTU, "{modules: proprietary}", ("580.173.02", False, "13.0", False, False, False)),
    ("l40s-8x", UBUNTU, '{driver: {branch: "595"}}', ("595.91.07", True, "13.2", False, False, False)),
    ("l40s-8x", UBUNTU, "{driver: {version: 580.95.05}}", ("580.95.05", True, "13.0", False, False, False)),
    ("dgx-h100", UBUNTU, '{driver: {branch: "570"}}', ("570.211.01", True, "12.8", True, False, False)),
    ("dgx-h100", UBUNTU, '{driver: {branch: "535"}}', ("535.309.01", True, "12.9", True, False, False)),
    ("dgx-h100", UBUNTU, '{cuda: "13.3"}', ("580.173.02", True, "13.3", True, False, False)),
    ("dgx-h100", UBUNTU, '{cuda: "none"}', ("580.173.02", True, None, True, False, False)),
    ("dgx-h100", "rocky-9", "{}", ("580.159.03", True, "13.0", True, False, False)),
    ("dgx-h100", "debian-12", "{}", ("570.195.03", True, None, True, False, False)),
    ("dgx-h100", UBUNTU, "{source: mirror}", ("580.173.02", True, "13.0", True, False, False)),
    (
        "t4-4x",
        "debian-12",
        "{source: distribution}",
        ("535.261.03", True, "11.8", False, False, False),
    ),
    (
        "t4-4x",
        "debian-12",
        "{source: distribution, modules: proprietary}",
        ("535.309.01", False, "11.8", False, False, False),
    ),
    (
        "t4-4x",
        "debian-13",
        "{source: distribution, modules: proprietary}",
        ("550.163.01", False, "12.4", False, False, False),
    ),
    (
        "t4-4x",
        "debian-13",
        "{source: distribution, driver: {version: 535.274.02}, modules: proprietary}",
        ("535.274.02", False, "12.4", False, False, False),
    ),
]


@pytest.mark.parametrize(("sku", "os", "stack", "expected"), TRUTH)
def test_truth_table(tmp_path, sku, os, stack, expected):
    (group,) = solved(tmp_path, {sku: os}, stack).groups
    found = (
        group.driver_version,
        group.open_modules,
        group.cuda,
        group.fabricmanager,
        group.nvlsm,
        group.imex,
    )
    assert found == expected
    assert {name for part in group.components.values() for name in part} == set(group.packages)
    assert list(group.packages) == sorted(group.packages)
    assert group.driver_branch == group.driver_version.split(".")[0]


def test_fabricmanager_and_nscq_have_the_drivers_version(tmp_path):
    (group,) = solved(tmp_path, {"dgx-h100": UBUNTU}, "{}").groups
    names = ("nvidia-open", "nvidia-fabricmanager", "libnvidia-nscq", "nvidia-persistenced")
    assert {group.packages[name] for name in names} == {"580.173.02-*"}
    older = solved(tmp_path, {"dgx-h100": UBUNTU}, '{driver: {branch: "570"}}').groups[0]
    assert (
        older.packages["nvidia-fabricmanager-570"] == older.packages["libnvidia-nscq-570"] == "570.211.01-*"
    )
    assert not any(name.startswith("nvidia-driver-pinning") for name in older.packages)


def test_the_container_toolkit_has_one_version(tmp_path):
    (group,) = solved(tmp_path, {"dgx-h100": UBUNTU}, "{}").groups
    four = [name for name in group.packages if "container" in name]
    assert len(four) == 4
    assert {group.packages[name] for name in four} == {"1.20.0-*"}


@pytest.mark.parametrize(
    ("sku", "stack", "major", "nccl"),
    [
        ("dgx1-v100", "{}", 13, "2.30.4-1+cuda12.*"),  # its toolkit is 12.9, its driver 580
        ("dgx-h100", '{cuda: "12.9"}', 13, "2.30.4-1+cuda12.*"),
        ("dgx-h100", '{cuda: "none"}', 13, "2.30.4-1+cuda13.*"),
        ("dgx-h100", '{driver: {branch: "570"}}', 12, "2.30.4-1+cuda12.*"),
        ("dgx-h100", '{driver: {branch: "535"}, cuda: "12.9"}', 12, "2.30.4-1+cuda12.*"),
    ],
)
def test_dcgm_is_of_the_driver_s_cuda_major_and_nccl_of_the_toolkit_s(tmp_path, sku, stack, major, nccl):
    (group,) = solved(tmp_path, {sku: UBUNTU}, stack).groups
    named = sorted(name for name in group.components["dcgm"] if "cuda" in name)
    assert named == [f"datacenter-gpu-manager-4-{part}cuda{major}" for part in ("", "proprietary-")]
    assert group.packages["libnccl2"] == nccl


def test_the_kernel_the_driver_is_known_to_build_on(tmp_path):
    (group,) = solved(tmp_path, {"t4-4x": "debian-12"}, "{source: distribution}").groups
    assert group.kernel == "6.1.0-50-amd64"
    assert group.packages["linux-headers-6.1.0-50-amd64"] == "6.1.176-1"
    assert any("instead of the newest, 6.1.0-56-amd64" in note for note in group.notes)
    (other,) = solved(tmp_path, {"t4-4x": "debian-12"}, "{source: distribution, modules: proprietary}").groups
    assert other.kernel == "6.1.0-56-amd64"
    assert any(note.startswith("It is unknown whether the driver builds") for note in other.notes)


def test_doca_and_a_key(tmp_path):
    (group,) = solved(
        tmp_path, {"dgx-h100": UBUNTU}, "{ofed: doca, secure_boot: true, mok_enrolled: true}"
    ).groups
    assert (group.ofed, group.packages["doca-ofed"]) == ("doca", "3.2.3*")


def test_other_gpus_and_none_are_left_out(tmp_path):
    cluster = load_cluster(write_cluster(tmp_path, {"mi300x-8x": UBUNTU}, "{}"))
    solution = solve(cluster, shipped_tables(), Index())
    assert (solution.lock.groups, solution.skipped) == ((), ("mi300x-8x",))


def test_without_a_section_there_is_nothing_to_lock(tmp_path):
    cluster = load_cluster(write_cluster(tmp_path, {"dgx-h100": UBUNTU}, None))
    with pytest.raises(RackwrightError, match="no section gpu_stack"):
        solve(cluster, shipped_tables(), Index())


def test_names_of_nodes_are_not_in_the_lock_so_that_a_new_node_changes_nothing(tmp_path):
    path = write_cluster(tmp_path, {"dgx-h100": UBUNTU}, "{}")
    before = solve(load_cluster(path), shipped_tables(), Index()).lock
    path.write_text(path.read_text().replace("w1[1-2]", "w1[1-8]"))
    assert solve(load_cluster(path), shipped_tables(), Index()).lock == before


WHOLE = {
    "h100": ({"dgx-h100": UBUNTU}, "{source: nvidia}", 21),
    "archive": ({"t4-4x": "debian-12", "l40s-8x": "debian-12"}, "{source: distribution}", 13),
    "b200": ({"hgx-b200": UBUNTU}, "{ofed: doca, security: enforce}", 24),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_file_is_stable_and_read_again(tmp_path, name):
    kinds, stack, count = WHOLE[name]
    cluster = load_cluster(write_cluster(tmp_path, kinds, stack))
    lock = solve(cluster, shipped_tables(), Index()).lock
    assert {len(group.packages) for group in lock.groups} == {count}
    text = lock_text(lock, "demo.yaml")
    assert text == lock_text(solve(cluster, shipped_tables(), Index()).lock, "demo.yaml")
    assert text.startswith("# Written by `rackwright lock`")
    assert "no package index was read" in text
    cluster.lock_path.write_text(text)
    again = read_lock(cluster)
    assert again == lock
    for node in cluster.nodes:
        group = again.group_of(node)
        assert (group is None) == (node.sku.gpus is None)
        if group is not None:
            assert (group.sku, group.os) == (node.sku.name, node.os)
            assert group.exact == (name == "archive")


def test_a_lock_that_is_missing_or_damaged_is_an_error(tmp_path):
    cluster = load_cluster(write_cluster(tmp_path, {"dgx-h100": UBUNTU}, "{}"))
    with pytest.raises(RackwrightError, match="The lock file"):
        read_lock(cluster)
    cluster.lock_path.write_text("version: 2\n")
    with pytest.raises(RackwrightError, match="is damaged"):
        read_lock(cluster)


def packages(**versions):
    return "\n\n".join(
        f"Package: {name.replace('_', '-')}\nVersion: {version}\nArchitecture: amd64\n"
        f"SHA256: {hashlib.sha256(name.encode()).hexdigest()}\nDescription: x\n more"
        for name, version in versions.items()
    )


MIRROR = packages(
    nvidia_open="580.200.01-1ubuntu1",
    nvidia_modprobe="580.200.01-1ubuntu1",
    nvidia_persistenced="580.200.01-1ubuntu1",
    nvidia_fabricmanager="580.200.01-1",
    libnvidia_nscq="580.200.01-1",
    cuda_toolkit_13_0="13.0.2-1",
)
REST = """

Package: nvidia-driver-pinning-580.200.01
Version: 580.200.01-1
SHA256: 00
"""
LEAN = '{source: mirror, nccl: "none", dcgm: "none", container_toolkit: "none"}'


def test_a_mirror_is_what_its_index_says(tmp_path):
    file = tmp_path / "Packages.gz"
    file.write_bytes(gzip.compress((MIRROR + REST).encode()))
    (group,) = solved(tmp_path, {"dgx-h100": UBUNTU}, LEAN, read_index([str(file)])).groups
    assert group.driver_version == "580.200.01"
    assert group.packages["nvidia-open"] == "580.200.01-1ubuntu1"
    assert group.packages["nvidia-fabricmanager"] == "580.200.01-1"
    assert group.sha256["nvidia-open"] == hashlib.sha256(b"nvidia_open").hexdigest()
    assert group.exact


def test_a_mirror_that_lacks_something_is_refused(tmp_path):
    text = MIRROR.replace("Package: libnvidia-nscq", "Package: other") + REST
    index = Index(("here",), {})
    for entry in parse_packages(text):
        index.packages[entry.name] = (entry,)
    cluster = load_cluster(write_cluster(tmp_path, {"dgx-h100": UBUNTU}, LEAN))
    (refused,) = solve(cluster, shipped_tables(), index).refused
    assert [reason.message for reason in refused.reasons] == [
        "The package index has no libnvidia-nscq 580.200.01-*."
    ]


PRIMARY = """\
<?xml version="1.0" encoding="UTF-8"?>
<metadata xmlns="http://linux.duke.edu/metadata/common" xmlns:rpm="http://linux.duke.edu/metadata/rpm" packages="9">
%s</metadata>
"""
RPM = """\
<package type="rpm"><name>%s</name><arch>%s</arch><version epoch="%s" ver="%s" rel="1.el9"/>
<checksum type="sha256" pkgid="YES">%s</checksum></package>
"""
RPMS = {
    "nvidia-open": ("3", "580.200.01"),
    "nvidia-persistenced": ("3", "580.200.01"),
    "nvidia-fabricmanager": ("0", "580.200.01"),
    "libnvidia-nscq": ("0", "580.200.01"),
    "cuda-toolkit-13-0": ("0", "13.0.2"),
}


def test_an_rpm_repository_is_what_its_primary_xml_says(tmp_path):
    entries = [RPM % (name, "x86_64", *version, "ab" * 32) for name, version in RPMS.items()]
    entries.append(RPM % ("nvidia-open", "src", "3", "999.1", "00"))
    (tmp_path / "primary.xml.gz").write_bytes(gzip.compress((PRIMARY % "".join(entries)).encode()))
    index = read_index([str(tmp_path / "primary.xml.gz")])
    (group,) = solved(tmp_path, {"dgx-h100": "rocky-9"}, LEAN, index).groups
    assert group.exact
    assert group.packages["nvidia-open"] == "3:580.200.01-1.el9"
    assert group.packages["nvidia-fabricmanager"] == "580.200.01-1.el9"
    assert group.packages["cuda-toolkit-13-0"] == "13.0.2-1.el9"
    assert group.sha256["nvidia-open"] == "ab" * 32
    (tmp_path / "broken.xml").write_text("<metadata>")
    with pytest.raises(RackwrightError, match=r"is not a primary\.xml of an rpm repository"):
        read_index([str(tmp_path / "broken.xml")])


def test_an_index_that_cannot_be_read_is_an_error(tmp_path):
    with pytest.raises(RackwrightError, match=r"Cannot read the package index .*: no such file"):
        read_index([str(tmp_path / "Packages")])
    (tmp_path / "Packages.gz").write_bytes(b"\x1f\x8bbroken")
    with pytest.raises(RackwrightError, match="is not a `Packages` or"):
        read_index([str(tmp_path / "Packages.gz")])


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ("1.0-1", "1.0-2"),
        ("550.163.01-4~bpo13+1", "550.163.01-4"),
        ("550.163.01-2", "550.163.01-4~bpo13+1"),
        ("535.261.03-1", "535.309.01-0+deb12u1"),
        ("6.1.176-1", "6.1.192-2"),
        ("580.126.9-1", "580.126.20-1"),
        ("9:1.0-1", "10:0.1-1"),
        ("1.0~rc1-1", "1.0-1"),
        ("1.0-1", "1.0+b1-1"),
        ("5.14.0-570.12.1.el9_6", "5.14.0-570.13.1.el9_6"),  # rpm's
        ("1.0-1.el9", "1.0^20261101-1.el9"),
    ],
)
def test_debian_versions(lower, upper):
    assert debian_key(lower) < debian_key(upper)
    assert not debian_key(upper) < debian_key(lower)
    assert debian_key(lower) == debian_key(lower)


def test_validate_loads_no_library_that_only_the_lock_needs():
    code = "import sys, rackwright.cli.validate, rackwright.clusterfile.load; print('debian' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )
    assert done.stdout == "False\n"


def test_a_version_that_no_package_can_have():
    with pytest.raises(RackwrightError, match="'' is not a valid package version"):
        debian_key("")


def test_upstream_versions():
    assert at_least("580", "580.0.0")
    assert at_least("580.65.06", "580")
    assert not at_least("535.309.01", "580")
    assert newest(["580.95.05", "580.126.20", "580.105.08"]) == "580.126.20"
    assert upstream("1:4.6.0-1") == "4.6.0"
    assert upstream("535.309.01-0+deb12u1") == "535.309.01"
    assert upstream("2.22.3-1-1") == "2.22.3"
