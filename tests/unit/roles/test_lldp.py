"""The lldp role."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from rackwright.claims.check import Undetermined
from rackwright.model.types import LinkKind, Platform
from rackwright.osfamily.known import RELEASES
from rackwright.roles.lldp import texts
from rackwright.roles.lldp.options import LldpOptions, cabled_ports
from rackwright.roles.lldp.verify import CHECKS, named_neighbours, parse_configuration
from tests.unit.roles.fake_facts import files, unit
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, errors_in, judged, planned
from tests.unit.roles.rail_sites import Interfaces, fabric_site
from tests.unit.roles.sites import head, worker

RECORDED = Path(__file__).parents[1] / "fabric_recorded"
RUNS, SETTINGS, FIRMWARE, NEIGHBOURS = (check.name for check in CHECKS)
ASKS = "timeout 20 lldpcli -f json show neighbors details"
CONFIGURATION = "timeout 20 lldpcli -f json show configuration"
AGENTS = f"sh -c {shlex.quote(texts.AGENTS_ON)}"
FABRIC = LldpOptions(networks=("fabric",), firmware_agent="off")
CLUSTER = fabric_site({"lldp": FABRIC, "naming": Interfaces()})


def recorded(name):
    return (RECORDED / name).read_text()


def configuration(**changes):
    values = {
        "hostname": "gpu1",
        "tx-delay": "30",
        "lldp-portid-type": "ifname",
        "iface-pattern": "rail0,rail1",
    }
    kept = {key: value for key, value in {**values, **changes}.items() if value is not None}
    return json.dumps({"configuration": {"config": kept}})


HEALTHY = {
    **unit("lldpd.service"),
    **files({texts.SETTINGS: texts.settings(CLUSTER, worker(CLUSTER), FABRIC)}),
    CONFIGURATION: configuration(),
    AGENTS: "off\n",
    ASKS: recorded("lldp_two_rails.json"),
}


def test_what_is_written():
    assert texts.settings(CLUSTER, worker(CLUSTER), FABRIC) == (
        "# Written by rackwright; changes made here are undone.\n"
        "configure system hostname gpu1\n"
        "# the port as a person calls it, e.g. rail3, instead of its MAC address\n"
        "configure lldp portidsubtype ifname\n"
        "configure lldp tx-interval 30\n"
        "configure system interface pattern rail0,rail1\n"
    )
    every = texts.settings(CLUSTER, worker(CLUSTER), LldpOptions(interval_seconds=10))
    assert every.endswith("configure lldp tx-interval 10\n")


def test_a_tagged_network_is_spoken_of_on_its_port():
    both = LldpOptions(networks=("management", "fabric"))
    assert both.pattern(CLUSTER, worker(CLUSTER)) == "mgmt0,rail0,rail1"


def test_a_node_on_none_of_the_networks_speaks_nowhere():
    # an empty pattern would be every port
    assert "pattern !*\n" in texts.settings(CLUSTER, head(CLUSTER), FABRIC)


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
def test_it_is_planned_on_every_release(os):
    cluster = fabric_site({"lldp": FABRIC, "naming": Interfaces()}, os=os)
    plan = planned(cluster, worker(cluster))
    assert [entry.name for entry in plan.operations if entry.role == "lldp"] == [
        "Install lldpd",
        "Disable LLDP in NIC firmware",
        "Create the folder for lldpd settings",
        "Write lldpd's settings",
        "Start lldpd",
    ]
    assert content(plan, texts.SETTINGS) == texts.settings(cluster, worker(cluster), FABRIC)
    assert "lldpd" in commands(plan, "Install lldpd")[0]


def test_a_container_has_no_firmware():
    cluster = fabric_site({"lldp": FABRIC, "naming": Interfaces()}, platform=Platform.CONTAINER)
    names = [entry.name for entry in planned(cluster, worker(cluster)).operations]
    assert "Disable LLDP in NIC firmware" not in names
    found = judged("lldp", CHECKS, FIRMWARE, cluster, worker(cluster), FakeHost({}))
    assert found.status == "OUT OF SCOPE"
    assert FIRMWARE not in claimed("lldp", CHECKS, worker(fabric_site({"lldp": LldpOptions()})))


def test_refused():
    assert errors_in(LldpOptions, {"interval_seconds": 1}) == ["Input should be greater than or equal to 5"]
    unnamed = LldpOptions(networks=("fabric", "fabrik"))
    cluster = fabric_site({"lldp": unnamed, "naming": Interfaces(named=False)})
    assert list(unnamed.problems(cluster)) == [
        (
            "networks[0]",
            "No role declares the interface of fabric on gpu1.",
            "declare it in `roles.network.networks`, or leave `networks` out",
        ),
        ("networks[1]", "There is no network fabrik.", "did you mean `fabric`?"),
    ]
    assert list(FABRIC.problems(CLUSTER)) == []


def test_cabled_ports():
    assert [
        (str(port), port.interface, str(port.leaf)) for port in cabled_ports(CLUSTER, worker(CLUSTER))
    ] == [
        ("fabric rail 0", "rail0", "leaf0 port 1"),
        ("fabric rail 1", "rail1", "leaf1 port 1"),
    ]
    assert cabled_ports(CLUSTER, head(CLUSTER)) == ()
    infiniband = fabric_site({"lldp": FABRIC}, kind=LinkKind.INFINIBAND)
    assert cabled_ports(infiniband, worker(infiniband)) == ()


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("lldp_two_rails.json", {"rail0": ["leaf1.0 swp1"], "rail1": ["leaf1.1 swp1"]}),
        ("lldp_one_neighbour.json", {"swp1": ["gpu1 rail0"]}),
        (
            "lldp_two_neighbours_on_a_port.json",
            {"rail0": ["leaf1.0 swp1", "gpu2 rail0"], "rail1": ["leaf1.1 swp1"]},
        ),
        ("lldp_none.json", {}),
    ],
)
def test_neighbours_as_recorded(file, found):
    assert named_neighbours(json.loads(recorded(file))) == found


def test_a_neighbour_without_a_name():
    chassis = {"id": {"type": "mac", "value": "02:00:00:00:00:01"}, "descr": "x"}
    port = {"id": {"type": "mac", "value": "02:00:00:00:00:02"}}
    document = {"lldp": {"interface": {"rail0": {"chassis": chassis, "port": port}}}}
    assert named_neighbours(document) == {"rail0": ["02:00:00:00:00:01 02:00:00:00:00:02"]}


@pytest.mark.parametrize("document", [{}, [], {"lldp": []}, {"lldp": {"interface": {"rail0": {}}}}])
def test_other_documents_are_not_read(document):
    with pytest.raises(Undetermined):
        named_neighbours(document)
    with pytest.raises(Undetermined):
        parse_configuration(document)


CASES = [
    (RUNS, {}, "PASS", "lldpd.service is active and enabled"),
    (RUNS, unit("lldpd.service", "failed"), "FAIL", "lldpd.service is failed"),
    (SETTINGS, {}, "PASS", "announces gpu1 on rail0,rail1"),
    (SETTINGS, files({texts.SETTINGS: None}), "FAIL", f"{texts.SETTINGS} is missing"),
    (
        SETTINGS,
        {CONFIGURATION: configuration(hostname="old", **{"tx-delay": "5"})},
        "FAIL",
        "the running lldpd has hostname old, not gpu1; tx-delay 5, not 30",
    ),
    (SETTINGS, {CONFIGURATION: configuration(hostname=None)}, "UNKNOWN", "lldpcli does not print hostname"),
    (SETTINGS, {CONFIGURATION: "no"}, "UNKNOWN", None),
    (FIRMWARE, {}, "PASS", "no firmware agent is on"),
    (
        FIRMWARE,
        {AGENTS: "rail0 rail1\n"},
        "FAIL",
        "the firmware of rail0, rail1 consumes LLDP frames: its agent is on",
    ),
    (FIRMWARE, {AGENTS: "\n"}, "UNKNOWN", "the node printed nothing about its firmware's LLDP agents"),
    (FIRMWARE, {AGENTS: (127, "", "")}, "UNKNOWN", None),
    (NEIGHBOURS, {}, "PASS", "rail0: leaf1.0 swp1; rail1: leaf1.1 swp1"),
    (
        NEIGHBOURS,
        {ASKS: recorded("lldp_none.json")},
        "FAIL",
        "fabric rail 0 (rail0): no neighbour, not leaf0 port 1; fabric rail 1 (rail1): no neighbour, not leaf1 port 1",
    ),
    (NEIGHBOURS, {ASKS: "{}"}, "UNKNOWN", None),
    (NEIGHBOURS, {ASKS: (124, "", "")}, "UNKNOWN", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "status", "evidence"), CASES)
def test_check(name, changes, status, evidence):
    found = judged("lldp", CHECKS, name, CLUSTER, worker(CLUSTER), FakeHost({**HEALTHY, **changes}))
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_a_node_without_tools_is_unknown(name):
    assert judged("lldp", CHECKS, name, CLUSTER, worker(CLUSTER), FakeHost({})).status == "UNKNOWN"


def test_a_port_whose_interface_is_not_declared_is_unknown():
    cluster = fabric_site({"lldp": LldpOptions(), "naming": Interfaces(named=False)})
    found = judged("lldp", CHECKS, NEIGHBOURS, cluster, worker(cluster), FakeHost(HEALTHY))
    assert (found.status, found.evidence) == (
        "UNKNOWN",
        "no role declares the interface of fabric rail 0, fabric rail 1: see `roles.network`",
    )


def test_without_cables_neighbours_are_evidence():
    cluster = fabric_site({"lldp": LldpOptions()}, cabled=False)
    found = judged("lldp", CHECKS, NEIGHBOURS, cluster, worker(cluster), FakeHost(HEALTHY))
    assert (found.status, found.evidence) == (
        "PASS",
        "no cable is declared; rail0: leaf1.0 swp1; rail1: leaf1.1 swp1",
    )


@pytest.mark.parametrize(
    ("flags", "shown", "then"),
    [
        ("fw-lldp-agent        : on", "on", "fw-lldp-agent off"),
        ("fw-lldp-agent        : off", "off", "fw-lldp-agent off"),
        ("disable-fw-lldp      : off", "on", "disable-fw-lldp on"),
        ("disable-fw-lldp      : on", "off", "disable-fw-lldp on"),
        ("link-down-on-close   : off", "off", None),
    ],
)
def test_the_shell_reads_and_writes_the_flag(tmp_path, flags, shown, then):
    """With an ethtool that prints the flags of each interface with a device."""
    log = tmp_path / "log"
    tool = tmp_path / "ethtool"
    tool.write_text(
        f'#!/bin/sh\nif [ "$1" = --show-priv-flags ]; then echo "Private flags for $2:"; echo "{flags}"; '
        f'else shift 2; echo "$*" >>{log}; fi\n'
    )
    tool.chmod(0o755)
    folder = tmp_path / "net" / "rail0" / "device"
    folder.mkdir(parents=True)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def run(script):
        moved = script.replace("/sys/class/net", str(tmp_path / "net"))
        return subprocess.run(
            ["sh", "-c", moved], env=environment, capture_output=True, text=True, check=False, timeout=20
        )

    assert run(texts.AGENTS_ON).stdout == ("rail0\n" if shown == "on" else "off\n")
    assert run(texts.AGENTS_OFF).returncode == 0
    assert (log.read_text() if log.exists() else None) == (f"{then}\n" if then else None)
    assert run(texts.AGENTS_ON.replace("ethtool", "no-such-tool")).returncode != 0
