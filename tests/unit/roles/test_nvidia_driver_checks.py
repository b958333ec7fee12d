"""The nvidia_driver role's checks: each passes, fails, and reports when it cannot know.

`dkms status` and modinfo as dkms 3.0.10 and kmod 30 printed them on a Debian 12 lab node, 2026-11-21;
/proc/driver/nvidia and mokutil's answers are written from public logs.
"""

from __future__ import annotations

import pytest

from rackwright.claims.check import Undetermined
from rackwright.lock.for_roles import component, group_of
from rackwright.model.types import Platform
from rackwright.roles.nvidia_driver.options import ModuleOptions, NvidiaDriverOptions, Signing
from rackwright.roles.nvidia_driver.readings import parse_dkms
from rackwright.roles.nvidia_driver.verify import CHECKS
from tests.gpu_repository import REVISION
from tests.unit.roles.driver_sites import KERNEL, VERSION, debian
from tests.unit.roles.fake_host import FakeHost, claimed, judged
from tests.unit.roles.stack_sites import site, worker
from tests.unit.roles.stack_tools import installed

INSTALLED = "the driver is installed as locked and held"
WHOLE = "every package is completely installed"
BUILT = "the driver's modules are built for the locked kernel"
FILE = "modprobe loads the locked driver"
LOADED = "the loaded driver is the locked one"
PARAMETERS = "the driver's parameters are the declared ones"
KEPT_OUT = "nouveau is blacklisted"
NOT_LOADED = "nouveau is not loaded"
SECURE_BOOT = "Secure Boot is as declared"
ENROLLED = "the key that signs modules is enrolled"

DKMS = f"nvidia-current-open/{VERSION}, {KERNEL}, x86_64: installed\n"
MODINFO = f"modinfo -k {KERNEL} -F version nvidia-current-open"
PROC = f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {VERSION}  Release Build  (dvs-builder)\nGCC version:  gcc\n"
CAT = "cat /proc/driver/nvidia/version"
PARAMS = "cat /proc/driver/nvidia/params"


@pytest.fixture
def cluster(tmp_path):
    return debian(tmp_path, {"nvidia_driver": NvidiaDriverOptions()})


def _versions(cluster, *parts):
    group = group_of(cluster, cluster.by_name["gpu1"])
    return dict(package.split("=") for package in component(group, *parts))


