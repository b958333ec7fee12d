"""`fabric check` on a simulated InfiniBand fabric: real ibnetdiscover, iblinkinfo and ibqueryerrors, faults of each kind."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from rackwright.command import CommandResult
from rackwright.fabric.check import Checked, check
from rackwright.fabric.finding import Kind
from rackwright.model.cluster import Cluster
from rackwright.model.fabric import End, Fabric, NodePort, SwitchPort
from rackwright.model.types import LinkKind, Platform
from rackwright.roles.rdma.options import RdmaOptions
from rackwright.status import Status
from tests.factories import make_address, make_cluster, make_network, make_node
from tests.racks.infiniband_sim.simulated import Simulated, simulated, until
from tests.unit.fabric import units
from tests.unit.fabric.units import CABLING, Built, Fault, Wire, errors, hosts_of, wrong_spine

pytestmark = [pytest.mark.lab, pytest.mark.proof]

LANE_GBPS = 10.0
"""QDR: the fastest that ibsim 0.10 simulates; `s=7` in its file, 1 for SDR alone."""
FABRICS = {
    "two leaves": units.unit(nodes=16, rails=2, spines=2, each=2, gbps=4 * LANE_GBPS),
    "two subnets": units.unit(nodes=16, rails=2, spines=0, each=0, gbps=4 * LANE_GBPS),
    "unit of 32": units.unit(nodes=32, rails=8, spines=4, each=8, gbps=4 * LANE_GBPS),
}
SEEDS = 50
NO_SYSFS = CommandResult("", 0, "", "")
"""A simulated node has none; whose each device is, is read from its description."""


@dataclass
class Shell:
    """Root on the simulated nodes."""

    fabric: Simulated
    asked: list[str]

    def run(
        self, node: str, command: str, *, stdin: str | bytes | None = None, timeout: float
    ) -> CommandResult:
        if "ibnetdiscover" not in command:
            return NO_SYSFS
        self.asked.append(node)
        # a simulated node is one device, which its name chooses and no option
        through = re.search(r" -C (mlx5_rail([0-9]+)) -P 1", command)
        rail = int(through[2]) if through else 0
        done = self.fabric.host(name_of(NodePort(node, rail))).shell(
            command.replace(through[0], "") if through else command
        )
        return CommandResult(command, done.rc, done.stdout, done.stderr)


def name_of(end: End) -> str:
    """As discovery describes its device."""
    return end.switch if isinstance(end, SwitchPort) else f"{end.node} mlx5_rail{end.rail}"


def net(fabric: Fabric, built: Built) -> str:
    """What is built, in ibsim's own format: every cable at both of its ends."""
    ends: dict[str, list[str]] = defaultdict(list)
    for wire in built.wires:
        for end, other in ((wire.near, wire.far), (wire.far, wire.near)):
            ends[name_of(end)].append(f'[{number(end)}]\t"{name_of(other)}"[{number(other)}] {link(wire)}')
    declared = {name_of(end): end for cable in fabric.cables for end in cable.ends}
    blocks = []
    for place, (name, end) in enumerate(declared.items(), 1):
        if isinstance(end, NodePort) and end.node in built.absent:
            continue
        guid, kind = f"{0x0002C90300000000 + 16 * place:#x}", isinstance(end, SwitchPort)
        first = (
            f'switchguid={guid}\nSwitch {units.SPARE_PORT} "{name}"'
            if kind
            else f'caguid={guid}\nCa 1 "{name}"'
        )
        blocks.append("\n".join((first, *ends[name])))
    return "\n\n".join(blocks) + "\n"


def number(end: End) -> int:
    return end.port if isinstance(end, SwitchPort) else 1


def link(wire: Wire) -> str:
    """Enabled widths and speeds, as bits: 1x is 1, 4x is 2; SDR is 1, all up to QDR 7."""
    return f"w={3 if wire.lanes == 4 else 1} s={7 if wire.gbps == LANE_GBPS * wire.lanes else 1}"


def cluster_of(fabric: Fabric) -> Cluster:
    """Its nodes, whose devices the role rdma declares."""
    devices = {
        f"mlx5_rail{rail}": {"pci": f"0000:{rail:02x}:00.0", "rail": rail} for rail in range(fabric.rails)
    }
    options = RdmaOptions.model_validate({"devices": devices})
    networks = {
        "management": make_network("management", "10.9.0.0/24"),
        "fabric": make_network("fabric", "10.11.0.0/16", kind=LinkKind.INFINIBAND, rails=fabric.rails),
    }
    nodes = [
        make_node(
            name,
            place,
            addresses=(
                make_address("management", f"10.9.0.{place}"),
                *(make_address("fabric", f"10.11.{rail}.{place}", rail) for rail in range(fabric.rails)),
            ),
            platform=Platform.BARE_METAL,
            options={"rdma": options},
        )
        for place, name in enumerate(hosts_of(fabric), 1)
    ]
    return make_cluster(*nodes, networks=networks, fabrics={"fabric": fabric})


