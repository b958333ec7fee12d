"""Why a machine is left alone, and that there is no way around it."""

from __future__ import annotations

import pytest

from rackwright.bmc.interface import BmcIdentity, Power
from rackwright.install.interlocks import Seen, refusals
from rackwright.install.record import Record
from rackwright.install.states import State
from tests.unit.install.site import changed, mac, make_worker

NODE = make_worker()
FRESH = Record("worker1")
MINE = BmcIdentity(maker="Example", model="X1", serial="SN-1", macs=(mac(1), mac(101)))


def seen(identity=MINE, power=Power.OFF, secure_boot=False, answers=False):
    return Seen(identity, power, secure_boot, answers)


def messages(node=NODE, found=None, record=FRESH, typed=None, mode="install"):
    return [one.message for one in refusals(node, found or seen(), record, typed, mode)]


def test_the_declared_machine_that_is_off_is_installed():
    assert messages() == []
    assert messages(found=seen(secure_boot=None)) == []


@pytest.mark.parametrize("power", [Power.ON, Power.CHANGING, Power.UNKNOWN])
@pytest.mark.parametrize("mode", ["install", "discover"])
@pytest.mark.parametrize("typed", [None, "SN-1"])
def test_a_machine_that_may_be_running_is_never_reset(power, mode, typed):
    """Not even one whose reinstallation was agreed to."""
    record = Record("worker1", was_ready=True)
    found = refusals(NODE, seen(power=power), record, typed, mode)
    assert found[0].message == f"its power is {power}, and a running machine is never reset"
    assert found[0].hint == "once nothing on it is needed: rackwright bmc power FILE soft --limit worker1"


@pytest.mark.parametrize("mode", ["install", "discover"])
def test_nor_one_whose_address_answers(mode):
    assert messages(found=seen(answers=True), typed="SN-1", mode=mode) == [
        "its address answers on the SSH port"
    ]


@pytest.mark.parametrize("state", list(State))
def test_a_node_that_was_ready_is_not_erased_in_any_state(state):
    record = Record("worker1", state=state, was_ready=True)
    found = refusals(NODE, seen(), record, None)
    assert [one.message for one in found] == ["it is already installed"]
    assert found[0].hint == "to erase it, type its serial number: --reinstall worker1=SN-1"
    assert messages(record=record, typed="SN-1") == []


@pytest.mark.parametrize("typed", ["SN-2", "sn-1", " SN-1", "", "worker1", "yes", mac(1)])
def test_nothing_but_its_serial_number_agrees_to_that(typed):
    assert messages(record=Record("worker1", was_ready=True), typed=typed) == [
        f"{typed} is not its serial number"
    ]


def test_the_serial_number_of_another_machine_that_the_bmc_reports_does_not_agree():
    identity = BmcIdentity(serial="SN-2", macs=(mac(1),))
    found = messages(found=seen(identity), record=Record("worker1", was_ready=True), typed="SN-2")
    assert found == [
        "its BMC belongs to machine SN-2, but serial SN-1 is declared",
        "SN-2 is not its serial number",
    ]


def test_without_any_serial_number_nothing_can_be_typed():
    node = NODE.model_copy(update={"serial": None})
    for typed in (None, "None", ""):
        found = messages(node, seen(BmcIdentity(macs=(mac(1),))), Record("worker1", was_ready=True), typed)
        assert len(found) == 2


def test_the_bmc_of_another_machine():
    assert messages(found=seen(BmcIdentity(serial="SN-2", macs=(mac(1),)))) == [
        "its BMC belongs to machine SN-2, but serial SN-1 is declared"
    ]
    assert messages(found=seen(BmcIdentity(serial="SN-1", macs=(mac(2), mac(102))))) == [
        f"its BMC's machine has the MACs {mac(2)}, {mac(102)}, but {mac(1)} is declared"
    ]


NO_SERIALS = [
    "0123456789",
    "1234567890",
    "None",
    "N/A",
    "Not Specified",
    "To be filled by O.E.M.",
    "Default string",
]
NO_SERIALS += ["System Serial Number", "0000000000", "XXXXXXX", "unknown", " none "]


