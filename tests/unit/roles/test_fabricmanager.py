"""The fabricmanager role: options, the whole configuration, what a node gets, and its checks.

What the tools print is written from public logs (580 and 610 drivers, read 2026-11-21), not recorded here.
"""

from __future__ import annotations

import pytest

from rackwright.claims.check import Failed, Undetermined
from rackwright.roles.fabricmanager.deploy import fabricmanager_cfg
from rackwright.roles.fabricmanager.options import FabricmanagerOptions
from rackwright.roles.fabricmanager.verify import CHECKS, joined, parse_version
from tests.gpu_repository import DRIVER, REVISION
from tests.unit.roles.fake_facts import unit
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, judged, planned
from tests.unit.roles.stack_sites import site, worker
from tests.unit.roles.stack_tools import installed, xml

CFG = """\
# Written by rackwright; changes made here are undone. Read when Fabric Manager starts.
LOG_LEVEL=4
LOG_FILE_NAME=/var/log/fabricmanager.log
LOG_APPEND_TO_LOG=1
LOG_FILE_MAX_SIZE=1024
LOG_USE_SYSLOG=0
DAEMONIZE=1
BIND_INTERFACE_IP=127.0.0.1
STARTING_TCP_PORT=16000
FABRIC_MODE=0
FABRIC_MODE_RESTART=0
STATE_FILE_NAME=/var/tmp/fabricmanager.state
FM_CMD_BIND_INTERFACE=127.0.0.1
FM_CMD_PORT_NUMBER=6666
FM_STAY_RESIDENT_ON_FAILURES=0
ACCESS_LINK_FAILURE_MODE=0
TRUNK_LINK_FAILURE_MODE=0
NVSWITCH_FAILURE_MODE=0
ABORT_CUDA_JOBS_ON_FM_EXIT=1
TOPOLOGY_FILE_PATH=/usr/share/nvidia/nvswitch
"""


@pytest.fixture
def cluster(tmp_path):
    options = {"fabricmanager": FabricmanagerOptions()}
    return site(
        tmp_path,
        options,
        worker("gpu1", 11, "dgx-h100"),
        worker("l40s", 12, "l40s-8x"),
        worker("b200", 13, "dgx-b200"),
    )


def test_the_configuration_whole():
    assert fabricmanager_cfg(FabricmanagerOptions()) == CFG
    options = FabricmanagerOptions(
        mode="shared-nvswitch", resume_after_exit=True, log_level="warning", stay_on_failures=True,
        access_link_failure="drop-switch", trunk_link_failure="drop-switch", nvswitch_failure="drop-switch",
        abort_jobs_on_exit=False,
    )  # fmt: skip
    changed = [line for line in fabricmanager_cfg(options).splitlines() if line not in CFG.splitlines()]
    assert changed == [
        "LOG_LEVEL=3",
        "FABRIC_MODE=1",
        "FABRIC_MODE_RESTART=1",
        "FM_STAY_RESIDENT_ON_FAILURES=1",
        "ACCESS_LINK_FAILURE_MODE=1",
        "TRUNK_LINK_FAILURE_MODE=1",
        "NVSWITCH_FAILURE_MODE=1",
        "ABORT_CUDA_JOBS_ON_FM_EXIT=0",
    ]


def test_a_node_with_nvswitches_gets_the_drivers_version_held(cluster):
    plan = planned(cluster, cluster.by_name["gpu1"])
    (command,) = commands(plan, "Install Fabric Manager at the driver's version")
    assert f"install libnvidia-nscq={REVISION} nvidia-fabricmanager={REVISION}\n" in command
    assert "apt-mark hold libnvidia-nscq nvidia-fabricmanager" in command
    assert "policy-rc.d" in command  # it starts with its configuration, not before
    assert content(plan, "/usr/share/nvidia/nvswitch/fabricmanager.cfg") == CFG
    assert "systemctl start nvidia-fabricmanager.service" in commands(plan, "Start Fabric Manager")[1]


def test_nvlink_5_brings_nvlsm_and_ib_umad(cluster):
    plan = planned(cluster, cluster.by_name["b200"])
    (command,) = commands(plan, "Install Fabric Manager at the driver's version")
    assert "nvlsm=2025.06.6-1" in command
    assert f"libnvsdm={REVISION}" in command
    assert content(plan, "/etc/modules-load.d/rackwright-nvlsm.conf").splitlines()[1:] == ["ib_umad"]
    assert commands(plan, "Load ib_umad") == ("modprobe ib_umad",)


def test_a_node_without_nvswitches_gets_nothing(cluster):
    plan = planned(cluster, cluster.by_name["l40s"])
    assert plan.error is None
    assert [op.name for op in plan.operations if op.role == "fabricmanager"] == []
    assert claimed("fabricmanager", CHECKS, cluster.by_name["l40s"]) == ()


@pytest.mark.parametrize(
    ("options", "sku", "problems"),
    [
        (FabricmanagerOptions(), "dgx-h100", []),
        (
            FabricmanagerOptions(),
            "l40s-8x",
            [("", "No node of the role fabricmanager has NVSwitches on its board.", "remove the section")],
        ),
        (
            FabricmanagerOptions(resume_after_exit=True),
            "dgx-h100",
            [("resume_after_exit", "On bare metal fabricmanager has no partitions to resume.", None)],
        ),
    ],
)
def test_problems(tmp_path, options, sku, problems):
    made = site(tmp_path, {"fabricmanager": options}, worker("gpu1", 11, sku))
    assert list(options.problems(made)) == problems
    assert list(options.lock_problems(made)) == []


