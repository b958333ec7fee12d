"""The kernel role's checks: each passes, fails, and reports when it cannot know."""

from __future__ import annotations

import shlex

import pytest

from rackwright.lock.for_roles import component, group_of
from rackwright.model.types import Platform
from rackwright.roles.kernel import bridges, modules
from rackwright.roles.kernel.options import KernelOptions, Modules
from rackwright.roles.kernel.verify import CHECKS
from tests.unit.roles.driver_sites import KERNEL, debian
from tests.unit.roles.fake_facts import answer, unit
from tests.unit.roles.fake_host import FakeHost, claimed, judged
from tests.unit.roles.stack_sites import site, worker
from tests.unit.roles.stack_tools import installed

HELD = "the declared kernel is installed and held"
RUNS = "the running kernel is the declared one"
BOOTS = "the declared kernel boots by default"
LINE = "the running kernel has the declared arguments"
NEXT = "the next boot has the declared arguments"
PAGES = "the declared huge pages are reserved"
LOADED = "the declared modules are loaded"
KEPT_OUT = "blacklisted modules are not loaded"
PARAMETERS = "loaded modules have the declared parameters"
IOMMU = "the IOMMU is in passthrough mode"
AT_BOOT = "ACS is disabled at every boot"
ACS = "no PCI bridge redirects peer-to-peer traffic"
SIZE = "the kernel has the declared page size"
MITIGATIONS = "CPU vulnerabilities are mitigated as declared"

OPTIONS = KernelOptions(
    hugepages={"2M": 8},
    mitigations="auto,nosmt",
    arguments={"nosoftlockup": True},
    remove=("quiet",),
    page_size="4k",
    modules=Modules(load=("ib_umad",), options={"nvme-core": {"multipath": "N"}}, blacklist=("usb-storage",)),
)
DECLARED = "intel_iommu=on iommu=pt mitigations=auto,nosmt nosoftlockup"
CMDLINE = "cat /proc/cmdline"
MENU = "sh -c " + shlex.quote(
    "sed -n 's/^[[:space:]]*linux[[:space:]][[:space:]]*//p;T;q' /boot/grub/grub.cfg"
)
HUGE = "cat /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
PROC = "cat /proc/modules"
CONFIG = "modprobe --showconfig"
FOLDER, PARAMETER = "test -d /sys/module/nvme_core", "cat /sys/module/nvme_core/parameters/multipath"
GROUPS = "cat /sys/kernel/iommu_groups/*/type"
READ = {"command -v setpci": "/usr/bin/setpci\n"}
ASK = f"sh -c {shlex.quote(bridges.READ)}"
LISTED = "sh -c " + shlex.quote("cd /sys/devices/system/cpu/vulnerabilities && grep -H . *")
GONE = answer(modules.kept_out_read("usb-storage"), "not loaded")
THERE = answer(modules.kept_out_read("usb-storage"), "loaded")
OUT = {PROC: "x 1 0 - Live\n", CONFIG: "blacklist usb-storage\n", **GONE}
FIXED = "meltdown:Mitigation: PTI\nspectre_v2:Mitigation: Retpolines\n"


def node(folder, options=OPTIONS, **changes):
    cluster = site(folder, {"kernel": options}, worker("gpu1", 11, "dgx-h100", **changes), locked=False)
    return cluster, cluster.by_name["gpu1"]


