"""The same machine behind virtualbmc's IPMI, which knows power, boot device and cipher suite 3, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.racks.sushy import machine
from tests.racks.sushy.conftest import Operator, by_ipmi

pytestmark = [pytest.mark.lab, pytest.mark.proof]


@pytest.fixture
def ipmi(operator: Operator) -> Iterator[Operator]:
    """The cluster file with the other BMC; the machine is off, as it was, and boots from its disk."""
    with operator.declaring(by_ipmi):
        assert not machine.runs(operator.private)
        yield operator
        operator.power("off", "--confirm", machine.NAME)
    operator.bmc("boot-order", "none")


@pytest.mark.smoke
def test_power_is_switched_and_read(ipmi: Operator):
    private = ipmi.private
    assert ipmi.power("status") == "off"
    assert ipmi.power("on") == "power on accepted"
    assert machine.runs(private)
    assert (ipmi.power("status"), ipmi.power("on")) == ("on", "is on already")
    assert ipmi.power("reset", "--confirm", machine.NAME) == "power reset accepted"
    assert machine.runs(private)
    refused = ipmi.bmc("power", "cycle", "--confirm", machine.NAME, expect=1)
    assert "failed at `power cycle`" in refused.err
    assert machine.runs(private)
    assert ipmi.power("off", "--confirm", machine.NAME) == "power off accepted"
    assert not machine.runs(private)


def test_the_boot_device_is_set(ipmi: Operator):
    """virtualbmc keeps it until it is changed, and reports it as once: its flags are fixed."""
    for target, libvirt_name in (("pxe", "network"), ("cd", "cdrom"), ("disk", "hd")):
        said = ipmi.bmc("boot-order", target, "--json").json()["nodes"]
        assert said == {machine.NAME: {"boot order": f"{target}, once"}}
        assert f"<boot dev='{libvirt_name}'/>" in ipmi.private.virsh("dumpxml", machine.NAME).out


def test_what_it_does_not_know_is_said_and_not_taken_for_health(ipmi: Operator):
    (status,) = ipmi.bmc("status", "--json", expect=4).json()["nodes"]
    assert (status["status"], status["power"]) == ("UNKNOWN", "off")
    assert [one["text"] for one in status["findings"]] == [
        "the BMC failed to read its sensors (sdr elist)",
        "the BMC failed to read its event log",
    ]
    assert "failed at `sel elist last 20`" in ipmi.bmc("log", expect=4).err
    assert "failed at `chassis identify force`" in ipmi.bmc("identify", "on", expect=1).err


def test_a_wrong_suite_a_wrong_password_and_silence_are_distinguished(ipmi: Operator):
    def refused(**bmc: object) -> str:
        with ipmi.declaring(lambda content: content["nodes"][0]["bmc"].update(bmc)):
            return " ".join(ipmi.bmc("power", "status", expect=4).err.split())

    assert "refuses IPMI cipher suite 17" in refused(cipher_suite=17)
    with ipmi.wrong_password():
        assert "refuses user admin or the password" in refused()
    assert "does not answer IPMI on UDP port 623" in refused(address="10.88.0.99")


def test_it_is_not_installed_by_virtual_media(ipmi: Operator):
    with ipmi.declaring(
        lambda content: content["nodes"][0].update(
            install={"image": "image", "disk": {"serials": [machine.DISK]}}
        )
    ):
        refused = ipmi.install(expect=1)
    assert "IPMI supports neither virtual media nor HTTP boot" in refused.err
    assert not machine.runs(ipmi.private)