def test_a_lock_is_needed(tmp_path):
    options = FabricmanagerOptions()
    made = site(tmp_path, {"fabricmanager": options}, worker("gpu1", 11, "dgx-h100"), locked=False)
    ((path, message, hint),) = options.lock_problems(made)
    assert (path, hint) == ("", "run: rackwright lock demo.yaml")
    assert message.startswith("The lock file")


INSTALLED = "Fabric Manager is installed as locked and held"
VERSION = "Fabric Manager and the loaded driver have the same version"
RUNS = "Fabric Manager is running"
JOINED = "every GPU has joined the NVLink fabric"
PRINTED = f"Fabric Manager version is : {DRIVER}\nBuild Info - Branch: rel/gpu_drv/r580\n"


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (INSTALLED, installed({"nvidia-fabricmanager": REVISION, "libnvidia-nscq": REVISION}), "PASS",
         f"libnvidia-nscq {REVISION} and 1 more, held"),
        (INSTALLED, installed({"nvidia-fabricmanager": "580.95.05-1", "libnvidia-nscq": REVISION}), "FAIL",
         f"nvidia-fabricmanager is 580.95.05-1, not {REVISION}"),
        (INSTALLED, installed({"nvidia-fabricmanager": REVISION, "libnvidia-nscq": REVISION}, held=False), "FAIL",
         "libnvidia-nscq is not held; nvidia-fabricmanager is not held"),
        (INSTALLED, installed({"libnvidia-nscq": REVISION}, asked=("nvidia-fabricmanager", "libnvidia-nscq")), "FAIL",
         "nvidia-fabricmanager is not installed"),
        (INSTALLED, {}, "UNKNOWN", None),
        (VERSION, {"nv-fabricmanager --version": PRINTED, **xml("dgx-h100")}, "PASS", f"both are {DRIVER}"),
        (VERSION, {"nv-fabricmanager --version": PRINTED.replace(DRIVER, "580.95.05"), **xml("dgx-h100")}, "FAIL",
         f"Fabric Manager is 580.95.05 but the loaded driver is {DRIVER}: CUDA fails with error 802"),
        (VERSION, {"nv-fabricmanager --version": PRINTED}, "UNKNOWN", None),
        (VERSION, {"nv-fabricmanager --version": "?", **xml("dgx-h100")}, "UNKNOWN",
         "nv-fabricmanager reports no version: '?'"),
        (RUNS, unit("nvidia-fabricmanager.service"), "PASS",
         "nvidia-fabricmanager.service is active and enabled"),
        (RUNS, unit("nvidia-fabricmanager.service", active="failed"), "FAIL",
         "nvidia-fabricmanager.service is failed"),
        (RUNS, unit("nvidia-fabricmanager.service", state="disabled"), "FAIL",
         "nvidia-fabricmanager.service is active but disabled: it does not start at boot"),
        (RUNS, {}, "UNKNOWN", None),
        (RUNS, dict.fromkeys(unit("nvidia-fabricmanager.service"), ""), "UNKNOWN",
         "Unit of nvidia-fabricmanager.service: the node printed nothing"),
        (JOINED, xml("dgx-h100"), "PASS", "8 GPUs: Completed, Success"),
        (JOINED, xml("dgx-h100", ("<state>Completed", "<state>In Progress")), "FAIL", None),
        (JOINED, xml("dgx-h100", ("<state>Completed</state>", "<state>N/A</state>")), "UNKNOWN",
         "nvidia-smi does not report the fabric state of GPU 0, 1, 2, 3, 4, 5, 6, 7"),
        (JOINED, {"timeout 30 nvidia-smi -q -x": "no XML"}, "UNKNOWN", None),
        (JOINED, {}, "UNKNOWN", None),
    ],
)  # fmt: skip
def test_check(cluster, name, answers, status, evidence):
    found = judged("fabricmanager", CHECKS, name, cluster, cluster.by_name["gpu1"], FakeHost(answers))
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


def gpu(index, state, status):
    return {"index": index, "fabric": {"state": state, "status": status}}


def test_one_gpu_that_has_not_joined_decides_over_one_that_is_silent():
    with pytest.raises(Failed, match="GPU 1: Completed, Unsupported"):
        joined([gpu(0, None, None), gpu(1, "Completed", "Unsupported")], 2)
    with pytest.raises(Failed, match="lists 1 of 2 GPUs"):
        joined([gpu(0, "Completed", "Success")], 2)
    with pytest.raises(Undetermined, match="GPU 0"):
        joined([gpu(0, "Completed", None)], 1)


def test_versions_are_read_from_old_and_new_output():
    assert parse_version("Fabric Manager version is : 535.161.08") == "535.161.08"
    assert parse_version(PRINTED) == DRIVER


def test_boards_before_hopper_do_not_register(tmp_path):
    made = site(tmp_path, {"fabricmanager": FabricmanagerOptions()}, worker("a100", 11, "dgx-a100"))
    assert JOINED not in claimed("fabricmanager", CHECKS, made.by_name["a100"])
