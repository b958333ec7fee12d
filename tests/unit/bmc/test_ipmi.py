"""IPMI: what ipmitool is asked, what it prints, and where the password is."""

from __future__ import annotations

import socket
import stat
import threading
from datetime import UTC, datetime
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.bmc import ipmi_output, status
from rackwright.bmc.interface import BootOverride, BootTarget, Condition, LogEntry, Part, Power, PowerAction
from rackwright.bmc.ipmi import IpmiClient
from rackwright.bmc.target import NoAnswer, Target
from rackwright.errors import BmcError
from rackwright.model.bmc import Bmc, BmcProtocol
from rackwright.secrets.secret import Secret
from tests.unit.bmc import ipmi_recorded as recorded

PASSWORD = "s3cret'of $BMC"
LABEL = "The BMC of gpu001 (127.0.0.1)"


def _target(password: str = PASSWORD, **bmc) -> Target:
    given = {"port": 623, "timeout_seconds": 5, **bmc}
    declared = Bmc(
        address=IPv4Address("127.0.0.1"),
        protocol=BmcProtocol.IPMI,
        user="root",
        password="bmc_password",
        **given,
    )
    return Target("gpu001", declared, Secret("bmc_password", password))


@pytest.fixture
def ipmitool(tmp_path, monkeypatch):
    """A stub that notes its arguments, environment and password, and prints what the test wrote for it."""
    (tmp_path / "bin").mkdir()
    stub = tmp_path / "bin" / "ipmitool"
    stub.write_text(
        "#!/bin/sh\n"
        f'echo "$*" >> {tmp_path}/asked\n'
        f"env > {tmp_path}/environment\n"
        'while [ "$1" != "-f" ]; do shift; done\n'
        f'cp "$2" {tmp_path}/password; stat -c "%a %n" "$2" > {tmp_path}/mode\n'
        f"cat {tmp_path}/out 2>/dev/null; cat {tmp_path}/err >&2 2>/dev/null\n"
        f"[ -e {tmp_path}/hang ] && sleep 5\n"
        f"exit $(cat {tmp_path}/status 2>/dev/null || echo 0)\n"
    )
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("IPMI_PASSWORD", "of someone else")
    return tmp_path


def _asked(folder: Path) -> list[str]:
    """The commands, without the options that each has."""
    return [line.partition(" -R 3 ")[2] for line in (folder / "asked").read_text().splitlines()]


def test_the_password_is_in_a_private_file_that_is_removed(ipmitool):
    client = IpmiClient(_target())
    (ipmitool / "out").write_text(recorded.POWER)
    assert client.power() is Power.ON
    assert (ipmitool / "password").read_text() == PASSWORD
    mode, path = (ipmitool / "mode").read_text().split()
    folder = Path(path).parent
    assert (mode, stat.S_IMODE(folder.stat().st_mode)) == ("600", 0o700)
    assert (ipmitool / "asked").read_text() == (
        f"-I lanplus -H 127.0.0.1 -p 623 -U root -f {path} -C 17 -N 2 -R 3 power status\n"
    )
    assert "IPMI_PASSWORD" not in (ipmitool / "environment").read_text()
    client.close()
    assert not folder.exists()
    client.close()


def test_the_console_has_the_password_until_it_is_closed(ipmitool):
    client = IpmiClient(_target())
    command = client.console_command()
    assert command is not None
    assert command[-2:] == ["sol", "activate"]
    assert Path(command[command.index("-f") + 1]).read_text() == PASSWORD
    assert PASSWORD not in " ".join(command)
    client.close()


@pytest.mark.parametrize(
    ("act", "asked"),
    [
        (lambda client: client.set_power(PowerAction.SOFT), "power soft"),
        (lambda client: client.set_power(PowerAction.CYCLE), "power cycle"),
        (lambda client: client.set_boot(BootTarget.PXE, once=True), "chassis bootdev pxe options=efiboot"),
        (
            lambda client: client.set_boot(BootTarget.DISK, once=False),
            "chassis bootdev disk options=efiboot,persistent",
        ),
        (lambda client: client.set_boot(BootTarget.CD, once=True), "chassis bootdev cdrom options=efiboot"),
        (lambda client: client.set_boot(BootTarget.NONE, once=False), "chassis bootdev none"),
        (lambda client: client.identify(True), "chassis identify force"),
        (lambda client: client.identify(False), "chassis identify 0"),
        (lambda client: client.event_log(7), "sel elist last 7"),
    ],
)
def test_what_ipmitool_is_asked(ipmitool, act, asked):
    act(IpmiClient(_target()))
    assert _asked(ipmitool) == [asked]


def test_power():
    assert ipmi_output.power_of(recorded.POWER) is Power.ON
    assert ipmi_output.power_of("Chassis Power is off\n") is Power.OFF
    assert ipmi_output.power_of("") is Power.UNKNOWN