def test_every_check_is_made_of_gpu_nodes_alone(cluster):
    assert len(claimed("nvidia_driver", CHECKS, cluster.by_name["gpu1"])) == len(CHECKS) == 10
    assert claimed("nvidia_driver", CHECKS, cluster.by_name["cpu1"]) == ()


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (WHOLE, {"dpkg --audit": ""}, "PASS", "dpkg reports no incomplete package"),
        (WHOLE, {"dpkg --audit": "The following packages are only half configured:\n nvidia-x\n"}, "FAIL",
         "dpkg reports incomplete packages: The following packages are only half configured: nvidia-x"),
        (WHOLE, {}, "UNKNOWN", None),
        (BUILT, {"dkms status": DKMS}, "PASS", f"{VERSION} is installed for {KERNEL}"),
        (BUILT, {"dkms status": ""}, "FAIL", f"no module of {VERSION} is built for {KERNEL}"),
        (BUILT, {"dkms status": f"nvidia-current-open/{VERSION}: added\n"}, "FAIL",
         f"no module of {VERSION} is built for {KERNEL}"),
        (BUILT, {"dkms status": DKMS.replace("-50-", "-56-")}, "FAIL",
         f"no module of {VERSION} is built for {KERNEL}"),
        (BUILT, {"dkms status": DKMS.replace(VERSION, "535.1.1")}, "FAIL",
         f"no module of {VERSION} is built for {KERNEL}"),
        (BUILT, {"dkms status": DKMS.replace("installed", "built")}, "FAIL",
         f"nvidia-current-open {VERSION} is built for {KERNEL}"),
        (BUILT, {"dkms status": DKMS.replace("installed", "installed (WARNING! Diff between built and installed module!)")},
         "FAIL", None),
        (BUILT, {"dkms status": "?"}, "UNKNOWN", "unreadable answer of dkms: '?'"),
        (BUILT, {}, "UNKNOWN", None),
        (FILE, {MODINFO: f"{VERSION}\n"}, "PASS", f"nvidia-current-open {VERSION} on {KERNEL}"),
        (FILE, {MODINFO: "550.163.01\n"}, "FAIL",
         f"modprobe would load nvidia-current-open 550.163.01 on {KERNEL}, not {VERSION}"),
        (FILE, {MODINFO: (1, "", "modinfo: ERROR: Module nvidia-current-open not found.\n")}, "FAIL",
         f"modprobe would load nvidia-current-open not at all on {KERNEL}, not {VERSION}"),
        (FILE, {}, "UNKNOWN", "cannot run `modinfo`: not found"),
        (LOADED, {CAT: PROC}, "PASS", f"{VERSION}, open modules"),
        (LOADED, {CAT: PROC.replace(VERSION, "535.216.03")}, "FAIL",
         f"driver 535.216.03 is loaded, not the locked {VERSION}: a reboot is due"),
        (LOADED, {CAT: PROC.replace("Open Kernel", "Kernel")}, "FAIL",
         "proprietary modules are loaded, not the locked open ones: a reboot is due"),
        (LOADED, {CAT: (1, "", "cat: /proc/driver/nvidia/version: No such file or directory\n")}, "FAIL",
         "no driver is loaded: see `dmesg` for why, or load it with `modprobe nvidia`"),
        (LOADED, {CAT: (1, "", "cat: Input/output error\n")}, "UNKNOWN", None),
        (LOADED, {CAT: "rubbish\n"}, "UNKNOWN", "/proc/driver/nvidia/version is unreadable: 'rubbish'"),
        (PARAMETERS, {PARAMS: "ModifyDeviceFiles: 1\nRmProfilingAdminOnly: 0\n"}, "PASS", "1 parameters"),
        (PARAMETERS, {PARAMS: "RmProfilingAdminOnly: 1\n"}, "FAIL",
         "RmProfilingAdminOnly is 1, not 0: a reboot is due"),
        (PARAMETERS, {PARAMS: "ModifyDeviceFiles: 1\n"}, "UNKNOWN",
         "the loaded driver does not report its RmProfilingAdminOnly"),
        (PARAMETERS, {PARAMS: ""}, "UNKNOWN", "/proc/driver/nvidia/params lists no parameter"),
        (KEPT_OUT, {"modprobe --showconfig": "alias x y\nblacklist nouveau\n"}, "PASS", "nouveau is blacklisted"),
        (KEPT_OUT, {"modprobe --showconfig": "blacklist nouveau_x\n"}, "FAIL",
         "modprobe may load nouveau: no configuration it reads blacklists it"),
        (KEPT_OUT, {}, "UNKNOWN", None),
        (NOT_LOADED, {"cat /proc/modules": "nvidia 1 0 - Live\n"}, "PASS", "nouveau is not loaded"),
        (NOT_LOADED, {"cat /proc/modules": ""}, "UNKNOWN", "/proc/modules is empty"),
        (NOT_LOADED, {"cat /proc/modules": "nouveau 1 0 - Live\n"}, "FAIL",
         "nouveau is loaded and holds the GPUs: a reboot is due"),
        (NOT_LOADED, {}, "UNKNOWN", None),
        (SECURE_BOOT, {"mokutil --sb-state": "SecureBoot disabled\n"}, "PASS", "Secure Boot is off"),
        (SECURE_BOOT, {"mokutil --sb-state": (1, "", "EFI variables are not supported on this system\n")}, "PASS",
         "Secure Boot is off"),
        (SECURE_BOOT, {"mokutil --sb-state": "SecureBoot enabled\n"}, "FAIL",
         "Secure Boot is on, but `gpu_stack.secure_boot` is off"),
        (SECURE_BOOT, {"mokutil --sb-state": "?"}, "UNKNOWN", None),
        (SECURE_BOOT, {}, "UNKNOWN", "cannot run `mokutil`: not found"),
        (ENROLLED, {}, "OUT OF SCOPE", "`gpu_stack.secure_boot` is declared off: no signature is needed"),
    ],
)  # fmt: skip
def test_check(cluster, name, answers, status, evidence):
    found = judged("nvidia_driver", CHECKS, name, cluster, cluster.by_name["gpu1"], FakeHost(answers))
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


