"""The imex role. The JSON of nvidia-imex-ctl is in the layout public logs show (driver 580, read 2026-11-21)."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from rackwright.model.interfaces import ManagesImexChannels
from rackwright.model.options import RoleOptions
from rackwright.roles.imex.options import ImexOptions
from rackwright.roles.imex.verify import CHECKS
from tests.gpu_repository import REVISION
from tests.unit.roles.fake_facts import unit
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, judged, planned
from tests.unit.roles.stack_sites import site, worker
from tests.unit.roles.stack_tools import installed

ARM = {"os": "ubuntu-24.04"}


def tray(number, rack="r1", **changes):
    return worker(f"gb{number}", 10 + number, "dgx-gb200", rack=rack, **{**ARM, **changes})


def made(folder, *nodes, **options):
    return site(folder, {"imex": ImexOptions(**options)}, *nodes)


def test_what_a_node_gets(tmp_path):
    cluster = made(tmp_path, tray(1), tray(2), tray(3, rack="r2"), worker("h100", 20, "dgx-h100"))
    plan = planned(cluster, cluster.by_name["gb1"])
    assert plan.error is None
    assert content(plan, "/etc/nvidia-imex/nodes_config.cfg") == "10.9.0.11\n10.9.0.12\n"
    assert content(plan, "/etc/nvidia-imex/config.cfg") == (
        "# Written by rackwright; changes made here are undone. Read when nvidia-imex starts.\n"
        "LOG_LEVEL=4\n"
        "LOG_FILE_NAME=/var/log/nvidia-imex.log\n"
        "LOG_APPEND_TO_LOG=1\n"
        "LOG_FILE_MAX_SIZE=1024\n"
        "LOG_MAX_ROTATE_COUNT=3\n"
        "LOG_USE_SYSLOG=0\n"
        "DAEMONIZE=1\n"
        "BIND_INTERFACE_IP=\n"
        "SERVER_PORT=50000\n"
        "IMEX_NODE_CONFIG_FILE=/etc/nvidia-imex/nodes_config.cfg\n"
        "IMEX_WAIT_FOR_QUORUM=RECOVERY\n"
        "IMEX_CMD_ENABLED=1\n"
        "IMEX_CMD_BIND_INTERFACE_IP=10.9.0.11\n"
        "IMEX_CMD_PORT=50005\n"
    )
    (command,) = commands(plan, "Install IMEX at the driver's version")
    assert f"install nvidia-imex={REVISION}\n" in command
    assert "apt-mark hold nvidia-imex" in command
    assert (
        content(planned(cluster, cluster.by_name["gb3"]), "/etc/nvidia-imex/nodes_config.cfg")
        == "10.9.0.13\n"
    )
    assert [op.name for op in planned(cluster, cluster.by_name["h100"]).operations if op.role == "imex"] == []
    assert claimed("imex", CHECKS, cluster.by_name["h100"]) == ()


def test_domains_by_name(tmp_path):
    cluster = made(tmp_path, tray(1), tray(2), tray(3), domains={"a": "gb[1,3]", "b": "gb2"})
    assert list(cluster.by_name["gb1"].options["imex"].problems(cluster)) == []
    plan = planned(cluster, cluster.by_name["gb3"])
    assert content(plan, "/etc/nvidia-imex/nodes_config.cfg") == "10.9.0.11\n10.9.0.13\n"


def test_the_scheduler_makes_channels_itself(tmp_path):
    cluster = made(tmp_path, tray(1), channels=0)
    plan = planned(cluster, cluster.by_name["gb1"])
    assert content(plan, "/usr/local/sbin/rackwright-imex-channels") is None
    assert "the declared IMEX channels exist" not in claimed("imex", CHECKS, cluster.by_name["gb1"])


class Schedules(RoleOptions, ManagesImexChannels):
    """A workload manager that makes a channel for each job, or does not."""

    makes: bool

    @property
    def manages_imex_channels(self) -> bool:
        return self.makes


BOTH = (
    "channels",
    "The workload manager makes an IMEX channel for each job on gb1, but any user may open those made at boot.",
    "set `channels: 0`",
)
NEITHER = (
    "channels",
    "Neither the boot nor the workload manager creates IMEX channels on gb1.",
    "e.g. `channels: 1`; or let the workload manager make them (Slurm: SwitchType switch/nvidia_imex)",
)


@pytest.mark.parametrize(
    ("channels", "makes", "expected"),
    [
        (1, True, [BOTH]),
        (1, False, []),
        (1, None, []),
        (0, True, []),
        (0, False, [NEITHER]),
        (0, None, [NEITHER]),
    ],
)
def test_the_boot_or_the_scheduler_makes_channels_and_not_both(tmp_path, channels, makes, expected):
    options = ImexOptions(channels=channels)
    given = {"imex": options} if makes is None else {"imex": options, "scheduler": Schedules(makes=makes)}
    cluster = site(tmp_path, given, worker("h100", 20, "dgx-h100"), tray(1), tray(2))
    assert list(options.warnings(cluster)) == expected


def test_only_the_options_own_nodes_are_judged(tmp_path):
    other = ImexOptions(channels=0)
    given = {"imex": ImexOptions(channels=2), "scheduler": Schedules(makes=False)}
    cluster = site(tmp_path, given, tray(1), tray(2, options={"imex": other}))
    assert list(ImexOptions(channels=2).warnings(cluster)) == []
    ((_, message, _),) = other.warnings(cluster)
    assert "on gb2" in message


def test_channels_are_made_with_the_drivers_major(tmp_path):
    cluster = made(tmp_path, tray(1), channels=3)
    script = content(planned(cluster, cluster.by_name["gb1"]), "/usr/local/sbin/rackwright-imex-channels")
    devices = tmp_path / "devices"
    devices.write_text("Character devices:\n  1 mem\n240 nvidia-caps-imex-channels\n")
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "mknod").write_text('#!/bin/sh\necho "$@" >>"$LOG"; : >"$1"\n')
    (tools / "mknod").chmod(0o755)
    script = script.replace("/proc/devices", str(devices)).replace("/dev/", f"{tmp_path}/dev/")
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "LOG": str(tmp_path / "log")}
    subprocess.run(["sh", "-c", script], check=True, timeout=240, env=environment)
    folder = f"{tmp_path}/dev/nvidia-caps-imex-channels"
    assert (tmp_path / "log").read_text().splitlines() == [f"{folder}/channel{n} c 240 {n}" for n in range(3)]
    devices.write_text("Character devices:\n  1 mem\n")
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, check=False, timeout=240, env=environment
    )
    assert (done.returncode, done.stderr) == (
        1,
        "the nvidia driver is not loaded, or knows no IMEX channels\n",
    )


MANY = tuple(tray(number) for number in range(1, 20))


@pytest.mark.parametrize(
    ("nodes", "options", "problem"),
    [
        ((worker("h100", 20, "dgx-h100"),), {}, ("", "No node of the role imex shares an NVLink domain with others.", "remove the section")),
        ((tray(1, rack=None),), {}, ("domains", "gb1 has no rack, so its NVLink domain is unknown.",
         "give the node its rack, or name the domains here")),
        (MANY, {}, ("domains", "The rack r1 holds 76 GPUs, and an NVLink domain of dgx-gb200 has 72.", "name the domains in `imex.domains`")),
        ((tray(1), tray(2)), {"domains": {"a": "gb1"}}, ("domains", "gb2 is in no NVLink domain.", "name every node of the role")),
        ((tray(1),), {"domains": {"a": "gb1", "b": "gb1"}}, ("domains.b", "gb1 is in the domain a already.", None)),
        ((tray(1), worker("h100", 20, "dgx-h100")), {"domains": {"a": "gb1,h100"}},
         ("domains.a", "h100 has no GPUs in an NVLink domain of several nodes.", None)),
        ((tray(1),), {"network": "fabrik"}, ("network", "There is no network fabrik.", "networks: management")),
        ((tray(1),), {"command_port": 50000}, ("command_port", "The daemons themselves use port 50000.", None)),
    ],
)  # fmt: skip
def test_problems(tmp_path, nodes, options, problem):
    cluster = site(tmp_path, {"imex": ImexOptions(**options)}, *nodes, locked=False)
    assert list(nodes[0].options.get("imex", ImexOptions(**options)).problems(cluster)) == [problem]


def reported(status="UP", **nodes):
    each = {"gb1": ("10.9.0.11", "READY"), "gb2": ("10.9.0.12", "READY"), **nodes}
    entries = {
        str(number): {"status": state, "host": host, "connections": {}, "version": "580.173.02"}
        for number, (host, state) in enumerate(each.values())
    }
    return json.dumps({"nodes": entries, "timestamp": "11/21/2026 12:00:00.000", "status": status})


ASK = "timeout 20 nvidia-imex-ctl -N -j"
DOMAIN = "the NVLink domain is up with every declared node"
INSTALLED = "IMEX is installed as locked and held"
RUNS = "IMEX is running"
AT_BOOT = "the IMEX channels are created at every boot"
CHANNELS = "the declared IMEX channels exist"
FIND = "find /dev/nvidia-caps-imex-channels -type c -perm 0666 -name 'channel*'"


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (INSTALLED, installed({"nvidia-imex": REVISION}), "PASS", f"nvidia-imex {REVISION}, held"),
        (INSTALLED, installed({"nvidia-imex": REVISION}, held=False), "FAIL", "nvidia-imex is not held"),
        (INSTALLED, {}, "UNKNOWN", None),
        (RUNS, unit("nvidia-imex.service"), "PASS", None),
        (RUNS, unit("nvidia-imex.service", active="activating"), "FAIL",
         "nvidia-imex.service is activating"),
        (RUNS, {}, "UNKNOWN", None),
        (DOMAIN, {ASK: reported()}, "PASS", "UP, 2 of 2 nodes READY"),
        (DOMAIN, {ASK: reported("DEGRADED", gb2=("10.9.0.12", "UNAVAILABLE"))}, "FAIL",
         "the domain is DEGRADED: 10.9.0.12 is UNAVAILABLE"),
        (DOMAIN, {ASK: reported(gb2=("10.9.0.99", "READY"))}, "FAIL",
         "the domain is UP: 10.9.0.12 is not a member; 10.9.0.99 is a member but not declared"),
        (DOMAIN, {ASK: reported("DEGRADED")}, "FAIL", "the domain is DEGRADED, although every node is READY: check the connections"),
        (DOMAIN, {ASK: "{}"}, "UNKNOWN", "nvidia-imex-ctl reports no nodes or no status"),
        (DOMAIN, {ASK: "Connection to IMEX daemon failed"}, "UNKNOWN", None),
        (DOMAIN, {}, "UNKNOWN", None),
        (AT_BOOT, unit("rackwright-imex-channels.service"), "PASS", None),
        (AT_BOOT, unit("rackwright-imex-channels.service", state="disabled"), "FAIL",
         "rackwright-imex-channels.service is disabled: they are gone after a reboot"),
        (AT_BOOT, {}, "UNKNOWN", None),
        (CHANNELS, {FIND: "/dev/nvidia-caps-imex-channels/channel0\n"}, "PASS", "channels 0 to 0"),
        (CHANNELS, {FIND: "/dev/nvidia-caps-imex-channels/channel1\n"}, "FAIL",
         "channel 0 is missing or not open to every user"),
        (CHANNELS, {FIND: (1, "", "find: '/dev/nvidia-caps-imex-channels': No such file or directory")}, "UNKNOWN", None),
    ],
)  # fmt: skip
def test_check(tmp_path, name, answers, status, evidence):
    cluster = made(tmp_path, tray(1), tray(2))
    found = judged("imex", CHECKS, name, cluster, cluster.by_name["gb1"], FakeHost(answers))
    assert (found.status, evidence or found.evidence) == (status, found.evidence)
