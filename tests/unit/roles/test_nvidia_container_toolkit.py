"""The nvidia_container_toolkit role. nvidia-ctk's output is written from public logs, read 2026-11-21."""

from __future__ import annotations

import subprocess

import pytest

from rackwright.roles.nvidia_container_toolkit.options import CONFIG, MODE_READ, NvidiaContainerToolkitOptions
from rackwright.roles.nvidia_container_toolkit.verify import CHECKS, devices
from tests.gpu_repository import TOOLKIT
from tests.unit.roles.fake_facts import answer
from tests.unit.roles.fake_host import FakeHost, commands, content, judged, planned
from tests.unit.roles.stack_sites import site, worker
from tests.unit.roles.stack_tools import installed

ROLE = "nvidia_container_toolkit"
VERSION = f"{TOOLKIT}-1"
PACKAGES = (
    "libnvidia-container-tools",
    "libnvidia-container1",
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
)


def made(folder, mig=None, **options):
    given = NvidiaContainerToolkitOptions(**options)
    return site(folder, {ROLE: given}, worker("gpu1", 11, "dgx-h100", mig=mig or {}))


def test_what_a_node_gets(tmp_path):
    cluster = made(tmp_path)
    plan = planned(cluster, cluster.by_name["gpu1"])
    assert plan.error is None
    (command,) = commands(plan, "Install the container toolkit as locked")
    assert " ".join(f"{name}={VERSION}" for name in PACKAGES) in command
    assert f"apt-mark hold {' '.join(PACKAGES)}" in command
    (command,) = commands(plan, "Set the runtime's device mode")
    assert command == (
        "nvidia-ctk config --in-place --set nvidia-container-runtime.mode=cdi "
        "--config-file=/etc/nvidia-container-runtime/config.toml"
    )
    assert commands(plan, "Create the CDI spec") == ("systemctl restart nvidia-cdi-refresh.service",)
    names = [op.name for op in plan.operations if op.role == ROLE]
    assert "Renew the CDI spec with the driver" in names
    assert "Write the unit that creates the CDI spec" not in names


def test_before_1_18_the_unit_is_ours(tmp_path):
    cluster = made(tmp_path)
    cluster.lock_path.write_text(cluster.lock_path.read_text().replace(TOOLKIT, "1.17.7"))
    plan = planned(cluster, cluster.by_name["gpu1"])
    assert "ExecStart=/usr/bin/nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml\n" in content(
        plan, "/etc/systemd/system/rackwright-cdi.service"
    )
    assert commands(plan, "Create the CDI spec") == ("systemctl restart rackwright-cdi.service",)


@pytest.mark.parametrize(
    ("declared", "version", "plugin"),
    [("v2", 2, "io.containerd.grpc.v1.cri"), ("v3", 3, "io.containerd.cri.v1.runtime")],
)
def test_containerds_drop_in(tmp_path, declared, version, plugin):
    cluster = made(tmp_path, containerd=declared)
    assert content(planned(cluster, cluster.by_name["gpu1"]), "/etc/containerd/conf.d/99-nvidia.toml") == (
        "# Written by rackwright; changes made here are undone.\n"
        f"version = {version}\n"
        "\n"
        "[plugins]\n"
        f'  [plugins."{plugin}"]\n'
        "    enable_cdi = true\n"
        '    cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]\n'
        f'    [plugins."{plugin}".containerd]\n'
        f'      [plugins."{plugin}".containerd.runtimes]\n'
        f'        [plugins."{plugin}".containerd.runtimes.nvidia]\n'
        "          privileged_without_host_devices = false\n"
        '          runtime_type = "io.containerd.runc.v2"\n'
        f'          [plugins."{plugin}".containerd.runtimes.nvidia.options]\n'
        '            BinaryName = "/usr/bin/nvidia-container-runtime"\n'
        "            SystemdCgroup = true\n"
    )


TOML = """\
disable-require = false

[nvidia-container-cli]
environment = []
mode = "not this one"

[nvidia-container-runtime]
log-level = "info"
mode = "cdi"
runtimes = ["docker-runc", "runc"]

[nvidia-container-runtime.modes.cdi]
default-kind = "nvidia.com/gpu"
"""


