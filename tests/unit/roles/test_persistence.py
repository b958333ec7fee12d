"""The persistence role."""

from __future__ import annotations

import pytest

from rackwright.model.types import Platform
from rackwright.roles.persistence.options import PersistenceOptions
from rackwright.roles.persistence.verify import CHECKS
from tests.unit.roles.driver_sites import SKU, debian
from tests.unit.roles.fake_facts import unit
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, judged, planned
from tests.unit.roles.stack_sites import site, worker
from tests.unit.roles.stack_tools import installed

DROP_IN = "/etc/systemd/system/nvidia-persistenced.service.d/90-rackwright.conf"
PACKAGES = {"nvidia-persistenced": "535.171.04-1~deb12u1"}
INSTALLED = "the persistence daemon is installed as locked and held"
RUNS = "the persistence daemon is running"
ON = "persistence mode is on for every GPU"
MODES = "timeout 30 nvidia-smi --query-gpu=persistence_mode --format=csv,noheader"
UNIT = "nvidia-persistenced.service"


@pytest.fixture
def cluster(tmp_path):
    return debian(tmp_path, {"persistence": PersistenceOptions()})


def _mine(cluster, name="gpu1"):
    plan = planned(cluster, cluster.by_name[name])
    return plan, [op.name for op in plan.operations if op.role == "persistence"]


def test_a_node_with_devices(cluster):
    plan, names = _mine(cluster)
    assert names == [
        "Create the folder for persistence daemon drop-ins",
        "Write the persistence daemon's drop-in",
        "Install the persistence daemon as locked",
        "Start the persistence daemon",
    ]
    (command,) = commands(plan, "Install the persistence daemon as locked")
    assert "install 'nvidia-persistenced=535.171.04-1~deb12u1'" in command
    assert content(plan, DROP_IN) == (
        "# Written by rackwright; changes made here are undone.\n"
        "# Some packages start it with --no-persistence-mode, and some have a unit that nothing starts.\n"
        "[Service]\n"
        "ExecStart=\n"
        "ExecStart=/usr/bin/nvidia-persistenced --user nvpd --persistence-mode\n"
        "Restart=on-failure\n"
        "\n"
        "[Install]\n"
        "WantedBy=multi-user.target\n"
    )
    assert _mine(cluster, "cpu1")[1] == []
    assert claimed("persistence", CHECKS, cluster.by_name["cpu1"]) == ()


def test_nvidia_s_package_has_another_account(tmp_path):
    made = site(tmp_path, {"persistence": PersistenceOptions(verbose=True)}, worker("gpu1", 11, SKU))
    assert "--user nvidia-persistenced --persistence-mode --verbose\n" in content(_mine(made)[0], DROP_IN)


def test_in_a_container_it_is_installed_and_off(tmp_path):
    made = debian(tmp_path, {"persistence": PersistenceOptions()}, platform=Platform.CONTAINER)
    names = _mine(made)[1]
    assert "Start the persistence daemon" not in names
    for name in (RUNS, ON):
        found = judged("persistence", CHECKS, name, made, made.by_name["gpu1"], FakeHost({}))
        assert (found.status, found.evidence) == ("OUT OF SCOPE", "a container cannot load kernel modules")


def test_no_gpus(cluster):
    alone = cluster.model_copy(update={"nodes": cluster.nodes[:1]})
    assert list(PersistenceOptions().problems(alone)) == [
        ("", "No node of the role persistence has NVIDIA's GPUs.", "remove the section")
    ]


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (INSTALLED, installed(PACKAGES), "PASS", None),
        (INSTALLED, installed({"nvidia-persistenced": "550-1"}), "FAIL",
         "nvidia-persistenced is 550-1, not 535.171.04-1~deb12u1"),
        (INSTALLED, {}, "UNKNOWN", None),
        (RUNS, unit(UNIT), "PASS", None),
        (RUNS, unit(UNIT, active="failed"), "FAIL", "nvidia-persistenced.service is failed"),
        (RUNS, {}, "UNKNOWN", None),
        (ON, {MODES: "Enabled\n" * 4}, "PASS", "on for 4 GPUs"),
        (ON, {MODES: "Enabled\n" * 3}, "FAIL", "nvidia-smi lists 3 of 4 declared GPUs"),
        (ON, {MODES: "Enabled\n" * 3 + "Disabled\n"}, "FAIL", "persistence mode is off on 1 of 4 GPUs"),
        (ON, {MODES: "[N/A]\n" * 4}, "UNKNOWN", None),
        (ON, {}, "UNKNOWN", None),
    ],
)  # fmt: skip
def test_check(cluster, name, answers, status, evidence):
    found = judged("persistence", CHECKS, name, cluster, cluster.by_name["gpu1"], FakeHost(answers))
    assert (found.status, evidence or found.evidence) == (status, found.evidence)