def result(folder, name, answers, options=OPTIONS, **changes):
    return judged("kernel", CHECKS, name, *node(folder, options, **changes), FakeHost(answers))


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (HELD, {}, "OUT OF SCOPE", "neither the lock nor `release` names a kernel for this node"),
        (LINE, {CMDLINE: f"root=/dev/sda {DECLARED}\n"}, "PASS", f"{DECLARED} no quiet"),
        (LINE, {CMDLINE: f"quiet {DECLARED} iommu=off\n"}, "FAIL",
         ("/proc/cmdline lacks iommu=pt and has quiet, which must not be set: "
          "a reboot is due, or the boot loader does not read its settings")),
        (LINE, {CMDLINE: "\n"}, "UNKNOWN", "/proc/cmdline is empty"),
        (LINE, {}, "UNKNOWN", None),
        (NEXT, {MENU: f"/vmlinuz {DECLARED}\n"}, "PASS", None),
        (NEXT, {MENU: "/vmlinuz root=/dev/sda\n"}, "FAIL", None),
        (NEXT, {MENU: ""}, "UNKNOWN", "the next boot's command line is empty"),
        (NEXT, {}, "UNKNOWN", None),
        (PAGES, {HUGE: "8\n"}, "PASS", "8 of 2M"),
        (PAGES, {HUGE: "3\n"}, "FAIL", "3 of 8 pages of 2M are reserved: memory was in use, and a reboot reserves them"),
        (PAGES, {HUGE: ""}, "UNKNOWN", None),
        (PAGES, {}, "UNKNOWN", None),
        (LOADED, answer(modules.loaded_read("ib_umad"), "loaded\n"), "PASS", "ib_umad"),
        (LOADED, {**answer(modules.loaded_read("ib_umad"), ""), PROC: "x 1 0 - Live\n"}, "FAIL", "not loaded: ib_umad"),
        (LOADED, {**answer(modules.loaded_read("ib_umad"), ""), PROC: ""}, "UNKNOWN", None),
        (LOADED, {}, "UNKNOWN", None),
        (KEPT_OUT, OUT, "PASS", "not loaded: usb-storage"),
        (KEPT_OUT, {**OUT, PROC: "usb_storage 1 0 - Live\n"}, "FAIL", "loaded: usb-storage: a reboot is due"),
        (KEPT_OUT, {**OUT, **THERE}, "FAIL", "usb-storage is built into this kernel: modprobe cannot blacklist it"),
        (KEPT_OUT, {**OUT, CONFIG: "alias x y\n"}, "FAIL",
         "modprobe may load usb-storage: no configuration it reads blacklists it"),
        (KEPT_OUT, {**OUT, PROC: ""}, "UNKNOWN", None),
        (KEPT_OUT, {PROC: "x 1 0 - Live\n", **GONE}, "UNKNOWN", None),
        (PARAMETERS, {FOLDER: "", PARAMETER: "N\n"}, "PASS", "1 parameters"),
        (PARAMETERS, {FOLDER: "", PARAMETER: "Y\n"}, "FAIL", "multipath of nvme-core is Y, not N: a reboot is due"),
        (PARAMETERS, {FOLDER: ""}, "UNKNOWN", None),
        (PARAMETERS, {FOLDER: (1, "", "")}, "UNKNOWN", "nvme-core is not loaded, and takes its parameters when it is"),
        (IOMMU, {GROUPS: "identity\nidentity\n"}, "PASS", "every IOMMU group is identity"),
        (IOMMU, {GROUPS: "identity\nDMA-FQ\n"}, "FAIL", "IOMMU groups are DMA-FQ, identity, not identity alone"),
        (IOMMU, {GROUPS: ""}, "UNKNOWN", "the kernel lists no IOMMU group"),
        (IOMMU, {}, "UNKNOWN", None),
        (ACS, {**READ, ASK: "0000:00:00.0 0000\n0000:00:01.0 setpci: Extended Capability 000d not found - no capabilities\n"},
         "PASS", "2 bridges redirect nothing"),
        (ACS, {**READ, ASK: "0000:00:00.0 0000\n0000:00:01.0 001d\n"}, "FAIL", "ACS is on at 1 bridges, e.g. 0000:00:01.0 (001d)"),
        (ACS, {**READ, ASK: "0000:00:00.0 pcilib: Cannot open /sys\n"}, "UNKNOWN", None),
        (ACS, {**READ, ASK: ""}, "UNKNOWN", "lspci lists no PCI bridge"),
        (ACS, {}, "UNKNOWN", None),
        (AT_BOOT, unit("rackwright-acs-off.service"), "PASS", None),
        (AT_BOOT, unit("rackwright-acs-off.service", state="disabled"), "FAIL",
         "rackwright-acs-off.service is disabled: bridges redirect peers after a reboot"),
        (AT_BOOT, {}, "UNKNOWN", None),
        (SIZE, {"getconf PAGESIZE": "4096\n"}, "PASS", "4096 bytes"),
        (SIZE, {"getconf PAGESIZE": "65536\n"}, "FAIL", "pages are of 65536 bytes, not 4096: a reboot is due"),
        (SIZE, {}, "UNKNOWN", None),
        (MITIGATIONS, {LISTED: FIXED, CMDLINE: DECLARED}, "PASS", "2 vulnerabilities, none of them open"),
        (MITIGATIONS, {LISTED: f"{FIXED}mds:Mitigation: Clear CPU buffers; SMT vulnerable\n", CMDLINE: DECLARED}, "FAIL",
         "SMT leaves mds open, but `mitigations` is auto,nosmt: a reboot is due"),
        (MITIGATIONS, {LISTED: FIXED, CMDLINE: "mitigations=off\n"}, "FAIL",
         "the kernel was started with mitigations=off, which is not declared"),
        (MITIGATIONS, {LISTED: f"{FIXED}mds:Vulnerable: no microcode\n", CMDLINE: DECLARED}, "WARN",
         "the kernel has no mitigation for mds: install newer microcode"),
        (MITIGATIONS, {LISTED: ""}, "UNKNOWN", "the kernel lists no CPU vulnerabilities"),
        (MITIGATIONS, {}, "UNKNOWN", None),
    ],
)  # fmt: skip
def test_check(tmp_path, name, answers, status, evidence):
    found = result(tmp_path, name, answers)
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