def test_the_mode_is_read_from_its_section(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(TOML)
    done = subprocess.run(
        ["sh", "-c", MODE_READ.replace(CONFIG, str(path))],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    assert done.stdout == "cdi\n"


def test_devices_by_layout():
    node = worker("x", 1, "dgx-h100")
    assert devices(node, 2) == {"0", "1", "all"}
    assert devices(node.model_copy(update={"mig": {"3g.40gb": 2}}), 2) == {"0:0", "0:1", "1:0", "1:1", "all"}


def spec(*names):
    return "".join(f"nvidia.com/gpu={name}\n" for name in names)


EIGHT = (*map(str, range(8)), *(f"GPU-0000000{n}" for n in range(8)), "all")
LIST, CTK = "timeout 30 nvidia-ctk cdi list", "nvidia-ctk --version"
INSTALLED = "the container toolkit is installed as locked and held"
IS = "nvidia-ctk has the locked version"
MODE = "the runtime has the declared device mode"
SPEC = "the CDI spec lists the declared GPUs"


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (INSTALLED, installed(dict.fromkeys(PACKAGES, VERSION)), "PASS", f"{PACKAGES[0]} {VERSION} and 3 more, held"),
        (INSTALLED, installed({**dict.fromkeys(PACKAGES, VERSION), PACKAGES[1]: "1.17.7-1"}), "FAIL",
         f"{PACKAGES[1]} is 1.17.7-1, not {VERSION}"),
        (INSTALLED, {}, "UNKNOWN", None),
        (IS, {CTK: f"NVIDIA Container Toolkit CLI version {TOOLKIT}\ncommit: abc\n"}, "PASS", TOOLKIT),
        (IS, {CTK: "NVIDIA Container Toolkit CLI version 1.17.7\n"}, "FAIL", f"nvidia-ctk is 1.17.7, not the locked {TOOLKIT}"),
        (IS, {CTK: "?"}, "UNKNOWN", None),
        (IS, {}, "UNKNOWN", None),
        (MODE, answer(MODE_READ, "cdi\n"), "PASS", "cdi"),
        (MODE, answer(MODE_READ, "auto\n"), "FAIL", "nvidia-container-runtime gives devices by auto, not cdi"),
        (MODE, answer(MODE_READ, ""), "UNKNOWN", f"{CONFIG} has no mode of nvidia-container-runtime"),
        (MODE, {}, "UNKNOWN", None),
        (SPEC, {LIST: (0, spec(*EIGHT), "level=info msg=\"Found 17 CDI devices\"")}, "PASS", "8 devices, and all of them as one"),
        (SPEC, {LIST: spec(*EIGHT[1:])}, "FAIL", "the CDI spec lacks nvidia.com/gpu=0: restart nvidia-cdi-refresh.service"),
        (SPEC, {LIST: spec(*EIGHT, "8")}, "FAIL", "the CDI spec has nvidia.com/gpu=8, which is not declared"),
        (SPEC, {LIST: (0, "", "level=info msg=\"Found 0 CDI devices\"")}, "FAIL", None),
        (SPEC, {LIST: "rubbish"}, "UNKNOWN", None),
        (SPEC, {LIST: (1, "", "cannot read /var/run/cdi")}, "UNKNOWN", None),
        (SPEC, {}, "UNKNOWN", None),
    ],
)  # fmt: skip
def test_check(tmp_path, name, answers, status, evidence):
    cluster = made(tmp_path)
    found = judged(ROLE, CHECKS, name, cluster, cluster.by_name["gpu1"], FakeHost(answers))
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


def test_instances_are_listed_where_gpus_are_cut(tmp_path):
    cluster = made(tmp_path, mig={"3g.40gb": 2})
    names = [f"{gpu}:{one}" for gpu in range(8) for one in range(2)]
    good = judged(ROLE, CHECKS, SPEC, cluster, cluster.by_name["gpu1"], FakeHost({LIST: spec(*names, "all")}))
    assert (good.status, good.evidence) == ("PASS", "16 devices, and all of them as one")
    stale = judged(ROLE, CHECKS, SPEC, cluster, cluster.by_name["gpu1"], FakeHost({LIST: spec(*EIGHT)}))
    assert stale.status == "FAIL"
    assert stale.evidence.startswith("the CDI spec lacks nvidia.com/gpu=0:0, 0:1, ")
