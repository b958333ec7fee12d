"""The gdrcopy role: packages by family, the module, its device, and the checks."""

from __future__ import annotations

import pytest

from rackwright.model.types import Platform
from rackwright.osfamily.known import os_family
from rackwright.roles.gdrcopy.options import GdrcopyOptions
from rackwright.roles.gdrcopy.software import packages
from rackwright.roles.gdrcopy.verify import CHECKS
from tests.gpu_repository import GDRCOPY
from tests.unit.roles.fake_host import FakeHost, commands, content, judged, planned
from tests.unit.roles.stack_sites import site, worker
from tests.unit.roles.stack_tools import installed


@pytest.fixture
def cluster(tmp_path):
    return site(
        tmp_path,
        {"gdrcopy": GdrcopyOptions()},
        worker("gpu1", 11, "dgx-h100"),
        worker("box1", 12, "dgx-h100", platform=Platform.CONTAINER),
    )


def test_packages_by_family():
    assert packages(os_family("debian"), GdrcopyOptions(tests=True)) == (
        "gdrdrv-dkms=2.5.1-1",
        "libgdrapi=2.5.1-1",
        "gdrcopy-tests=2.5.1-1",
    )
    assert packages(os_family("el"), GdrcopyOptions(version="2.5.1-1.el9")) == (
        "gdrcopy-kmod=2.5.1-1.el9dkms",
        "gdrcopy=2.5.1-1.el9",
    )


def test_what_a_node_gets(cluster):
    plan = planned(cluster, cluster.by_name["gpu1"])
    (command,) = commands(plan, "Install GDRCopy")
    assert "install gdrdrv-dkms=2.5.1-1 libgdrapi=2.5.1-1\n" in command
    assert "apt-mark hold gdrdrv-dkms libgdrapi" in command
    assert content(plan, "/etc/modules-load.d/rackwright-gdrdrv.conf").splitlines()[1:] == ["gdrdrv"]
    (loading,) = commands(plan, "Load gdrdrv and open it to every user")
    assert loading == (
        "modprobe gdrdrv\n"
        "major=$(awk '$2 == \"gdrdrv\" { print $1 }' /proc/devices)\n"
        '[ -c /dev/gdrdrv ] || mknod /dev/gdrdrv c "${major:?gdrdrv is not among /proc/devices}" 0\n'
        "chmod 666 /dev/gdrdrv"
    )


def test_a_container_loads_nothing(cluster):
    names = [op.name for op in planned(cluster, cluster.by_name["box1"]).operations if op.role == "gdrcopy"]
    assert names == ["Load gdrdrv at boot", "Install GDRCopy"]
    found = judged("gdrcopy", CHECKS, LOADED, cluster, cluster.by_name["box1"], FakeHost({}))
    assert found.status == "OUT OF SCOPE"


def test_problems(tmp_path):
    options = GdrcopyOptions()
    made = site(tmp_path, {"gdrcopy": options}, worker("cpu1", 11, "cpu-16c-64g"), locked=False)
    assert list(options.problems(made)) == [
        ("", "No node of the role gdrcopy has NVIDIA's GPUs.", "remove the section")
    ]


INSTALLED = "GDRCopy is installed as declared and held"
LOADED = "gdrdrv is loaded at the declared version"
DEVICE = "every user can open /dev/gdrdrv"
MODULES = {"cat /proc/modules": "nvidia 1 0 - Live 0x0\ngdrdrv 1 0 - Live 0x0\n"}
MODINFO = "modinfo -F version gdrdrv"
STAT = "stat -c '%F %a' /dev/gdrdrv"


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (INSTALLED, installed({"gdrdrv-dkms": GDRCOPY, "libgdrapi": GDRCOPY}), "PASS",
         f"gdrdrv-dkms {GDRCOPY} and 1 more, held"),
        (INSTALLED, installed({"gdrdrv-dkms": "2.4.4-1", "libgdrapi": GDRCOPY}), "FAIL",
         f"gdrdrv-dkms is 2.4.4-1, not {GDRCOPY}"),
        (INSTALLED, {}, "UNKNOWN", None),
        (LOADED, {**MODULES, MODINFO: "2.5.1\n"}, "PASS", "gdrdrv 2.5.1"),
        (LOADED, {**MODULES, MODINFO: "2.4.4\n"}, "FAIL", "gdrdrv has version 2.4.4, not 2.5.1"),
        (LOADED, {"cat /proc/modules": "nvidia 1 0 - Live 0x0\n"}, "FAIL", "gdrdrv is not loaded"),
        (LOADED, {"cat /proc/modules": ""}, "UNKNOWN", "/proc/modules is empty"),
        (LOADED, MODULES, "UNKNOWN", None),
        (DEVICE, {STAT: "character special file 666\n"}, "PASS", "/dev/gdrdrv is open to every user"),
        (DEVICE, {STAT: "character special file 600\n"}, "FAIL", None),
        (DEVICE, {STAT: (1, "", "stat: cannot statx '/dev/gdrdrv': No such file or directory")}, "FAIL",
         "/dev/gdrdrv is missing"),
        (DEVICE, {}, "UNKNOWN", None),
    ],
)  # fmt: skip
def test_check(cluster, name, answers, status, evidence):
    found = judged("gdrcopy", CHECKS, name, cluster, cluster.by_name["gpu1"], FakeHost(answers))
    assert (found.status, evidence or found.evidence) == (status, found.evidence)