def test_installed_and_held(cluster):
    name, versions = INSTALLED, _versions(cluster, "modules", "pin", "driver")
    first = next(iter(versions))
    for answers, status, evidence in (
        (installed(versions), "PASS", None),
        (installed(versions, held=False), "FAIL", f"{first} is not held"),
        (installed({**versions, first: "1-1"}), "FAIL", f"{first} is 1-1, not {versions[first]}"),
        ({}, "UNKNOWN", None),
    ):
        found = judged("nvidia_driver", CHECKS, name, cluster, cluster.by_name["gpu1"], FakeHost(answers))
        assert found.status == status, found
        assert evidence is None or evidence in found.evidence


def test_in_a_container_what_the_kernel_would_tell_is_out_of_scope(tmp_path):
    made = debian(tmp_path, {"nvidia_driver": NvidiaDriverOptions()}, platform=Platform.CONTAINER)
    for name in (LOADED, PARAMETERS, NOT_LOADED, SECURE_BOOT, ENROLLED):
        found = judged("nvidia_driver", CHECKS, name, made, made.by_name["gpu1"], FakeHost({}, always="x"))
        assert found.status == "OUT OF SCOPE", name


def test_secure_boot(tmp_path):
    options = NvidiaDriverOptions(
        signing=Signing(key="/root/mok.key", certificate="/root/mok.der"),
        modules=ModuleOptions(stream_memory_operations=True),
    )
    made = debian(tmp_path, {"nvidia_driver": options}, secure_boot=True, mok_enrolled=True)
    test = "mokutil --test-key /root/mok.der"
    for printed, status in (
        ((1, "/root/mok.der is already enrolled\n", ""), "PASS"),
        ("/root/mok.der is not enrolled\n", "FAIL"),
        ("?", "UNKNOWN"),
    ):
        found = judged(
            "nvidia_driver", CHECKS, ENROLLED, made, made.by_name["gpu1"], FakeHost({test: printed})
        )
        assert found.status == status
    reported = 'RmProfilingAdminOnly: 0\nEnableStreamMemOPs: 1\nRegistryDwords: "PeerMappingOverride=1;"\n'
    for text, status in ((reported, "PASS"), (reported.replace("Override=1", "Override=0"), "FAIL")):
        found = judged(
            "nvidia_driver", CHECKS, PARAMETERS, made, made.by_name["gpu1"], FakeHost({PARAMS: text})
        )
        assert found.status == status


def test_without_a_locked_kernel_every_kernel_with_headers_counts(tmp_path):
    made = site(tmp_path, {"nvidia_driver": NvidiaDriverOptions()}, worker("gpu1", 11, "dgx-gb200"))
    version = REVISION.split("-")[0]
    list_them = "sh -c 'ls -d /lib/modules/*/build'"
    answers = {
        list_them: "/lib/modules/6.12.1-amd64/build\n/lib/modules/6.12.2-amd64/build\n",
        "dkms status": f"nvidia/{version}, 6.12.1-amd64, x86_64: installed\n",
    }
    found = judged("nvidia_driver", CHECKS, BUILT, made, made.by_name["gpu1"], FakeHost(answers))
    assert (found.status, found.evidence) == ("FAIL", f"no module of {version} is built for 6.12.2-amd64")


def test_parse_dkms():
    assert parse_dkms("") == []
    with pytest.raises(Undetermined):
        parse_dkms("Error! something\n")
