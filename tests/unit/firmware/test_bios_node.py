"""BIOS attributes set: pending, a boot, read back."""

from __future__ import annotations

import pytest

from rackwright.bmc.redfish_bios import refusals
from rackwright.errors import BmcError, FirmwareError
from rackwright.firmware.bios_node import BiosNode
from rackwright.firmware.compare import NodeReport, judge
from rackwright.firmware.plan import planned_attributes, refuse_attributes
from rackwright.firmware.reading import read
from rackwright.model.firmware import Baseline
from tests.factories import make_cluster
from tests.unit.bmc import fake
from tests.unit.firmware.machine import BIOS, REGISTRY, SETTINGS

WANTED = {"SriovGlobalEnable": "Enabled", "ProcVirtualization": "Enabled"}


@pytest.fixture
def bios(machine):
    def run(attributes=None):
        asking = machine.asking()
        try:
            declared = Baseline(bios_attributes=WANTED if attributes is None else attributes)
            return BiosNode(asking, declared, lambda: machine.reboot(asking)).run()
        finally:
            asking.close()

    return run


def _changes(machine, path=SETTINGS):
    return [body for method, place, body in machine.bmc.changes() if (method, place) == ("PATCH", path)]


def test_what_differs_is_set_and_read_back(machine, bios):
    assert bios() == ("SriovGlobalEnable Enabled",)
    assert [body["Attributes"] for body in _changes(machine)] == [{"SriovGlobalEnable": "Enabled"}]
    assert machine.boots == 1


def test_nothing_is_booted_where_nothing_differs(machine, bios):
    assert bios({"ProcVirtualization": "Enabled"}) == ()
    assert (machine.bmc.changes(), machine.boots) == ([], 0)


def test_an_interrupted_run_is_finished(machine, bios):
    """The killed run had set it: an iDRAC would refuse to set it a second time."""
    machine.documents[SETTINGS]["Attributes"] = {"SriovGlobalEnable": "Enabled"}
    assert bios() == ("SriovGlobalEnable Enabled",)
    assert (_changes(machine), machine.boots) == ([], 1)


def test_a_value_that_a_boot_does_not_bring(machine, bios):
    machine.stubborn = {"SriovGlobalEnable"}
    with pytest.raises(FirmwareError) as refused:
        bios()
    assert refused.value.message == (
        "The node has booted, but BIOS attributes are not as declared: SriovGlobalEnable is Disabled, but Enabled is declared."
    )


def test_a_refusal_of_the_bmc_reboots_nothing(machine, bios):
    words = {"error": {"@Message.ExtendedInfo": [{"Message": "The property is read-only."}]}}
    machine.bmc.fault(SETTINGS, lambda handler: fake.answer(handler, 400, words), "PATCH")
    with pytest.raises(BmcError, match="read-only"):
        bios()
    assert machine.boots == 0


def test_what_the_bmc_keeps_only_in_part(machine, bios):
    def part(handler):
        machine.documents[SETTINGS]["Attributes"] = {"BootMode": "Bios"}
        return fake.answer(handler, 200, {})

    machine.bmc.fault(SETTINGS, part, "PATCH")
    with pytest.raises(
        FirmwareError, match="did not accept SriovGlobalEnable; for the next boot it has BootMode"
    ):
        bios({"SriovGlobalEnable": "Enabled", "BootMode": "Bios"})
    assert machine.boots == 0


def test_a_request_that_may_have_been_lost(machine, bios):
    def cut(handler):
        handler.close_connection = True
        handler.connection.close()
        return True

    machine.bmc.fault(SETTINGS, cut, "PATCH")
    with pytest.raises(BmcError, match="did not answer PATCH"):
        bios()
    assert machine.boots == 0


@pytest.mark.parametrize(
    ("entry", "value", "why"),
    [
        (
            {"Type": "Enumeration", "Value": [{"ValueName": "On"}, {"ValueName": "Off"}]},
            "No",
            "No is not one of: On, Off",
        ),
        ({"Type": "Enumeration", "ReadOnly": True}, "On", "it is read-only"),
        ({"Type": "Integer", "LowerBound": 1, "UpperBound": 4}, 0, "0 is less than 1"),
        ({"Type": "Integer", "LowerBound": 1, "UpperBound": 4}, 5, "5 is more than 4"),
        ({"Type": "Integer"}, "5", "5 is not a whole number"),
        ({"Type": "Integer"}, True, "True is not a whole number"),
        ({"Type": "Boolean"}, "true", "true is not true or false"),
        ({"Type": "String"}, 1, "1 is not text: put it in quotes"),
        ({"Type": "Password"}, "x", "it is a password, which must not be in a cluster file"),
        ({"Type": "Integer", "LowerBound": 1, "UpperBound": 4}, 4, None),
        ({}, "anything", None),
    ],
)
def test_rules(entry, value, why):
    assert refusals({"A": value}, {"A": "x"}, {"A": entry}) == ({} if why is None else {"A": why})


def test_an_attribute_that_is_unknown():
    found = refusals({"ProcVirtualisation": "On"}, {"ProcVirtualization": "Off"}, {})
    assert found == {
        "ProcVirtualisation": "this BIOS does not have the attribute; did you mean `ProcVirtualization`"
    }


def _report(machine, attributes):
    node = make_cluster().by_name["worker1"]
    baseline = Baseline(bios_attributes=attributes)
    client = machine.bmc.client()
    reading = read(client, baseline, rules=True)
    client.close()
    report = NodeReport(node.name, judge(baseline, reading), reading=reading)
    return make_cluster(firmware={node.sku.name: baseline}), [report]


def test_everything_that_is_refused_is_said_before_anything_is_done(machine):
    _, reports = _report(
        machine,
        {"BootMode": "Bios", "SriovGlobalEnable": "Maybe", "Smt": "On", "ProcVirtualization": "Enabled"},
    )
    with pytest.raises(FirmwareError) as refused:
        refuse_attributes(reports)
    assert refused.value.message == (
        "Nothing was changed: worker1: Smt: this BIOS does not have the attribute; worker1: BootMode: it is read-only; "
        "worker1: SriovGlobalEnable: Maybe is not one of: Enabled."
    )


def test_without_a_registry_only_names_are_known(machine):
    del machine.documents[BIOS]["AttributeRegistry"]
    _, reports = _report(machine, {"BootMode": "Bios"})
    refuse_attributes(reports)


def test_a_registry_that_cannot_be_read(machine):
    machine.bmc.fault(REGISTRY, lambda handler: fake.answer(handler, 500))
    _, reports = _report(machine, {"BootMode": "Bios"})
    refuse_attributes(reports)


def test_the_plan_names_what_others_made_pending(machine):
    machine.documents[SETTINGS]["Attributes"] = {"BootMode": "Bios"}
    cluster, reports = _report(machine, WANTED)
    assert planned_attributes(cluster, reports) == {
        "worker1": (
            "SriovGlobalEnable Disabled -> Enabled",
            "BootMode -> Bios (not declared, already pending)",
        )
    }