@pytest.mark.parametrize("serial", [None, *NO_SERIALS])
def test_a_mac_alone_is_never_trusted(serial):
    """What boards carry whose serial number was never set is none, also where it is declared."""
    for declared in (None, "SN-1", serial):
        node = NODE.model_copy(update={"serial": declared})
        found = messages(node, seen(BmcIdentity(serial=serial, macs=(mac(1),))))
        assert any("so the booted machine could not be identified" in one for one in found)


UUID = "1f0c0000-0000-4000-8000-000000000001"
AMI = "03000200-0400-0500-0006-000700080009"


@pytest.mark.parametrize(
    "uuid", [None, "", "odd", "0" * 32, "f" * 32, AMI, "12345678-1234-5678-90ab-cddeefaabbcc"]
)
def test_nor_with_a_uuid_that_was_never_set(uuid):
    identity = BmcIdentity(serial="0123456789", uuid=uuid, macs=(mac(1),))
    assert messages(found=seen(identity))[-1] == (
        "its BMC reports the serial number '0123456789' and no UUID, so the booted machine could not be identified"
    )


def test_a_uuid_tells_a_machine_whose_port_is_declared():
    node = NODE.model_copy(update={"serial": None})
    for serial in (None, "0123456789"):
        mine = BmcIdentity(serial=serial, uuid=UUID, macs=(mac(1),))
        assert messages(node, seen(mine)) == []
        assert messages(node, seen(BmcIdentity(serial=serial, uuid=UUID, macs=(mac(2),))))
        assert messages(node, seen(BmcIdentity(serial=serial, uuid=UUID)))
        assert messages(node.model_copy(update={"mac": None}), seen(mine))


def test_where_there_is_a_serial_number_its_uuid_agrees_to_nothing():
    record = Record("worker1", was_ready=True)
    identity = BmcIdentity(serial="SN-1", uuid=UUID, macs=(mac(1),))
    for node in (NODE, NODE.model_copy(update={"serial": None})):
        assert messages(node, seen(identity), record, UUID) == [f"{UUID} is not its serial number"]
        assert messages(node, seen(identity), record, "SN-1") == []


def test_nor_does_a_serial_number_that_was_never_set():
    record = Record("worker1", was_ready=True)
    identity = BmcIdentity(serial="0123456789", uuid=UUID, macs=(mac(1),))
    node = NODE.model_copy(update={"serial": None})
    assert messages(node, seen(identity), record, "0123456789") == ["0123456789 is not its UUID"]
    assert messages(node, seen(identity), record, UUID) == []


def test_nor_a_serial_number_that_was_not_declared_and_nothing_else_confirms():
    node = NODE.model_copy(update={"serial": None})
    assert messages(node) == []
    expected = ["neither its serial number nor a MAC that its BMC reports is declared, so the machine cannot be identified"]  # fmt: skip
    assert messages(node, seen(BmcIdentity(serial="SN-1"))) == expected
    assert messages(node.model_copy(update={"mac": None})) == expected
    assert messages(found=seen(BmcIdentity(serial="SN-1"))) == []


def test_secure_boot_is_as_declared():
    node = changed(NODE, secure_boot=True)
    found = refusals(node, seen(), FRESH, None)
    assert [one.message for one in found] == ["Secure Boot is off, but on is declared"]
    assert found[0].hint == "turn it on in the firmware, or declare `secure_boot: false`"
    assert messages(found=seen(secure_boot=True)) == ["Secure Boot is on, but off is declared"]


def test_a_discovery_writes_nothing_and_asks_for_less():
    """Which machine it is it finds out; it needs a port to speak from."""
    other = seen(BmcIdentity(serial="SN-9", macs=(mac(9),)), secure_boot=True)
    assert messages(found=other, record=Record("worker1", was_ready=True), mode="discover") == []
    nameless = NODE.model_copy(update={"mac": None})
    assert messages(nameless, other, mode="discover") == []
    assert messages(nameless, seen(BmcIdentity()), mode="discover") == [
        "neither its declaration nor its BMC has a MAC, which its agent needs to find its network port"
    ]


def test_all_reasons_come_at_once():
    found = seen(BmcIdentity(serial="SN-2", macs=(mac(2),)), Power.ON, True, True)
    assert len(messages(found=found, record=Record("worker1", was_ready=True))) == 6
