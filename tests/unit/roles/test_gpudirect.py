"""The gpudirect role: kernel arguments by family and CPU, ACS, nvidia-peermem, and the checks."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest

from rackwright.catalog.read import catalogue
from rackwright.model.gpu_stack import GpuStack
from rackwright.model.types import Platform
from rackwright.osfamily.known import os_release
from rackwright.roles.gpudirect import bridges
from rackwright.roles.gpudirect.options import GpudirectOptions
from rackwright.roles.gpudirect.verify import CHECKS
from tests.unit.roles.fake_facts import unit
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, judged, planned
from tests.unit.roles.stack_sites import STACK, site, worker


def made(folder, *nodes, stack=STACK, **options):
    given = GpudirectOptions(**options)
    return site(folder, {"gpudirect": given}, *nodes or (worker("gpu1", 11, "dgx-h100"),), gpu_stack=stack)


def test_debian(tmp_path):
    cluster = made(tmp_path)
    plan = planned(cluster, cluster.by_name["gpu1"])
    assert content(plan, "/etc/default/grub.d/90-rackwright-gpudirect.cfg") == (
        "# Written by rackwright; changes made here are undone. Takes effect with update-grub and a reboot.\n"
        'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX intel_iommu=on iommu=pt"\n'
    )
    assert commands(plan, "Put the IOMMU into passthrough at the next boot") == ("update-grub",)
    assert "ExecStart=/usr/local/sbin/rackwright-acs-off\n" in content(
        plan, "/etc/systemd/system/rackwright-acs-off.service"
    )
    assert content(plan, "/etc/modules-load.d/rackwright-peermem.conf") is None


def test_el(tmp_path):
    cluster = site(
        tmp_path,
        {"gpudirect": GpudirectOptions()},
        worker("gpu1", 11, "dgx-h100", os=os_release("rocky-9")),
        locked=False,
    )
    plan = planned(cluster, cluster.by_name["gpu1"])
    assert commands(plan, "Put the IOMMU into passthrough at the next boot") == (
        "grubby --update-kernel=ALL --args='intel_iommu=on iommu=pt'",
    )
    assert content(plan, "/etc/default/grub.d/90-rackwright-gpudirect.cfg") is None


def test_the_boot_loader_is_read(tmp_path):
    grub = tmp_path / "grub.cfg"
    line = "grep -m1 '^[[:space:]]*linux' /boot/grub/grub.cfg"
    read = (
        f"line=$({line}); for one in intel_iommu=on iommu=pt; do "
        'case " $line " in *" $one "*) echo "$one" ;; esac; done'
    ).replace("/boot/grub/grub.cfg", str(grub))
    grub.write_text("menuentry x {\n\tlinux\t/vmlinuz root=/dev/sda quiet iommu=pt\n}\n")
    assert (
        subprocess.run(["sh", "-c", read], capture_output=True, text=True, check=True).stdout == "iommu=pt\n"
    )


@pytest.mark.parametrize(
    ("sku", "arguments"),
    [
        ("dgx-h100", ("intel_iommu=on", "iommu=pt")),
        ("dgx-a100", ("iommu=pt",)),
        ("dgx-gb200", ("iommu.passthrough=1",)),
    ],
)
def test_arguments_by_cpu(sku, arguments):
    assert bridges.kernel_arguments(worker("x", 11, sku)) == arguments
    assert "dgx-a100" in catalogue()


def test_a_container_gets_only_files(tmp_path):
    cluster = made(tmp_path, worker("box1", 11, "dgx-h100", platform=Platform.CONTAINER))
    assert [
        op.name for op in planned(cluster, cluster.by_name["box1"]).operations if op.role == "gpudirect"
    ] == []
    for check in CHECKS:
        found = judged("gpudirect", CHECKS, check.name, cluster, cluster.by_name["box1"], FakeHost({}))
        assert found.status == "OUT OF SCOPE"


DOCA = GpuStack(**{**STACK.model_dump(), "ofed": "doca"})


def test_peermem_only_by_option_and_with_doca(tmp_path):
    ((path, message, _),) = GpudirectOptions(peermem=True).problems(made(tmp_path, peermem=True))
    assert (path, message) == (
        "peermem",
        "nvidia-peermem needs DOCA-OFED's peer-memory interface, and the RDMA drivers are inbox.",
    )
    cluster = site(
        tmp_path,
        {"gpudirect": GpudirectOptions(peermem=True)},
        worker("gpu1", 11, "dgx-h100"),
        gpu_stack=DOCA,
        locked=False,
    )
    assert list(GpudirectOptions(peermem=True).problems(cluster)) == []
    plan = planned(cluster, cluster.by_name["gpu1"])
    assert content(plan, "/etc/modules-load.d/rackwright-peermem.conf").splitlines()[1:] == ["nvidia-peermem"]
    assert commands(plan, "Load nvidia-peermem") == ("modprobe nvidia-peermem",)


def test_proprietary_modules_have_no_dmabuf(tmp_path):
    cluster = made(tmp_path)
    text = cluster.lock_path.read_text()
    cluster.lock_path.write_text(text.replace("open_modules: true", "open_modules: false"))
    assert list(GpudirectOptions().lock_problems(cluster)) == [
        (
            "peermem",
            "gpu1 is locked to proprietary kernel modules, which do not support dma-buf.",
            "set `peermem: true` (with DOCA-OFED), or take the role from such nodes",
        )
    ]


def test_acs_is_cleared_where_it_is_on(tmp_path):
    """The program, against a setpci that keeps its registers in files."""
    cluster = made(tmp_path)
    script = content(planned(cluster, cluster.by_name["gpu1"]), "/usr/local/sbin/rackwright-acs-off")
    tools = tmp_path / "bin"
    tools.mkdir()
    lines = "\n".join(f"0000:0{n}:00.0 0604: 8086:2030" for n in range(4)) + "\n0000:04:00.0 0302: 10de:2330"
    (tools / "lspci").write_text(f"#!/bin/sh\ncat <<'X'\n{lines}\nX\n")
    (tools / "setpci").write_text(
        f"#!/bin/sh\nf={tmp_path}/$2\ncase $3 in\n"
        'ECAP_ACS+6.w=0000) [ -e "$f.stuck" ] || echo 0000 >"$f" ;;\n'
        '*) [ -e "$f" ] || { echo "setpci: $2: Instance #0 of Extended Capability 000d not found - there are no '
        'capabilities with that id." >&2; exit 1; }; cat "$f" ;;\nesac\n'
    )
    for tool in tools.iterdir():
        tool.chmod(0o755)
    (tmp_path / "0000:00:00.0").write_text("001d\n")
    (tmp_path / "0000:01:00.0").write_text("0000\n")

    def run(text):
        path = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        return subprocess.run(
            ["sh", "-c", text], capture_output=True, text=True, timeout=240, check=False, env=path
        )

    assert bridges.parse(run(bridges.READ).stdout).redirecting == {"0000:00:00.0": "001d"}
    assert run(script).returncode == 0
    assert bridges.parse(run(bridges.READ).stdout) == bridges.Bridges(4, {})
    (tmp_path / "0000:01:00.0").write_text("001d\n")
    (tmp_path / "0000:01:00.0.stuck").touch()
    done = run(script)
    assert (done.returncode, done.stderr) == (1, "0000:01:00.0 keeps its ACS bits, 001d\n")


OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.173.02  Release Build\n"
OLD = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.261.03  Thu Aug 1\n"
DMABUF = "NICs can reach GPU memory by dma-buf"
PEERMEM = "nvidia-peermem is loaded only as declared"
IOMMU = "the IOMMU passes through"
AT_BOOT = "ACS is turned off at every boot"
ACS = "no PCI bridge redirects peers"
DRIVER, UNAME, MODULES = "cat /proc/driver/nvidia/version", "uname -r", "cat /proc/modules"
CMDLINE, GROUPS = "cat /proc/cmdline", "cat /sys/kernel/iommu_groups/*/type"
READ = {"command -v setpci": "/usr/bin/setpci\n"}
ASK = f"sh -c {shlex.quote(bridges.READ)}"


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (DMABUF, {DRIVER: OPEN, UNAME: "6.12.107+deb13-amd64\n"}, "PASS", "open kernel modules on 6.12.107+deb13-amd64"),
        (DMABUF, {DRIVER: OLD, UNAME: "6.12.107\n"}, "FAIL", "the loaded driver is the proprietary one, which does not support dma-buf"),
        (DMABUF, {DRIVER: OPEN, UNAME: "5.4.0-200-generic\n"}, "FAIL", "the kernel is 5.4.0-200-generic; dma-buf for peers came with 5.12"),
        (DMABUF, {DRIVER: "", UNAME: "6.1.0\n"}, "UNKNOWN", "the driver or the kernel does not report its version"),
        (DMABUF, {}, "UNKNOWN", None),
        (PEERMEM, {MODULES: "nvidia 1 0 - Live 0x0\n"}, "PASS", "dma-buf alone"),
        (PEERMEM, {MODULES: "nvidia_peermem 1 0 - Live 0x0\n"}, "WARN", None),
        (PEERMEM, {MODULES: ""}, "UNKNOWN", "/proc/modules is empty"),
        (IOMMU, {CMDLINE: "root=/dev/sda intel_iommu=on iommu=pt\n", GROUPS: "identity\nidentity\n"}, "PASS", "every IOMMU group is identity"),
        (IOMMU, {CMDLINE: "root=/dev/sda\n"}, "FAIL",
         "the kernel runs without intel_iommu=on iommu=pt: reboot the node, or see what its boot loader has"),
        (IOMMU, {CMDLINE: "intel_iommu=on iommu=pt\n", GROUPS: "identity\nDMA-FQ\n"}, "FAIL", "IOMMU groups are DMA-FQ, identity, not identity alone"),
        (IOMMU, {CMDLINE: "intel_iommu=on iommu=pt\n"}, "UNKNOWN", None),
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
    ],
)  # fmt: skip
def test_check(tmp_path, name, answers, status, evidence):
    cluster = made(tmp_path)
    found = judged("gpudirect", CHECKS, name, cluster, cluster.by_name["gpu1"], FakeHost(answers))
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


def test_a_declared_peermem_has_to_be_loaded(tmp_path):
    cluster = made(tmp_path, peermem=True)
    answers = FakeHost({MODULES: "nvidia 1 0 - Live 0x0\n"})
    found = judged("gpudirect", CHECKS, PEERMEM, cluster, cluster.by_name["gpu1"], answers)
    assert (found.status, found.evidence) == ("FAIL", "nvidia_peermem is not loaded")


def test_what_is_left_is_not_checked(tmp_path):
    cluster = made(tmp_path, iommu="leave", acs="leave")
    assert claimed("gpudirect", CHECKS, cluster.by_name["gpu1"]) == (DMABUF, PEERMEM)
