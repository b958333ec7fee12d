"""The mode of BlueField-3 cards, read and judged."""

from __future__ import annotations

import pytest

from rackwright.health.declare import expected_of_sku
from rackwright.health.judge import judge
from rackwright.health.probe.bluefield import parse
from rackwright.health.probe.source import Unavailable
from rackwright.health.verdict import Action
from rackwright.model.sku import Nic
from rackwright.model.types import Platform
from rackwright.status import Status
from tests.factories import make_sku
from tests.unit.health.bases import BASES, in_cluster, without
from tests.unit.health.fake_node import HANGS, MISSING, document
from tests.unit.health.faults import CARD, command
from tests.unit.health.healthy import mlxconfig, mlxconfig_of

B200 = BASES["dgx-b200"]
OTHER = "0000:a8:00.0"


def found(mutate, expected=B200.expected):
    results = judge(expected, document(B200.node.with_fault(mutate)))
    return [one for one in results if one.check == "bluefield-mode"]


def test_what_is_read():
    assert parse(mlxconfig(CARD, nic=True)) == {"mode": "nic", "next_mode": "nic"}
    assert parse(mlxconfig(CARD, nic=False, after=True)) == {"mode": "dpu", "next_mode": "nic"}


NEXT_BOOT_ALONE = """\
Device type:    BlueField3
Configurations:                                      Next Boot
        INTERNAL_CPU_MODEL                          EMBEDDED_CPU(1)
        INTERNAL_CPU_OFFLOAD_ENGINE                 ENABLED(0)
"""
"""As `mstconfig q` prints without -e: it does not say what the card does now."""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-E- No such device",
        NEXT_BOOT_ALONE,
        mlxconfig(CARD, nic=True).replace("DISABLED(1)", "N/A"),
        mlxconfig(CARD, nic=False).replace("EMBEDDED_CPU(1)", "SEPARATED_HOST(0)"),
        mlxconfig(CARD, nic=True).replace("INTERNAL_CPU_MODEL", "SOMETHING"),
    ],
)
def test_what_cannot_be_read_is_unknown(text):
    with pytest.raises(Unavailable):
        parse(text)
    [result] = found(command(mlxconfig_of(CARD), text))
    assert (result.status, result.action) == (Status.UNKNOWN, Action.NONE)
    assert result.evidence.startswith(f"{CARD}: ")


def test_a_card_in_the_other_mode_drains_nothing():
    [result] = found(command(mlxconfig_of(CARD), mlxconfig(CARD, nic=False)))
    assert (result.status, result.action) == (Status.FAIL, Action.NONE)
    assert result.evidence == f"{CARD} is in DPU mode, declared NIC mode"


def test_a_card_that_cannot_be_read_hides_no_other():
    def mutate(node):
        node.commands[mlxconfig_of(CARD)] = HANGS
        node.commands[mlxconfig_of(OTHER)] = mlxconfig(OTHER, nic=False)

    assert {one.status for one in found(mutate)} == {Status.UNKNOWN, Status.FAIL}


def test_mstconfig_will_do_and_without_either_it_is_unknown():
    def mstconfig(node):
        node.drop("/usr/bin/mlxconfig")
        node.put("/usr/bin/mstconfig", "a program")
        for card in (CARD, OTHER):
            node.commands[mlxconfig_of(card, "mstconfig")] = node.commands.pop(mlxconfig_of(card))

    assert [one.status for one in found(mstconfig)] == [Status.PASS]
    [result] = found(lambda node: node.drop("/usr/bin/mlxconfig"))
    assert (result.status, result.evidence) == (
        Status.UNKNOWN,
        "neither mlxconfig (MFT) nor mstconfig (mstflint) is installed",
    )
    [result] = found(lambda node: node.commands.update({mlxconfig_of(CARD): MISSING}))
    assert result.status is Status.UNKNOWN


def test_every_card_is_gone():
    def mutate(node):
        for card in (CARD, OTHER):
            for function in "01":
                node.drop(f"/sys/bus/pci/devices/{card[:-1]}{function}")

    [result] = [one for one in found(mutate) if one.status is Status.FAIL]
    assert result.evidence == "0 of 4 declared BlueField-3 ports are on the PCI bus"


@pytest.mark.parametrize(
    ("bluefields", "status", "evidence"),
    [
        ({"any": 4}, Status.PASS, "4 ports; the SKU declares no mode"),
        ({"nic": 2, "any": 2}, Status.PASS, "4 ports; the SKU declares no mode"),
        ({"dpu": 2, "nic": 2}, Status.FAIL, "0 of 2 ports declared in DPU mode are in that mode"),
        ({"nic": 4}, Status.PASS, "NIC mode"),
    ],
)
def test_what_is_declared(bluefields, status, evidence):
    [result] = found(lambda node: None, without(B200.expected, bluefields=bluefields))
    assert (result.status, result.evidence) == (status, evidence)


def test_the_declaration():
    ports = [
        Nic(purpose="storage", kind="ethernet", speed_gbps=400, model="BlueField-3", mode=mode)
        for mode in ("nic", "dpu", "dpu", None)
    ]
    other = Nic(purpose="storage", kind="ethernet", speed_gbps=400, model="ConnectX-7")
    expected = expected_of_sku(make_sku(nics=(*ports, other)))
    assert expected.bluefields == {"nic": 1, "dpu": 2, "any": 1}
    assert type(expected).from_json(expected.to_json()) == expected
    assert expected_of_sku(make_sku(nics=(other,))).bluefields == {}
    with pytest.raises(
        ValueError, match="Only a BlueField-3 has a `mode`; the model of the port is ConnectX-7"
    ):
        make_sku(nics=(other.model_copy(update={"mode": "nic"}),))


def test_a_vm_is_out_of_scope():
    expected = in_cluster(B200.sku, platform=Platform.VM).expected
    results = judge(without(expected, node=None), document(B200.node))
    assert [one.status for one in results if one.check == "bluefield-mode"] == [Status.OUT_OF_SCOPE]