@contextmanager
def subnet(folder: Path, fabric: Fabric, built: Built) -> Iterator[Simulated]:
    """The fabric with a subnet manager, which has brought its ports up; counters and switched-off ports as built."""
    managers = [
        next(
            wire.near
            for wire in reversed(built.wires)
            if isinstance(wire.far, SwitchPort)
            and wire.far.switch in switches
            and isinstance(wire.near, NodePort)
            and wire.far not in built.off
        )
        for switches in fabric.subnets
    ]
    folder.mkdir()
    with simulated(folder, net(fabric, built)) as running:
        kept = {"OSM_CACHE_DIR": str(folder), "OSM_TMP_DIR": str(folder)}
        for manager in managers:
            running.start(name_of(manager), "opensm", "-d2", "-f", "stdout", **kept)  # -d2: log at once
        for manager in managers:
            until(partial(_is_ready, running, name_of(manager)))
        for port, count in built.symbols.items():
            running.console(
                f'PerformanceSet "{port.switch}"[{port.port}] PortCounters.SymbolErrorCounter={count}'
            )
        for port in built.off:
            manager = next(
                one for one in managers if fabric.leaf_of[one].switch == port.switch or len(managers) == 1
            )
            done = running.host(name_of(manager)).run(
                "ibportstate -G %s %s disable", guid(fabric, port), str(port.port)
            )
            assert done.rc == 0, done
        yield running


def _is_ready(running: Simulated, name: str) -> bool:
    """A standby where a cable too many makes one subnet of two."""
    return any(said in running.log(name) for said in ("SUBNET UP", "Entering STANDBY state"))


def guid(fabric: Fabric, port: SwitchPort) -> str:
    declared = list(dict.fromkeys(name_of(end) for cable in fabric.cables for end in cable.ends))
    return f"{0x0002C90300000000 + 16 * (declared.index(port.switch) + 1):#x}"


def checked(folder: Path, fabric: Fabric, built: Built) -> Checked:
    """Output of the check; retried once if a tool crashed, which it also reports (seen once in 1,100 runs of ibqueryerrors)."""
    with subnet(folder, fabric, built) as running:
        for _ in range(2):
            [found] = check(cluster_of(fabric), shell=Shell(running, [])).fabrics
            crashed = [one for one in found.findings if "Segmentation fault" in one.text]
            assert all(one.status is Status.UNKNOWN for one in crashed)
            if not crashed:
                break
    return found


@pytest.mark.parametrize("name", FABRICS)
def test_an_intact_fabric_is_as_declared(tmp_path: Path, name: str) -> None:
    fabric = FABRICS[name]
    found = checked(tmp_path / "net", fabric, units.as_declared(fabric))
    assert found.findings == ()
    assert (found.intact, found.cables) == (len(fabric.cables), len(fabric.cables))


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        pytest.param(name, fault, id=f"{name}-{fault.__name__}")
        for name, fabric in FABRICS.items()
        for fault in (*CABLING, errors)
        if fabric.spines or fault is not wrong_spine
    ],
)
def test_each_fault_is_found_and_none_is_invented(tmp_path: Path, name: str, fault: Fault) -> None:
    fabric = FABRICS[name]
    for seed in range(SEEDS):
        seeded = fault(random.Random(seed), fabric)
        found = checked(tmp_path / str(seed), fabric, seeded.built)
        assert [one.kind for one in found.findings] == [seeded.kind], (seed, found.findings)
        assert seeded.ends <= set(found.findings[0].ends), (seed, found.findings[0])
        assert found.findings[0].status is Status.FAIL


@pytest.mark.parametrize(("unplugged", "asked"), [(1, 2), (4, 4)])
def test_a_node_without_a_link_is_not_asked_for_the_fabric(
    tmp_path: Path, unplugged: int, asked: int
) -> None:
    """What it sees, itself alone, would make every other node absent."""
    fabric = FABRICS["two leaves"]
    hosts = hosts_of(fabric)
    built = units.rewired(fabric, {NodePort(host, 0): None for host in hosts[:unplugged]})
    found = checked(tmp_path / "net", fabric, built)
    assert found.asked == hosts[:asked]
    if asked > unplugged:
        assert [one.kind for one in found.findings] == [Kind.MISSING]
    else:
        assert {one.status for one in found.findings} == {Status.UNKNOWN}
        assert len(found.findings) == unplugged


def test_a_subnet_that_cannot_be_read_is_unknown_and_the_other_one_is_compared(tmp_path: Path) -> None:
    fabric = FABRICS["two subnets"]
    hosts = hosts_of(fabric)
    unplugged: dict[End, End | None] = {NodePort(host, 1): None for host in hosts[:4]}
    found = checked(tmp_path / "net", fabric, units.rewired(fabric, unplugged))
    assert found.asked == hosts[:4]
    assert [one.status for one in found.findings] == [Status.UNKNOWN] * 4
    assert found.findings[0].text == (
        "gpu001: ibnetdiscover found no link: the port that it used is not connected."
    )
    unplugged[NodePort(hosts[9], 0)] = None
    found = checked(tmp_path / "both", fabric, units.rewired(fabric, unplugged))
    assert [one.kind for one in found.findings if one.status is Status.FAIL] == [Kind.MISSING]


def test_firmware_of_switches_that_do_not_say_it_is_unknown(tmp_path: Path) -> None:
    """ibsim answers no MAD of a vendor; vendstat is asked of every switch, through each subnet."""
    for name, fabric in FABRICS.items():
        first = fabric.leaves[0]
        switches = {**fabric.switches, first: replace(fabric.switches[first], firmware="31.2014.2036")}
        declared = replace(fabric, switches=switches)
        found = checked(tmp_path / name, declared, units.as_declared(declared))
        assert [(one.status, one.text) for one in found.findings] == [
            (Status.UNKNOWN, f"The firmware of {first} was not read; 31.2014.2036 was declared.")
        ], name
        assert found.intact == len(fabric.cables)
