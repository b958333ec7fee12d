"""The Redfish tree of one BMC: documents, methods and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rackwright.lab import names
from rackwright.lab.bmc.settings import LOG_MAX
from rackwright.lab.bmc.tree import DOCUMENTS
from rackwright.lab.bmc.view import CD, CHASSIS, LOG, MANAGER, SESSIONS, SYSTEM
from tests.unit.lab.bmc.machines import ACCOUNT, FakeBmc

RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
INSERT, EJECT = (f"{CD}/Actions/VirtualMedia.{name}Media" for name in ("Insert", "Eject"))


@pytest.fixture
def bmc(tmp_path: Path) -> FakeBmc:
    return FakeBmc(tmp_path)


def links(document: Any) -> set[str]:
    """Every resource that a document refers to."""
    if isinstance(document, list):
        return set().union(*map(links, document)) if document else set()
    if not isinstance(document, dict):
        return set()
    found = {document["@odata.id"]} if set(document) == {"@odata.id"} else set()
    return found.union(*(links(value) for value in document.values())) if document else found


def test_every_link_leads_to_a_document_and_every_document_can_be_reached(bmc: FakeBmc):
    open_, seen = {"/redfish/v1"}, set[str]()
    while open_:
        path = open_.pop()
        seen.add(path)
        document = bmc.get(path)
        assert document["@odata.id"].rstrip("/") == path
        assert document["@odata.type"].startswith("#")
        assert document["Name"]
        assert "Members" in document or document["Id"]
        open_ |= {link.rstrip("/") for link in links(document)} - seen
    assert set(DOCUMENTS) <= seen


def test_the_machine_as_its_firmware_prints_it(bmc: FakeBmc):
    system = bmc.get(SYSTEM)
    assert (system["SerialNumber"], system["UUID"]) == (
        "RW-unit-node1",
        names.machine_uuid("unit", "node1"),
    )
    assert bmc.get(f"{SYSTEM}/EthernetInterfaces/1")["MACAddress"] == (
        names.port_mac("unit", "node1", 0).upper()
    )
    drives = [bmc.get(one["@odata.id"]) for one in bmc.get(f"{SYSTEM}/Storage/1")["Drives"]]
    assert [one["SerialNumber"] for one in drives] == ["node1-root", "node1-data0"]
    assert bmc.get(f"{MANAGER}/EthernetInterfaces/1")["MACAddress"] not in str(system)


def test_only_the_beginning_is_shown_without_a_password(bmc: FakeBmc):
    for path, status in (("/redfish", 200), ("/redfish/v1", 200), ("/redfish/v1/odata", 200), (SYSTEM, 401)):
        assert bmc.ask("GET", path, authorization="").status == status
    assert bmc.ask("GET", "/redfish/v1/nowhere", authorization="").status == 401
    assert bmc.ask("POST", RESET, {"ResetType": "On"}, authorization="Basic YWRtaW46bm8=").status == 401
    assert bmc.machine.done == []
    assert "RW-unit-node1" not in str(bmc.ask("GET", "/redfish/v1", authorization="").body)


def test_a_session_opens_what_the_password_opens(bmc: FakeBmc):
    login = {"UserName": ACCOUNT[0], "Password": ACCOUNT[1]}
    opened = bmc.ask("POST", SESSIONS, login, authorization="")
    assert opened.status == 201
    token, location = opened.headers["X-Auth-Token"], opened.headers["Location"]
    assert token not in str(opened.body)
    assert bmc.ask("GET", SYSTEM, authorization="", x_auth_token=token).status == 200
    assert bmc.ask("DELETE", location, authorization="", x_auth_token=token).status == 204
    assert bmc.ask("GET", SYSTEM, authorization="", x_auth_token=token).status == 401
    assert bmc.ask("POST", SESSIONS, login | {"Password": "no"}, authorization="").status == 401
    assert bmc.ask("POST", SESSIONS, {}, authorization="").status == 400


@pytest.mark.parametrize(
    ("running", "kind", "status", "done"),
    [
        (False, "On", 204, ["on"]),
        (False, "ForceOff", 204, ["off"]),
        (True, "ForceOff", 204, ["off"]),
        (True, "ForceRestart", 204, ["off", "on"]),
        (True, "PowerCycle", 204, ["off", "on"]),
        (True, "GracefulShutdown", 204, ["press"]),
        (False, "GracefulShutdown", 409, []),
        (False, "PowerCycle", 409, []),
        (True, "Nmi", 400, []),
        (True, None, 400, []),
    ],
)
def test_power(bmc: FakeBmc, running: bool, kind: str | None, status: int, done: list[str]):
    bmc.machine.power = running
    assert bmc.ask("POST", RESET, {"ResetType": kind}).status == status
    assert bmc.machine.done == done


def test_a_machine_that_does_not_start_is_an_error(bmc: FakeBmc):
    bmc.machine.fails = True
    answer = bmc.ask("POST", RESET, {"ResetType": "On"})
    assert answer.status == 500
    assert "no memory" in str(answer.body)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (SYSTEM, {"Boot": {"BootSourceOverrideTarget": "Usb"}}),
        (SYSTEM, {"Boot": {"BootSourceOverrideMode": "Legacy"}}),
        (SYSTEM, {"Boot": {"BootSourceOverrideEnabled": "Always"}}),
        (SYSTEM, {"Boot": {"BootNext": "Boot0001"}}),
        (SYSTEM, {"Boot": {"HttpBootUri": "tftp://10.0.0.1/x"}}),
        (SYSTEM, {"Boot": []}),
        (SYSTEM, {"IndicatorLED": "Green"}),
        (SYSTEM, {"LocationIndicatorActive": "yes"}),
        (SYSTEM, {"PowerState": "Off"}),
        (f"{SYSTEM}/SecureBoot", {"SecureBootEnable": "yes"}),
        (f"{SYSTEM}/Bios/Settings", {"Attributes": {"Turbo": "On"}}),
        (f"{SYSTEM}/Bios/Settings", {"Attributes": {"ProcTurbo": "On"}}),
        (f"{SYSTEM}/Bios/Settings", {"Attributes": None}),
        (CD, {"VerifyCertificate": 1}),
    ],
)
def test_a_change_that_makes_no_sense_changes_nothing(bmc: FakeBmc, path: str, body: dict[str, Any]):
    before = bmc.get(path)
    answer = bmc.ask("PATCH", path, body)
    assert answer.status == 400
    assert answer.body is not None
    assert answer.body["error"]["@Message.ExtendedInfo"][0]["MessageId"].startswith("Base.1.18.")
    assert bmc.get(path) == before


def test_boot_override_and_light(bmc: FakeBmc):
    once = {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}
    answer = bmc.ask("PATCH", SYSTEM, {"Boot": once, "LocationIndicatorActive": True})
    assert answer.body is not None
    assert answer.body["Boot"].items() >= once.items()
    assert answer.body["IndicatorLED"] == "Blinking"
    off = bmc.ask("PATCH", SYSTEM, {"Boot": {"BootSourceOverrideEnabled": "Disabled"}}).body
    assert off is not None
    assert off["Boot"]["BootSourceOverrideTarget"] == "None"


def test_settings_wait_for_the_next_start(bmc: FakeBmc):
    bmc.ask("PATCH", f"{SYSTEM}/Bios/Settings", {"Attributes": {"ProcTurbo": "Disabled"}})
    assert bmc.get(f"{SYSTEM}/Bios")["Attributes"]["ProcTurbo"] == "Enabled"
    assert bmc.get(f"{SYSTEM}/Bios/Settings")["Attributes"] == {"ProcTurbo": "Disabled"}
    bmc.ask("PATCH", f"{SYSTEM}/SecureBoot", {"SecureBootEnable": True})
    told = bmc.get(f"{SYSTEM}/SecureBoot")
    assert (told["SecureBootEnable"], told["SecureBootCurrentBoot"]) == (True, "Disabled")


def test_an_old_version_of_a_resource_is_not_changed(bmc: FakeBmc):
    tag = bmc.ask("GET", SYSTEM).headers["ETag"]
    assert bmc.ask("GET", SYSTEM, if_none_match=tag).status == 304
    assert bmc.ask("PATCH", SYSTEM, {"IndicatorLED": "Lit"}, if_match=tag).status == 200
    assert bmc.ask("PATCH", SYSTEM, {"IndicatorLED": "Off"}, if_match=tag).status == 412
    assert bmc.get(SYSTEM)["IndicatorLED"] == "Lit"


@pytest.mark.parametrize(
    ("method", "path", "status", "allowed"),
    [
        ("GET", "/redfish/v1/Systems/2", 404, None),
        ("GET", f"{SYSTEM}/EthernetInterfaces/9", 404, None),
        ("POST", "/redfish/v1/Systems/2/Actions/ComputerSystem.Reset", 404, None),
        ("DELETE", SYSTEM, 405, "GET, HEAD, PATCH"),
        ("PATCH", f"{SYSTEM}/Bios", 405, "GET, HEAD"),
        ("GET", RESET, 405, "POST"),
        ("PUT", CHASSIS, 405, "GET, HEAD"),
        ("DELETE", f"{SESSIONS}/7", 404, None),
    ],
)
def test_missing_resources_and_methods(
    bmc: FakeBmc, method: str, path: str, status: int, allowed: str | None
):
    answer = bmc.ask(method, path)
    assert (answer.status, answer.headers.get("Allow")) == (status, allowed)


def test_a_medium_is_fetched_shown_and_gone_after_it_is_ejected(bmc: FakeBmc):
    image = {"Image": "http://u:secret@10.0.0.1:80/a.iso", "UserName": "u", "Password": "pw"}
    assert bmc.ask("POST", INSERT, image).status == 204
    (source,) = bmc.sources
    assert (source.verify, source.trusted, source.password) == (False, ["the lab's CA"], "pw")
    told = bmc.get(CD)
    assert (told["Inserted"], told["Image"]) == (True, "http://10.0.0.1:80/a.iso")
    assert bmc.controller.medium.exists()
    assert "secret" not in str(bmc.settings)
    assert bmc.ask("POST", EJECT).status == 204
    assert not bmc.controller.medium.exists()
    assert bmc.get(CD)["Inserted"] is False
    assert bmc.machine.done == ["eject", "put in medium.iso", "eject"]
    assert bmc.ask("POST", INSERT, {"Image": "http://10.0.0.1/a", "WriteProtected": False}).status == 400


def test_a_drive_that_is_busy_is_left_alone(bmc: FakeBmc):
    with bmc.controller.drive:
        assert bmc.ask("POST", INSERT, {"Image": "http://10.0.0.1/a"}).status == 409
        assert bmc.ask("POST", EJECT).status == 409


def test_the_log_has_pages_is_full_and_is_cleared(bmc: FakeBmc):
    for number in range(LOG_MAX + 5):
        bmc.settings.note(f"entry {number}", "Test")
    found, page = [], f"{LOG}/Entries"
    while page:
        document = bmc.get(page)
        found += [entry["Message"] for entry in document["Members"]]
        page = document.get("Members@odata.nextLink", "")
    assert found == [f"entry {number}" for number in range(LOG_MAX)]  # a full log keeps the old ones
    assert len(bmc.get(f"{LOG}/Entries?$top=3&$skip=10")["Members"]) == 3
    assert bmc.get(LOG)["Status"]["Health"] == "Warning"
    assert bmc.ask("GET", f"{LOG}/Entries?$skip=x").status == 400
    assert bmc.ask("POST", f"{LOG}/Actions/LogService.ClearLog").status == 204
    assert [entry["Message"] for entry in bmc.get(f"{LOG}/Entries")["Members"]] == ["Event log cleared"]


def test_broken_parts_and_a_lie_show(bmc: FakeBmc):
    bmc.machine.power = True
    assert bmc.get(CHASSIS)["Status"]["HealthRollup"] == "OK"
    whole = bmc.get(f"{CHASSIS}/Power")["PowerControl"][0]["PowerConsumedWatts"]
    bmc.faults = {"bmc:psu": [], "bmc:fan": []}
    power, thermal = bmc.get(f"{CHASSIS}/Power"), bmc.get(f"{CHASSIS}/Thermal")
    assert [one["LastPowerOutputWatts"] for one in power["PowerSupplies"]] == [whole, 0]
    assert [one["Status"]["Health"] for one in thermal["Fans"]] == ["Critical", "OK", "OK", "OK"]
    assert bmc.get(CHASSIS)["Status"]["HealthRollup"] == "Critical"
    bmc.faults = {"bmc:off-lies": []}
    assert bmc.get(SYSTEM)["PowerState"] == "Off"