def test_boot():
    assert ipmi_output.boot_of(recorded.BOOT) == BootOverride(BootTarget.PXE, once=True)
    until_changed = recorded.BOOT.replace("only next boot", "all future boots")
    assert ipmi_output.boot_of(until_changed) == BootOverride(BootTarget.PXE, once=False)
    invalid = recorded.BOOT.replace("Flag Valid", "Flag Invalid")
    assert ipmi_output.boot_of(invalid) == BootOverride(BootTarget.NONE)


def test_identity():
    found = ipmi_output.identity_of(recorded.FRU, recorded.MC_INFO)
    assert (found.maker, found.model, found.serial) == ("Maker", "Model 9", "RW00000007")
    assert (found.bmc_firmware, found.macs, found.uuid) == ("9.08", (), None)


def test_firmware():
    (found,) = ipmi_output.firmware_of(recorded.MC_INFO)
    assert (found.name, found.version) == ("BMC", "9.08")


def test_parts():
    supplies, fans, temperatures = ipmi_output.parts_of(recorded.SDR)
    assert supplies == [
        Part("PS1 Status", Condition.OK),
        Part("PS2 Status", Condition.CRITICAL),
        Part("PS3 Status", Condition.ABSENT),
    ]
    assert fans == [Part("FAN1", Condition.OK, 9100.0, "RPM"), Part("FAN3", Condition.CRITICAL, 0.0, "RPM")]
    assert temperatures == [
        Part("CPU1 Temp", Condition.OK, 58.0, "C"),
        Part("Inlet Temp", Condition.WARNING, 41.0, "C"),
    ]


def test_the_whole():
    assert ipmi_output.overall_of(recorded.CHASSIS) is Condition.OK
    broken = recorded.CHASSIS.replace("Cooling/Fan Fault    : false", "Cooling/Fan Fault    : true")
    assert ipmi_output.overall_of(broken) is Condition.CRITICAL
    assert ipmi_output.overall_of("") is Condition.UNKNOWN


def test_watts_and_fullness():
    assert ipmi_output.watts_of(recorded.DCMI) == 420.0
    assert ipmi_output.watts_of(recorded.NO_COMMAND) is None
    assert ipmi_output.fullness_of(recorded.SEL_INFO) == 41
    assert ipmi_output.fullness_of("Percent Used     : unknown") is None


def test_the_event_log():
    found = ipmi_output.entries_of(recorded.SEL)
    assert [(one.severity.value, one.message) for one in found] == [
        ("unknown", "C: boot completed"),
        ("warning", "Correctable ECC"),
        ("critical", "Upper Critical going high"),
        ("ok", "Failure detected, Deasserted"),
        ("critical", "Failure detected"),
    ]
    assert found[1] == LogEntry(
        datetime(2026, 11, 1, 14, 0, 6, tzinfo=UTC), Condition.WARNING, "Correctable ECC", "Memory #0x02"
    )
    assert found[-1].when is None


def test_an_empty_event_log():
    assert ipmi_output.entries_of("SEL has no entries\n") == []


@given(st.text(alphabet=st.sampled_from("0123456789|: \nabcUTC/%.-"), max_size=200))
@settings(max_examples=100, deadline=None)
def test_readers_never_raise(text):
    for read in (
        ipmi_output.power_of,
        ipmi_output.boot_of,
        ipmi_output.firmware_of,
        ipmi_output.overall_of,
        ipmi_output.parts_of,
        ipmi_output.watts_of,
        ipmi_output.fullness_of,
        ipmi_output.entries_of,
    ):
        read(text)
    ipmi_output.identity_of(text, text)


def _fails(ipmitool, err: str, **bmc) -> BmcError:
    (ipmitool / "err").write_text(err)
    (ipmitool / "status").write_text("1")
    with pytest.raises(BmcError) as caught:
        IpmiClient(_target(**bmc)).power()
    return caught.value


def test_a_refused_login_is_told_from_silence_by_a_question_without_login(ipmitool):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as answering:
        answering.bind(("127.0.0.1", 0))
        port = answering.getsockname()[1]

        def pong() -> None:
            asked, caller = answering.recvfrom(64)
            message = asked[
                14:
            ]  # behind the headers of RMCP and of a session that is none; with two checksums
            assert (sum(message[:3]) % 256, sum(message[3:]) % 256, message[5]) == (0, 0, 0x38)
            answering.sendto(bytes.fromhex("0600ff070000000000000000001081"), caller)

        thread = threading.Thread(target=pong, daemon=True)
        thread.start()
        error = _fails(ipmitool, recorded.NO_SESSION, port=port)
        thread.join(5)
    assert error.message == (
        f"The BMC of gpu001 (127.0.0.1, port {port}) refuses user root or the password (power status)."
    )
    assert error.hint == (
        "is IPMI over LAN allowed for root? store the right password with: rackwright secrets put bmc_password FILE"
    )


def test_silence(ipmitool):
    error = _fails(ipmitool, recorded.NO_SESSION)
    assert isinstance(error, NoAnswer)
    assert error.message == f"{LABEL} does not answer IPMI on UDP port 623 (power status)."
    assert error.hint == "check its address and cable; is IPMI over LAN enabled on the BMC?"


