"""The gpudirect role: nvidia-peermem, dma-buf, and the checks."""

from __future__ import annotations

import pytest

from rackwright.model.gpu_stack import GpuStack
from rackwright.model.types import Platform
from rackwright.roles.gpudirect.options import GpudirectOptions
from rackwright.roles.gpudirect.verify import CHECKS
from tests.unit.clusterfile.base_file import change, problems_of
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, judged, planned
from tests.unit.roles.stack_sites import STACK, site, worker


def made(folder, *nodes, stack=STACK, **options):
    given = GpudirectOptions(**options)
    return site(folder, {"gpudirect": given}, *nodes or (worker("gpu1", 11, "dgx-h100"),), gpu_stack=stack)


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
        "nvidia-peermem needs DOCA-OFED's peer-memory interface, but the RDMA drivers are inbox.",
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
            "set `peermem: true` (with DOCA-OFED), or remove the role from these nodes",
        )
    ]


OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.173.02  Release Build\n"
OLD = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.261.03  Thu Aug 1\n"
DMABUF = "NICs can access GPU memory through dma-buf"
PEERMEM = "nvidia-peermem is loaded only as declared"
DRIVER, UNAME, MODULES = "cat /proc/driver/nvidia/version", "uname -r", "cat /proc/modules"


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (DMABUF, {DRIVER: OPEN, UNAME: "6.12.107+deb13-amd64\n"}, "PASS", "open kernel modules on 6.12.107+deb13-amd64"),
        (DMABUF, {DRIVER: OLD, UNAME: "6.12.107\n"}, "FAIL", "the loaded driver is the proprietary one, which does not support dma-buf"),
        (DMABUF, {DRIVER: OPEN, UNAME: "5.4.0-200-generic\n"}, "FAIL", "the kernel is 5.4.0-200-generic; dma-buf for peers needs 5.12 or newer"),
        (DMABUF, {DRIVER: "", UNAME: "6.1.0\n"}, "UNKNOWN", "the driver or the kernel does not report its version"),
        (DMABUF, {}, "UNKNOWN", None),
        (PEERMEM, {MODULES: "nvidia 1 0 - Live 0x0\n"}, "PASS", "dma-buf alone"),
        (PEERMEM, {MODULES: "nvidia_peermem 1 0 - Live 0x0\n"}, "WARN", None),
        (PEERMEM, {MODULES: ""}, "UNKNOWN", "/proc/modules is empty"),
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


def test_dma_buf_is_not_asked_of_a_node_with_peermem(tmp_path):
    cluster = made(tmp_path, peermem=True)
    assert claimed("gpudirect", CHECKS, cluster.by_name["gpu1"]) == (PEERMEM,)


@pytest.mark.parametrize(("role", "key"), [("gpudirect", "iommu"), ("gpudirect", "acs"), ("health", "acs")])
def test_keys_that_moved_say_where(tmp_path, role, key):
    (problem,) = problems_of(tmp_path, change(("munge: {}", f"munge: {{}}\n  {role}: {{{key}: leave}}")))
    assert problem.path == f"roles.{role}.{key}"
    assert problem.message == f"`{key}` has moved to `roles.kernel.{key}`."
    assert problem.hint == f"declare it under `roles.kernel.{key}` and remove it here"
