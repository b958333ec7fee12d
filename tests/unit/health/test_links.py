"""mlxlink's counters, read and judged."""

from __future__ import annotations

import json

import pytest

from rackwright.health.judge import judge
from rackwright.health.probe.links import parse
from rackwright.health.probe.source import Unavailable
from rackwright.health.verdict import Action
from rackwright.status import Status
from tests.unit.health.bases import BASES
from tests.unit.health.fake_node import document
from tests.unit.health.faults import command
from tests.unit.health.healthy import mlxlink

FULL = BASES["full"]
ONE = "mlxlink -d mlx5_2 -c -m --json"


def found(mutate):
    results = judge(FULL.expected, document(FULL.node.with_fault(mutate)))
    return next(one for one in results if one.check == "rdma-ber")


def test_what_is_read():
    assert parse(json.dumps(mlxlink(raw="3E-8"))) == {
        "effective_ber": 15e-255, "raw_ber": 3e-8, "symbol_ber": 15e-255, "link_downs": 0, "module_c": 47,
        "state": "Active", "fec": "Interleaved_Standard_RS_FEC_PLR - (546,514)", "serial": "MT0000X00000",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("effective", "raw", "status", "action"),
    [
        ("15E-255", "9E-6", Status.PASS, Action.NONE),
        ("9E-13", "2E-9", Status.PASS, Action.NONE),
        ("2E-12", "2E-9", Status.WARN, Action.NONE),
        ("15E-255", "2E-5", Status.WARN, Action.NONE),
        ("2E-9", "2E-5", Status.FAIL, Action.DRAIN),
        ("N/A", "N/A", Status.UNKNOWN, Action.NONE),
    ],
)
def test_rates_are_judged(effective, raw, status, action):
    result = found(command(ONE, json.dumps(mlxlink(effective, raw))))
    assert (result.status, result.action) == (status, action)


def test_a_port_that_cannot_be_read_hides_no_other():
    def mutate(node):
        node.commands["mlxlink -d mlx5_1 -c -m --json"] = (1, "", "-E- No such device")
        node.commands[ONE] = json.dumps(mlxlink("2E-9"))

    results = judge(FULL.expected, document(FULL.node.with_fault(mutate)))
    ours = {one.status: one.evidence for one in results if one.check == "rdma-ber"}
    assert set(ours) == {Status.UNKNOWN, Status.FAIL}
    assert "-E- No such device" in ours[Status.UNKNOWN]
    assert ours[Status.FAIL] == "mlx5_2: effective BER 2e-09, raw BER 2e-09 (most 1e-09 effective)"


def test_mstlink_will_do_and_without_either_nothing_is_judged():
    def mstlink(node):
        node.drop("/usr/bin/mlxlink")
        node.put("/usr/bin/mstlink", "a program")
        for key in [one for one in node.commands if one.startswith("mlxlink")]:
            node.commands[key.replace("mlxlink", "mstlink")] = node.commands.pop(key)

    assert found(mstlink).status is Status.PASS
    assert found(lambda node: node.drop("/usr/bin/mlxlink")).status is Status.OUT_OF_SCOPE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Error: invalid device",
        "{}",
        '{"result": {"output": {}}}',
        "[]",
        json.dumps(
            {"result": {"output": {"Physical Counters and BER Info": "N/A", "Operational Info": "N/A"}}}
        ),
    ],
)
def test_what_is_no_report_is_refused(text):
    with pytest.raises(Unavailable):
        parse(text)


def virtual_functions(node, of_each=64):
    """SR-IOV on every port, the functions bound on the host."""
    for parent in range(8):
        for number in range(of_each):
            at = f"/sys/class/infiniband/mlx5_{100 + of_each * parent + number}"
            node.links[at + "/device"] = (
                f"/sys/devices/pci0000:00/0000:{0x80 + parent:02x}:{number // 8:02x}.{number % 8}"
            )
            node.links[at + "/device/physfn"] = node.links[f"/sys/class/infiniband/mlx5_{parent}/device"]
            node.put(at + "/ports/1/state", "4: ACTIVE")


def test_virtual_functions_are_no_ports_of_the_hardware():
    base = BASES["full"]
    clean, busy = document(base.node), document(base.node.with_fault(virtual_functions))
    for name in ("infiniband", "links"):
        assert busy["sections"][name]["data"] == clean["sections"][name]["data"]
    assert not [one for one in judge(base.expected, busy) if one.status in (Status.FAIL, Status.UNKNOWN)]


def test_a_container_that_is_given_virtual_functions_alone_keeps_them():
    node = BASES["full"].node.with_fault(lambda node: virtual_functions(node, 1))
    for name in node.names("/sys/class/infiniband"):
        if int(name.removeprefix("mlx5_")) < 100:
            node.drop(f"/sys/class/infiniband/{name}")
    told = document(node, sections=("infiniband",))["sections"]["infiniband"]["data"]["devices"]
    assert [one["name"] for one in told] == sorted(f"mlx5_{number}" for number in range(100, 108))