def test_an_order_without_an_answer_may_have_been_carried_out(ipmitool):
    (ipmitool / "err").write_text(recorded.NO_ANSWER)
    (ipmitool / "status").write_text("1")
    with pytest.raises(NoAnswer) as caught:
        IpmiClient(_target()).set_power(PowerAction.OFF)
    assert caught.value.message == f"{LABEL} did not answer `power off`, and may have done it."
    error = _fails(ipmitool, "Unable to get Chassis Power Status\n")
    assert isinstance(error, NoAnswer)
    assert error.message == f"{LABEL} did not answer `power status`."
    refused = _fails(ipmitool, "Set Chassis Power Control to Down/Off failed: Node busy\n")
    assert not isinstance(refused, NoAnswer)


@pytest.mark.parametrize("said", [recorded.NO_SUITE, recorded.ANOTHER_SUITE])
def test_no_cipher_suite_17(ipmitool, said):
    error = _fails(ipmitool, said)
    assert error.message == f"{LABEL} refuses IPMI cipher suite 17 (power status)."
    assert error.hint == (
        "update its firmware, or declare `cipher_suite: 3`, which older BMCs support; its SHA-1 is weaker"
    )


def test_the_cipher_suite_is_the_declared_one(ipmitool):
    IpmiClient(_target()).power()
    IpmiClient(_target(cipher_suite=3)).power()
    suites = [line.partition(" -C ")[2].split()[0] for line in (ipmitool / "asked").read_text().splitlines()]
    assert suites == ["17", "3"]
    error = _fails(ipmitool, recorded.ANOTHER_SUITE, cipher_suite=3)
    assert error.message == f"{LABEL} refuses IPMI cipher suite 3 (power status)."
    assert error.hint == "declare `cipher_suite: 17`; weaker suites than 3 are not used"


def test_a_command_that_fails_never_shows_the_password(ipmitool):
    error = _fails(ipmitool, f"cannot: {PASSWORD}\n")
    assert error.message == f"{LABEL} failed at `power status`: cannot: (the password)."


def test_a_bmc_that_hangs(ipmitool):
    (ipmitool / "hang").touch()
    with pytest.raises(NoAnswer) as caught:
        IpmiClient(_target(timeout_seconds=1)).power()
    assert caught.value.message == f"{LABEL} did not finish its answer to `power status` within 1 s."


def test_ipmitool_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BmcError) as caught:
        IpmiClient(_target()).power()
    assert (caught.value.message, caught.value.hint) == (
        "IPMI needs the program ipmitool.",
        "apt install ipmitool",
    )


def test_a_password_that_ipmi_cannot_have(ipmitool):
    with pytest.raises(BmcError) as caught:
        IpmiClient(_target("x" * 21)).power()
    assert caught.value.message == (
        "The secret bmc_password, for the BMC of gpu001, is not a valid IPMI password: it has more than 20 bytes, or several lines."
    )


@pytest.mark.parametrize(
    ("act", "what"),
    [
        (lambda client: client.media(), "read virtual media"),
        (lambda client: client.insert_media("http://a/b.iso"), "insert virtual media"),
        (lambda client: client.eject_media(), "eject virtual media"),
        (lambda client: client.set_secure_boot(True), "switch Secure Boot"),
        (lambda client: client.bios(), "report BIOS attributes"),
        (lambda client: client.bios_pending(), "report BIOS attributes"),
        (lambda client: client.set_bios({}), "set BIOS attributes"),
        (lambda client: client.set_boot(BootTarget.HTTP, once=True), "boot from a URL"),
    ],
)
def test_what_ipmi_cannot_do(act, what):
    with pytest.raises(BmcError) as caught:
        act(IpmiClient(_target()))
    assert caught.value.message == f"{LABEL} cannot {what} over IPMI."
    assert caught.value.hint == "declare `protocol: redfish` if this BMC supports it"


def test_health_goes_on_without_dcmi(ipmitool):
    (ipmitool / "out").write_text(recorded.SDR + recorded.CHASSIS + recorded.SEL_INFO)
    found = IpmiClient(_target()).health()
    assert (found.overall, found.power_watts, found.sel_full) == (Condition.OK, None, 41)
    assert _asked(ipmitool) == ["sdr elist", "chassis status", "dcmi power reading", "sel info"]


def test_a_bmc_without_sensors_and_event_log_has_a_power_state(ipmitool):
    """virtualbmc: what it lacks is reported as not read."""
    stub = ipmitool / "bin" / "ipmitool"
    stub.write_text(
        "#!/bin/sh\n"
        f"case \"$*\" in *'sdr elist') cat {ipmitool}/sensors >&2; exit 1;; *' sel '*) echo no >&2; exit 1;; esac\n"
        f"cat {ipmitool}/out\n"
    )
    (ipmitool / "sensors").write_text(recorded.NO_SENSORS)
    (ipmitool / "out").write_text(recorded.CHASSIS + recorded.POWER)
    found = status.read(IpmiClient(_target()))
    assert (found.power, found.health.overall, found.last_critical) == (Power.ON, Condition.OK, None)
    assert found.health.unread == ("its sensors (sdr elist)", "its event log")
