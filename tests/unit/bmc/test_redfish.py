"""The Redfish client against every maker's tree."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rackwright.bmc.interface import (
    BootOverride,
    BootTarget,
    Condition,
    LogEntry,
    Part,
    Power,
    PowerAction,
)
from rackwright.errors import BmcError
from tests.unit.bmc import fake

OK, WARNING, CRITICAL, ABSENT, UNKNOWN = (
    Condition.OK,
    Condition.WARNING,
    Condition.CRITICAL,
    Condition.ABSENT,
    Condition.UNKNOWN,
)
POWER = {"hgx": "on", "idrac": "on", "ilo": "off", "openbmc": "changing", "supermicro": "on", "xcc": "on"}
IDENTITY = {
    "hgx": ("Supermicro", "GB NVL", "RW00000005", None, "70.01.00.09", ("05:01", "05:02")),
    "idrac": ("Dell Inc.", "PowerEdge XE9680", "RW00001", "2.6.6", "7.10.30.00", ("01:01", "01:02")),
    "ilo": (
        *("HPE", "ProLiant DL380a Gen11", "RW00000002", "U58 v2.44 (01/17/2025)", "iLO 6 v1.66"),
        ("02:01", "02:02"),
    ),
    "openbmc": ("Foxglove", "F1", "RW00000004", "1.2", "2.14.0-dev", ("04:01",)),
    "supermicro": ("Supermicro", "SYS-821GE-TNHR", "RW00000003", "2.0", "01.04.08", ("03:01", "03:02")),
    "xcc": ("Lenovo", "ThinkSystem SR675 V3", "RW00000006", "TEE142M-2.41", "TEI3A2N-5.10", ("06:01",)),
}
BOOT = {
    "hgx": BootOverride(BootTarget.HTTP, True, "https://10.77.0.1/shimaa64.efi"),
    "idrac": BootOverride(BootTarget.NONE),
    "ilo": BootOverride(BootTarget.CD, True),
    "openbmc": BootOverride(BootTarget.NONE),
    "supermicro": BootOverride(BootTarget.CD, False),
    "xcc": BootOverride(BootTarget.DISK, True),
}
HEALTH = {
    "hgx": (
        OK,
        (),
        (Part("Chassis Fan #Chassis_0_FAN_1_PWM", UNKNOWN, 40.0, "%"),),
        (Part("Chassis_0_Inlet", UNKNOWN, 22.5, "C"),),
        1349.26,
        0,
    ),
    "idrac": (
        WARNING,
        (
            Part("PS1 Status", OK, 1100.5, "W"),
            Part("PS2 Status", CRITICAL, 0.0, "W"),
            Part("System Board PS Redundancy", CRITICAL),
        ),
        (Part("System Board Fan1A", OK, 8400.0, "RPM"),),
        (Part("System Board Inlet Temp", OK, 24.0, "C"), Part("CPU1 Temp", OK, 61.0, "C")),
        2150.0,
        50,
    ),
    "ilo": (
        OK,
        (
            Part("HpeServerPowerSupply", OK, 320.0, "W"),
            Part("HpeServerPowerSupply", OK, 320.0, "W"),
            Part("HpeServerPowerSupply", ABSENT, None, "W"),
        ),
        (Part("Fan 1", OK, 23.0, "%"),),
        (Part("01-Inlet Ambient", OK, 24.0, "C"), Part("03-CPU 2 PkgTmp", ABSENT, 0.0, "C")),
        640.0,
        None,
    ),
    "openbmc": (
        OK,
        (Part("powersupply0", OK, None, "W"), Part("powersupply1", ABSENT, None, "W")),
        (Part("fan0", OK, 5200.0, "RPM"),),
        (Part("inlet", WARNING, 27.5, "C"),),
        512.25,
        None,
    ),
    "supermicro": (
        CRITICAL,
        (Part("Power Supply Bay 1", OK, 1500.0, "W"), Part("Power Supply Bay 2", ABSENT, None, "W")),
        (Part("FAN1", OK, 9100.0, "RPM"), Part("FAN3", CRITICAL, 0.0, "RPM")),
        (Part("CPU1 Temp", OK, 58.0, "C"), Part("GPU9 Temp", ABSENT, None, "C")),
        3120.0,
        1,
    ),
    "xcc": (
        OK,
        (Part("PSU1", OK, 140.0, "W"), Part("PSU2", CRITICAL, None, "W")),
        (Part("Fan 1 Front Tach", OK, 6840.0, "RPM"),),
        (Part("Ambient Temp", OK, 23.0, "C"),),
        287.0,
        None,
    ),
}
LOG = {
    "hgx": [],
    "idrac": [
        (OK, "The input power for power supply 2 has been restored."),
        (CRITICAL, "The power input for power supply 2 is lost."),
    ],
    "ilo": [
        (WARNING, "Connectivity status changed to Link Failure for adapter in slot 3, port 1"),
        (OK, "IML Cleared"),
    ],
    "openbmc": [
        (OK, "Host power restored"),
        (CRITICAL, "xyz.openbmc_project.Sensor.Threshold.Error.CriticalHigh"),
    ],
    "supermicro": [
        (CRITICAL, "FAN3 Lower Critical - Going Low"),
        (WARNING, "[ OEM ] Correctable ECC @DIMMB1"),
    ],
    "xcc": [(CRITICAL, "Sensor PSU 2 Fail has transitioned to critical."), (OK, "System boot completed.")],
}
FIRMWARE = {
    "hgx": [("FW_BMC_0", "70.01.00.09", True), ("HGX_FW_GPU_0", "97.10.24.00", False)],
    "idrac": [("Installed-159-2.6.6__BIOS.Setup.1-1", "2.6.6", True)],
    "ilo": [("2", "U58 v2.44 (01/17/2025)", False), ("1", "1.66 Dec 13 2024", True)],
    "openbmc": [("8a2f", "2.14.0-dev", True), ("bios_active", "1.2", True)],
    "supermicro": [("BIOS", "2.0", True), ("BMC", "01.04.08", True)],
    "xcc": [("UEFI", "TEE142M-2.41", True)],
}
SYSTEM = {
    "hgx": "System_0",
    "idrac": "System.Embedded.1",
    "ilo": "1",
    "openbmc": "system",
    "supermicro": "1",
    "xcc": "1",
}
DRIVE = {
    "hgx": "Managers/BMC_0/VirtualMedia/USB1",
    "idrac": "Systems/System.Embedded.1/VirtualMedia/1",
    "ilo": "Managers/1/VirtualMedia/2",
    "openbmc": "Managers/bmc/VirtualMedia/Slot_0",
    "supermicro": "Managers/1/VirtualMedia/VirtualMedia1",
    "xcc": "Managers/1/VirtualMedia/EXT1",
}
BOOT_FROM_CD = {
    "hgx": ("/Settings", {"BootSourceOverrideTarget": "Cd", "HttpBootUri": None}),
    "idrac": ("", {"BootSourceOverrideTarget": "Cd"}),
    "ilo": ("", {"BootSourceOverrideTarget": "Cd"}),
    "openbmc": ("", {"BootSourceOverrideTarget": "Cd"}),
    "supermicro": ("", {"BootSourceOverrideTarget": "UsbCd", "BootSourceOverrideMode": "UEFI"}),
    "xcc": ("", {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideMode": "UEFI"}),
}
CYCLE = dict.fromkeys(("hgx", "idrac", "openbmc"), "PowerCycle")
CONSOLE = {
    "hgx": ["-p", "2200", "-l", "root", "127.0.0.1"],
    "idrac": ["-p", "22", "-l", "root", "127.0.0.1", "console com2"],
    "ilo": ["-p", "22", "-l", "root", "127.0.0.1", "vsp"],
    "openbmc": ["-p", "2200", "-l", "root", "127.0.0.1"],
    "supermicro": ["-p", "22", "-l", "root", "127.0.0.1", "cd system1/sol1; start"],
    "xcc": ["-p", "22", "-l", "root", "127.0.0.1"],
}


def test_power(dialect):
    name, bmc = dialect
    assert bmc.client().power() is Power(POWER[name])


def test_identity(dialect):
    name, bmc = dialect
    found = bmc.client().identity()
    maker, model, serial, bios, firmware, macs = IDENTITY[name]
    assert (found.maker, found.model, found.serial) == (maker, model, serial)
    assert (found.bios, found.bmc_firmware) == (bios, firmware)
    assert found.macs == tuple(f"02:00:00:00:{mac}" for mac in macs)
    assert found.uuid == found.uuid.lower()


def test_boot(dialect):
    name, bmc = dialect
    assert bmc.client().boot() == BOOT[name]


def test_health(dialect):
    name, bmc = dialect
    found = bmc.client().health()
    overall, supplies, fans, temperatures, watts, full = HEALTH[name]
    assert found.overall is overall
    assert found.power_supplies == supplies
    assert found.fans == fans
    assert found.temperatures == temperatures
    assert (found.power_watts, found.sel_full, found.unread) == (watts, full, ())
    assert found.sel_wraps is (name != "hgx")


def test_the_event_log_newest_first(dialect):
    name, bmc = dialect
    found = bmc.client().event_log(2)
    assert [(one.severity, one.message) for one in found] == LOG[name]
    assert all(one.when is not None for one in found)


def test_an_entry_of_the_event_log(bmc):
    assert bmc.client().event_log(10)[1] == LogEntry(
        datetime(2026, 11, 1, 14, tzinfo=UTC),
        CRITICAL,
        "The power input for power supply 2 is lost.",
        "Power Supply / Converter",
    )


@pytest.mark.parametrize("name", ["ilo", "supermicro"])
def test_an_entry_without_a_clock_comes_last(name, pki):
    with fake.serving(fake.tree(name), pki) as bmc:
        found = bmc.client().event_log(10)
    assert [one.when is None for one in found] == [False, False, True]


def test_firmware(dialect):
    name, bmc = dialect
    found = bmc.client().firmware()
    assert [(one.id, one.version, one.updateable) for one in found] == FIRMWARE[name]


def test_console_command(dialect):
    name, bmc = dialect
    assert bmc.client().console_command() == ["ssh", "-t", *CONSOLE[name]]


def test_cycling_the_power(dialect):
    name, bmc = dialect
    bmc.client().set_power(PowerAction.CYCLE)
    system = f"/redfish/v1/Systems/{SYSTEM[name]}"
    kind = CYCLE.get(name, "ForceRestart")
    assert bmc.changes() == [("POST", f"{system}/Actions/ComputerSystem.Reset", {"ResetType": kind})]


@pytest.mark.parametrize(
    ("action", "kind"),
    [("on", "On"), ("off", "ForceOff"), ("soft", "GracefulShutdown"), ("reset", "ForceRestart")],
)
def test_power_actions(bmc, action, kind):
    bmc.client().set_power(PowerAction(action))
    assert bmc.changes()[0][2] == {"ResetType": kind}


def test_booting_from_cd_once(dialect):
    name, bmc = dialect
    bmc.client().set_boot(BootTarget.CD, once=True)
    below, boot = BOOT_FROM_CD[name]
    path = f"/redfish/v1/Systems/{SYSTEM[name]}{below}"
    assert bmc.changes() == [("PATCH", path, {"Boot": {**boot, "BootSourceOverrideEnabled": "Once"}})]


def test_booting_from_the_disk_until_it_is_changed(bmc):
    client = bmc.client()
    client.set_boot(BootTarget.DISK, once=False)
    assert client.boot() == BootOverride(BootTarget.DISK, once=False)


def test_no_override(dialect):
    _, bmc = dialect
    bmc.client().set_boot(BootTarget.NONE, once=False)
    ((_, _, body),) = bmc.changes()
    assert body["Boot"]["BootSourceOverrideEnabled"] == "Disabled"


@pytest.fixture
def always_overriding(bmc):
    """sushy-tools 2.2.0: no override is not among its values, and a change without a target is refused in plain text."""
    path = f"/redfish/v1/Systems/{SYSTEM['idrac']}"
    boot = bmc.documents[path]["Boot"]
    boot["BootSourceOverrideTarget@Redfish.AllowableValues"] = ["Pxe", "Cd", "Hdd"]
    boot.update(BootSourceOverrideTarget="Cd", BootSourceOverrideEnabled="Continuous")

    def refuse(handler) -> bool:
        if "BootSourceOverrideTarget" in bmc.asked[-1][2]["Boot"]:
            return False
        text = b"Missing the BootSourceOverrideTarget and/or BootSourceOverrideMode element"
        handler.send_response(400)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)
        return True

    bmc.fault(path, refuse, "PATCH")
    return bmc, boot


def test_a_bmc_that_always_overrides_the_boot_order_boots_from_the_disk(always_overriding):
    bmc, _ = always_overriding
    client = bmc.client()
    client.set_boot(BootTarget.NONE, once=False)
    assert client.boot() == BootOverride(BootTarget.DISK, once=False)


def test_a_refusal_in_plain_text_is_shown(always_overriding):
    bmc, boot = always_overriding
    boot["BootSourceOverrideTarget@Redfish.AllowableValues"] = ["Pxe", "Cd"]
    with pytest.raises(BmcError) as caught:
        bmc.client().set_boot(BootTarget.NONE, once=False)
    assert caught.value.message.endswith(
        "cannot set the boot order: Missing the BootSourceOverrideTarget and/or BootSourceOverrideMode element."
    )


def test_booting_from_a_url(bmc):
    client = bmc.client()
    client.set_boot(BootTarget.HTTP, once=True, http_uri="https://10.77.0.1/shim.efi")
    assert client.boot() == BootOverride(BootTarget.HTTP, True, "https://10.77.0.1/shim.efi")


def test_the_url_is_in_the_request_that_changes_the_boot_order(bmc):
    bmc.client().set_boot(BootTarget.HTTP, once=True, http_uri="http://10.77.0.1/shim.efi")
    (change,) = bmc.changes()
    assert change[2]["Boot"] == {
        "BootSourceOverrideTarget": "UefiHttp",
        "BootSourceOverrideEnabled": "Once",
        "HttpBootUri": "http://10.77.0.1/shim.efi",
    }
    bmc.client().set_boot(BootTarget.NONE, once=False)
    assert bmc.changes()[-1][2]["Boot"]["HttpBootUri"] is None


def test_a_bmc_that_keeps_no_url_leaves_it_to_dhcp(pki):
    with fake.serving(fake.tree("ilo"), pki) as bmc:
        client = bmc.client()
        client.set_boot(BootTarget.HTTP, once=True, http_uri="http://10.77.0.1/shim.efi")
        assert client.boot() == BootOverride(BootTarget.HTTP, once=True)
        (change,) = bmc.changes()
        assert "HttpBootUri" not in change[2]["Boot"]


def test_a_bmc_that_cannot_boot_by_http(pki):
    with fake.serving(fake.tree("xcc"), pki) as bmc, pytest.raises(BmcError) as caught:
        bmc.client().set_boot(BootTarget.HTTP, once=True, http_uri="http://10.77.0.1/shim.efi")
    assert caught.value.message == (
        f"The BMC of gpu001 (127.0.0.1, port {bmc.port}) cannot boot from UefiHttp; it supports BiosSetup, Cd, Hdd, "
        "None, Pxe."
    )
    assert caught.value.hint == "declare another `boot` method for this node"


def test_virtual_media(dialect):
    name, bmc = dialect
    client = bmc.client()
    client.insert_media("http://10.77.0.1/one.iso")
    client.insert_media("http://10.77.0.1/two.iso")
    (there,) = [one for one in client.media() if one.inserted]
    assert (there.image, there.cd) == ("http://10.77.0.1/two.iso", True)
    asked = [path.partition("/Actions/")[0] for _, path, _ in bmc.changes()]
    assert set(asked) == {f"/redfish/v1/{DRIVE[name]}"}
    client.eject_media()
    assert not any(one.inserted for one in client.media())


def test_a_second_drive_is_emptied_before_a_cd_is_inserted(bmc):
    second = bmc.documents["/redfish/v1/Systems/System.Embedded.1/VirtualMedia/2"]
    second.update(Image="nfs://elsewhere/installer.iso", Inserted=True)
    client = bmc.client()
    client.insert_media("http://10.77.0.1/one.iso")
    assert [one.image for one in client.media() if one.inserted] == ["http://10.77.0.1/one.iso"]


def test_media_without_a_drive(bmc):
    bmc.documents["/redfish/v1/Systems/System.Embedded.1/VirtualMedia"]["Members"] = []
    with pytest.raises(
        BmcError, match="cannot take virtual media: it has no virtual drive for CDs"
    ) as caught:
        bmc.client().insert_media("http://10.77.0.1/one.iso")
    assert "license" in str(caught.value.hint)


def test_a_bmc_that_asks_for_the_protocol_of_an_image(bmc):
    path = "/redfish/v1/Systems/System.Embedded.1/VirtualMedia/1/Actions/VirtualMedia.InsertMedia"
    missing = {
        "error": {
            "code": "Base.1.8.ActionParameterMissing",
            "@Message.ExtendedInfo": [{"RelatedProperties": ["#/TransferProtocolType"]}],
        }
    }
    bmc.fault(path, lambda handler: len(bmc.changes()) == 1 and fake.answer(handler, 400, missing), "POST")
    bmc.client().insert_media("https://10.77.0.1/one.iso")
    assert bmc.changes()[-1][2] == {"Image": "https://10.77.0.1/one.iso", "TransferProtocolType": "HTTPS"}


CA = "-----BEGIN CERTIFICATE-----\nAAAA\nBBBB\n-----END CERTIFICATE-----\n"


def test_the_ca_of_the_server_of_images(bmc):
    path = "/redfish/v1/Systems/System.Embedded.1/VirtualMedia/1"
    bmc.documents[path].update(VerifyCertificate=False, Certificates={"@odata.id": f"{path}/Certificates"})
    bmc.documents[f"{path}/Certificates"] = {"Members": []}
    client = bmc.client()
    assert client.trust_media(CA) is True
    assert bmc.changes() == [
        ("POST", f"{path}/Certificates", {"CertificateString": CA, "CertificateType": "PEM"}),
        ("PATCH", path, {"VerifyCertificate": True}),
    ]
    there = {"@odata.id": f"{path}/Certificates/1", "CertificateString": CA.replace("\n", "\r\n")}
    bmc.documents[f"{path}/Certificates"]["Members"] = [there]
    assert client.trust_media(CA) is True
    assert len(bmc.changes()) == 2


def test_a_bmc_that_cannot_check_the_server_of_images(dialect):
    _, bmc = dialect
    assert bmc.client().trust_media(CA) is False
    assert bmc.changes() == []


def test_secure_boot(bmc):
    client = bmc.client()
    assert client.secure_boot() is False
    client.set_secure_boot(True)
    assert client.secure_boot() is True


def test_no_secure_boot(pki):
    with fake.serving(fake.tree("openbmc"), pki) as bmc:
        assert bmc.client().secure_boot() is None
        with pytest.raises(BmcError, match="cannot switch Secure Boot: its system system has no SecureBoot"):
            bmc.client().set_secure_boot(True)


@pytest.mark.parametrize(
    ("name", "body"),
    [("ilo", {"LocationIndicatorActive": True}), ("supermicro", {"IndicatorLED": "Blinking"})],
)
def test_identify(name, body, pki):
    with fake.serving(fake.tree(name), pki) as bmc:
        bmc.client().identify(True)
        assert bmc.changes() == [("PATCH", f"/redfish/v1/Systems/{SYSTEM[name]}", body)]


def test_a_light_that_cannot_blink_is_lit(pki):
    with fake.serving(fake.tree("supermicro"), pki) as bmc:
        path = "/redfish/v1/Systems/1"
        bmc.fault(path, lambda handler: len(bmc.changes()) == 1 and fake.answer(handler, 400), "PATCH")
        bmc.client().identify(True)
        assert bmc.changes()[-1][2] == {"IndicatorLED": "Lit"}


def test_bios_attributes(bmc):
    client = bmc.client()
    assert client.bios()["SriovGlobalEnable"] == "Disabled"
    assert client.bios_pending() == {}
    client.set_bios({"SriovGlobalEnable": "Enabled"})
    ((_, path, body),) = bmc.changes()
    assert path == "/redfish/v1/Systems/System.Embedded.1/Bios/Settings"
    assert body["Attributes"] == {"SriovGlobalEnable": "Enabled"}
    assert body["@Redfish.SettingsApplyTime"]["ApplyTime"] == "OnReset"
    assert client.bios_pending() == {"SriovGlobalEnable": "Enabled"}


def test_an_unknown_bios_attribute(bmc):
    with pytest.raises(BmcError, match=r"cannot set Sriov: its BIOS does not have the attribute\.$"):
        bmc.client().set_bios({"Sriov": "Enabled"})
    assert bmc.changes() == []


def test_pending_bios_attributes_where_all_are_listed(pki):
    with fake.serving(fake.tree("ilo"), pki) as bmc:
        assert bmc.client().bios_pending() == {"Sriov": "Disabled"}


def test_a_chassis_manager_with_many_systems(bmc):
    paths = [f"/redfish/v1/Systems/Blade{number}" for number in (1, 2)]
    bmc.documents["/redfish/v1/Systems"]["Members"] = [{"@odata.id": path} for path in paths]
    bmc.documents.update({path: {"@odata.id": path, "SystemType": "Physical"} for path in paths})
    with pytest.raises(BmcError, match=r"lists several systems: Blade1, Blade2\.$") as caught:
        bmc.client().power()
    assert "chassis manager" in str(caught.value.hint)


def test_what_the_bmc_fails_to_read_is_named_and_the_rest_is_read(bmc):
    path = "/redfish/v1/Chassis/System.Embedded.1/Thermal"
    bmc.fault(path, lambda handler: fake.answer(handler, 500))
    found = bmc.client().health()
    assert found.unread == (path,)
    assert (found.fans, found.power_watts) == ((), 2150.0)


def test_an_event_log_of_many_single_entries_is_read_at_its_newer_end(pki):
    with fake.serving(fake.tree("supermicro"), pki) as bmc:
        base = "/redfish/v1/Systems/1/LogServices/Log1/Entries"
        for number in range(4, 101):
            bmc.documents[f"{base}/{number}"] = {
                "Id": str(number),
                "Created": f"2026-09-01T00:{number // 60:02}:{number % 60:02}+00:00",
                "Message": f"event {number}",
            }
        bmc.documents[base]["Members"] = [{"@odata.id": f"{base}/{number}"} for number in range(1, 101)]
        found = bmc.client().event_log(3)
        assert [one.message for one in found] == ["event 100", "event 99", "event 98"]
        assert len([path for _, path, _ in bmc.asked if path.startswith(f"{base}/")]) == 5


def test_pages_of_an_event_log_are_followed(bmc):
    base = "/redfish/v1/Managers/iDRAC.Embedded.1/LogServices/Sel/Entries"
    bmc.documents[base]["Members"].reverse()  # oldest first: the newest are on the last page
    bmc.documents[base]["Members@odata.nextLink"] = f"{base}?$skip=3"
    newest = {"Members": [{"Id": "4", "Created": "2026-11-02T00:00:00Z", "Message": "the last"}]}
    bmc.fault(f"{base}?$skip=3", lambda handler: fake.answer(handler, 200, newest))
    assert [one.message for one in bmc.client().event_log(1)] == ["the last"]


def test_an_event_log_whose_pages_never_end(bmc):
    base = "/redfish/v1/Managers/iDRAC.Embedded.1/LogServices/Sel/Entries"
    bmc.documents[base]["Members"].reverse()
    bmc.documents[base]["Members@odata.nextLink"] = base
    assert bmc.client().event_log(1)[0].message.endswith("restored.")
