"""The dcgm role. dcgmi's output is written from public logs of DCGM 3 and 4, read 2026-11-21."""

from __future__ import annotations

import pytest

from rackwright.lab.gpus import discovery
from rackwright.roles.dcgm.options import DcgmOptions
from rackwright.roles.dcgm.verify import CHECKS
from tests.gpu_repository import DCGM
from tests.unit.roles.fake_facts import unit
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, judged, planned
from tests.unit.roles.stack_sites import site, worker
from tests.unit.roles.stack_tools import installed, xml

VERSION = f"1:{DCGM}-1"
PACKAGES = (
    "datacenter-gpu-manager-4-core",
    "datacenter-gpu-manager-4-cuda13",
    "datacenter-gpu-manager-4-proprietary",
    "datacenter-gpu-manager-4-proprietary-cuda13",
)


@pytest.fixture
def cluster(tmp_path):
    return site(
        tmp_path, {"dcgm": DcgmOptions()}, worker("gpu1", 11, "dgx-h100"), worker("cpu1", 12, "cpu-16c-64g")
    )


def test_what_a_node_gets(cluster):
    plan = planned(cluster, cluster.by_name["gpu1"])
    (command,) = commands(plan, "Install DCGM as locked")
    assert " ".join(f"{name}={VERSION}" for name in PACKAGES) in command
    assert f"apt-mark hold {' '.join(PACKAGES)}" in command
    assert content(plan, "/etc/systemd/system/nvidia-dcgm.service.d/90-rackwright.conf") == (
        "# Written by rackwright; changes made here are undone.\n"
        "[Service]\n"
        "ExecStart=\n"
        "ExecStart=/usr/bin/nv-hostengine -n --service-account nvidia-dcgm -b 127.0.0.1 -p 5555\n"
        "# dcgmi health -c needs the watches, and the host engine forgets them when it ends; "
        "it answers a moment after its start\n"
        "ExecStartPost=-/bin/sh -c 'for second in 1 2 3 4 5 6 7 8 9 10; do "
        "/usr/bin/dcgmi health --host 127.0.0.1:5555 -s a && exit 0; sleep 1; done'\n"
    )
    names = [op.name for op in plan.operations if op.role == "dcgm"]
    assert names[-1] == "Start the host engine"
    assert names.index("Write the host engine's listen address") < names.index("Install DCGM as locked")


def test_nodes_without_gpus_get_nothing(cluster):
    assert [op.name for op in planned(cluster, cluster.by_name["cpu1"]).operations if op.role == "dcgm"] == []
    assert claimed("dcgm", CHECKS, cluster.by_name["cpu1"]) == ()


def test_a_lock_without_dcgm_is_refused(tmp_path):
    options = DcgmOptions()
    made = site(tmp_path, {"dcgm": options}, worker("gpu1", 11, "dgx-h100"))
    text = made.lock_path.read_text()
    start, end = text.index("    dcgm:\n"), text.index("    container_toolkit:\n")
    made.lock_path.write_text(text[:start] + text[end:])
    assert list(options.lock_problems(made)) == [
        (
            "",
            "The lock omits dcgm for dgx-h100 on debian-13.",
            "remove dcgm from these nodes, or add it to gpu_stack and lock again",
        )
    ]


GPUS = xml("dgx-h100")["timeout 30 nvidia-smi -L"]
PRINTED = discovery(worker("x", 1, "dgx-h100").sku.gpus, GPUS) + "0 NvSwitches found.\n"
COUNT = "timeout 30 dcgmi discovery -l"
INSTALLED = "DCGM is installed as locked and held"
FINDS = "DCGM finds the declared GPUs"
RUNS = "the DCGM host engine is running"
IS = "dcgmi has the locked version"


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (INSTALLED, installed(dict.fromkeys(PACKAGES, VERSION)), "PASS", f"{PACKAGES[0]} {VERSION} and 3 more, held"),
        (INSTALLED, installed({**dict.fromkeys(PACKAGES, VERSION), PACKAGES[2]: "1:4.5.2-1"}), "FAIL",
         f"{PACKAGES[2]} is 1:4.5.2-1, not {VERSION}"),
        (INSTALLED, {}, "UNKNOWN", None),
        (IS, {"dcgmi --version": f"\ndcgmi  version: {DCGM}\n\n"}, "PASS", DCGM),
        (IS, {"dcgmi --version": "\ndcgmi  version: 4.5.2\n"}, "FAIL", f"dcgmi is 4.5.2, not the locked {DCGM}"),
        (IS, {"dcgmi --version": "?"}, "UNKNOWN", "dcgmi reports no version: '?'"),
        (IS, {}, "UNKNOWN", None),
        (RUNS, unit("nvidia-dcgm.service"), "PASS",
         "nvidia-dcgm.service is active and enabled"),
        (RUNS, unit("nvidia-dcgm.service", active="inactive"), "FAIL",
         "nvidia-dcgm.service is inactive"),
        (RUNS, {}, "UNKNOWN", None),
        (FINDS, {COUNT: PRINTED}, "PASS", "8 GPUs"),
        (FINDS, {COUNT: discovery(worker("x", 1, "dgx-h100").sku.gpus, GPUS[: GPUS.index("GPU 7")])}, "FAIL",
         "DCGM finds 7 of 8 declared GPUs"),
        (FINDS, {COUNT: PRINTED.replace("8 GPUs", "7 GPUs")}, "UNKNOWN", "dcgmi reports 7 GPUs and lists 8"),
        (FINDS, {COUNT: (255, "Error: unable to establish a connection to the specified host: localhost\n", "")},
         "UNKNOWN", None),
        (FINDS, {COUNT: "0 NvSwitches found.\n"}, "UNKNOWN", None),
        (FINDS, {}, "UNKNOWN", None),
    ],
)  # fmt: skip
def test_check(cluster, name, answers, status, evidence):
    found = judged("dcgm", CHECKS, name, cluster, cluster.by_name["gpu1"], FakeHost(answers))
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


def test_another_port_is_asked_where_it_is(tmp_path):
    made = site(tmp_path, {"dcgm": DcgmOptions(port=5556)}, worker("gpu1", 11, "dgx-h100"))
    answers = {"timeout 30 dcgmi discovery --host 127.0.0.1:5556 -l": PRINTED}
    assert judged("dcgm", CHECKS, FINDS, made, made.by_name["gpu1"], FakeHost(answers)).status == "PASS"