@pytest.mark.parametrize(
    ("listed", "status"),
    [("meltdown:Vulnerable\nspectre_v2:Vulnerable\n", "PASS"), (FIXED, "FAIL"), ("meltdown:Not affected\n", "PASS")],
)  # fmt: skip
def test_mitigations_that_are_declared_off(tmp_path, listed, status):
    assert result(tmp_path, MITIGATIONS, {LISTED: listed}, KernelOptions(mitigations="off")).status == status


def test_the_locked_kernel(tmp_path):
    cluster = debian(tmp_path, {"kernel": KernelOptions()})
    gpu = cluster.by_name["gpu1"]
    versions = dict(package.split("=") for package in component(group_of(cluster, gpu), "kernel"))
    default = f"grep -q '^ *set default=.*with Linux {KERNEL}\"' /boot/grub/grub.cfg && echo {KERNEL}"
    for name, answers, status, evidence in (
        (HELD, installed(versions), "PASS", None),
        (HELD, installed(versions, held=False), "FAIL", "is not held"),
        (HELD, {}, "UNKNOWN", None),
        (RUNS, {"uname -r": f"{KERNEL}\n"}, "PASS", KERNEL),
        (
            RUNS,
            {"uname -r": "6.1.0-56-amd64\n"},
            "FAIL",
            f"the running kernel is 6.1.0-56-amd64, not {KERNEL}",
        ),
        (RUNS, {}, "UNKNOWN", None),
        (BOOTS, answer(default, f"{KERNEL}\n"), "PASS", KERNEL),
        (BOOTS, answer(default, ""), "FAIL", f"the boot loader does not boot {KERNEL} by default"),
        (BOOTS, {}, "UNKNOWN", None),
    ):
        found = judged("kernel", CHECKS, name, cluster, gpu, FakeHost(answers))
        assert found.status == status, found
        assert evidence is None or evidence in found.evidence


def test_a_container_has_none_of_it_by_name(tmp_path):
    cluster, gpu = node(tmp_path, platform=Platform.CONTAINER)
    assert set(claimed("kernel", CHECKS, gpu)) == {check.name for check in CHECKS}
    for check in CHECKS:
        found = judged("kernel", CHECKS, check.name, cluster, gpu, FakeHost({}, always="x"))
        assert found.status == "OUT OF SCOPE", check.name


def test_nothing_declared_is_little_claimed(tmp_path):
    _, gpu = node(tmp_path, KernelOptions(iommu="leave", acs="leave"))
    assert claimed("kernel", CHECKS, gpu) == (HELD, RUNS, BOOTS)
