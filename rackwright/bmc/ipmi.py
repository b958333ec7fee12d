"""A BMC over IPMI 2.0 (RMCP+), using ipmitool.

The password is in a file in a private folder, which ipmitool reads (`-f`): it is never on a command line or in the environment.
Cipher suite 17 (SHA-256, AES) is used, or 3 (SHA-1, AES) if declared; never 0, which needs no password at all.
"""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from rackwright.bmc import ipmi_output
from rackwright.bmc.interface import (
    BmcHealth,
    BmcIdentity,
    BootOverride,
    BootTarget,
    Firmware,
    LogEntry,
    Media,
    Power,
    PowerAction,
)
from rackwright.bmc.target import NoAnswer, Target
from rackwright.bmc.updates import BmcUpdates
from rackwright.boundary import last_line
from rackwright.errors import BmcError

_PASSWORD_MAX = 20
"""Longest password in IPMI 2.0, in bytes."""
_OUTPUT_MAX = 4 * 2**20
_OTHER_SUITE = ("invalid authentication algorithm", "is not what we requested", "cipher suite")
"""Parts of ipmitool's output if a BMC does not support the cipher suite."""
_UNANSWERED = {
    "Unable to get Chassis Power Status": "",
    "Unable to set Chassis Power Control to": ", and may have done it",
}
"""Output of ipmitool 1.8.19 for requests without an answer in a session; for a refusal it prints `failed` and why."""
_LONG = 4
"""Sensors and logs are read record by record, so they may take this many times one request's time."""
_BOOT = {
    BootTarget.DISK: "disk",
    BootTarget.CD: "cdrom",
    BootTarget.PXE: "pxe",
    BootTarget.SETUP: "bios",
    BootTarget.NONE: "none",
}
_ASK = bytes.fromhex("0600ff0700000000000000000009" + "2018c881" + "00388e04b5")
"""Get Channel Authentication Capabilities (IPMI 2.0, 13.6 and 22.13), which a BMC answers without a login."""


class IpmiClient:
    """One BMC; for one thread. See `interface.BmcClient`."""

    def __init__(self, target: Target, *, within: float | None = None) -> None:
        self._target = target
        self._ends = time.monotonic() + within if within is not None else float("inf")
        self._suite = target.bmc.cipher_suite
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __repr__(self) -> str:
        return f"IpmiClient({self._target.node})"

    def power(self) -> Power:
        """Whether the node has power."""
        return ipmi_output.power_of(self._run("power", "status"))

    def set_power(self, action: PowerAction) -> None:
        """Ask for a change of power."""
        self._run("power", action.value)

    def identity(self) -> BmcIdentity:
        """Maker, model, serial; no UUID and no MACs."""
        return ipmi_output.identity_of(
            self._optional("fru", "print", "0", long=True), self._run("mc", "info")
        )

    def boot(self) -> BootOverride:
        """What overrides the firmware's boot order."""
        return ipmi_output.boot_of(self._run("chassis", "bootparam", "get", "5"))

    def set_boot(self, target: BootTarget, *, once: bool, http_uri: str | None = None) -> None:
        """Override the boot order, in UEFI mode: without `efiboot` some use legacy boot."""
        if target is BootTarget.HTTP or http_uri is not None:
            raise self._cannot("boot from a URL")
        options = "options=efiboot" if once else "options=efiboot,persistent"
        self._run("chassis", "bootdev", _BOOT[target], *([options] if target is not BootTarget.NONE else []))

    def media(self) -> list[Media]:
        """IPMI has no virtual drives."""
        raise self._cannot("read virtual media")

    def insert_media(self, url: str) -> None:
        """IPMI has no virtual drives."""
        raise self._cannot("insert virtual media")

    def trust_media(self, pem: str) -> bool:
        """IPMI has no virtual drives."""
        return False

    def eject_media(self) -> None:
        """IPMI has no virtual drives."""
        raise self._cannot("eject virtual media")

    def secure_boot(self) -> bool | None:
        """IPMI does not know."""
        return None

    def set_secure_boot(self, on: bool) -> None:
        """IPMI does not know Secure Boot."""
        raise self._cannot("switch Secure Boot")

    def identify(self, on: bool) -> None:
        """Switch the light, until it is switched off."""
        self._run("chassis", "identify", "force" if on else "0")

    def event_log(self, limit: int) -> list[LogEntry]:
        """The newest entries of the SEL, newest first."""
        return ipmi_output.entries_of(self._run("sel", "elist", "last", str(limit), long=True))

    def health(self) -> BmcHealth:
        """Power supplies, fans, temperatures."""
        unread: tuple[str, ...] = ()
        try:
            sensors = self._run("sdr", "elist", long=True)
        except NoAnswer:
            raise
        except BmcError:  # it has none; the power is known all the same
            sensors, unread = "", ("its sensors (sdr elist)",)
        supplies, fans, temperatures = ipmi_output.parts_of(sensors)
        return BmcHealth(
            overall=ipmi_output.overall_of(self._run("chassis", "status")),
            power_supplies=tuple(supplies),
            fans=tuple(fans),
            temperatures=tuple(temperatures),
            power_watts=ipmi_output.watts_of(self._optional("dcmi", "power", "reading")),
            sel_full=ipmi_output.fullness_of(self._optional("sel", "info")),
            unread=unread,
        )

    def firmware(self) -> list[Firmware]:
        """The BMC's own."""
        return ipmi_output.firmware_of(self._run("mc", "info"))

    def bios(self) -> dict[str, object]:
        """IPMI does not know BIOS attributes."""
        raise self._cannot("report BIOS attributes")

    def bios_pending(self) -> dict[str, object]:
        """IPMI does not know BIOS attributes."""
        raise self._cannot("report BIOS attributes")

    def set_bios(self, changes: dict[str, object]) -> None:
        """IPMI does not know BIOS attributes."""
        raise self._cannot("set BIOS attributes")

    def console_command(self) -> list[str] | None:
        """Serial over LAN; the file with the password lives until `close`."""
        return [*self._ipmitool(), "sol", "activate"]

    def updates(self) -> BmcUpdates:
        """IPMI has no standard for updates."""
        raise self._cannot("list or update firmware")

    def close(self) -> None:
        """Remove the password's file."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _cannot(self, what: str) -> BmcError:
        return self._target.cannot(
            f"{what} over IPMI", hint="declare `protocol: redfish` if this BMC supports it"
        )

    def _ipmitool(self) -> list[str]:
        bmc = self._target.bmc
        return [
            *("ipmitool", "-I", "lanplus", "-H", str(bmc.address), "-p", str(bmc.port), "-U", bmc.user),
            *("-f", str(self._password_file()), "-C", str(self._suite), "-N", "2", "-R", "3"),
        ]

    def _password_file(self) -> Path:
        if self._folder is None:
            password = self._target.password.reveal().encode()
            if len(password) > _PASSWORD_MAX or b"\n" in password:
                raise BmcError(
                    f"The secret {self._target.bmc.password}, for the BMC of {self._target.node}, is not a valid IPMI password: "
                    f"it has more than {_PASSWORD_MAX} bytes, or several lines.",
                    hint="set a password of at most 20 characters for the BMC's user and store it with: "
                    f"rackwright secrets put {self._target.bmc.password} FILE",
                )
            self._folder = tempfile.TemporaryDirectory(prefix="rackwright-bmc-")  # for this user alone
            descriptor = os.open(
                Path(self._folder.name, "password"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600
            )
            with os.fdopen(descriptor, "wb") as file:
                file.write(password)
        return Path(self._folder.name, "password")

    def _optional(self, *command: str, long: bool = False) -> str:
        """The output; empty if the BMC does not support the command."""
        try:
            return self._run(*command, long=long)
        except NoAnswer:
            raise
        except BmcError:
            return ""

    def _run(self, *command: str, long: bool = False) -> str:
        asked = " ".join(command)
        allowed = self._target.bmc.timeout_seconds * (_LONG if long else 1)
        seconds = min(allowed, self._ends - time.monotonic())
        if seconds <= 0:
            raise NoAnswer(
                f"{self._target} is too slow: no time left for `{asked}`.",
                hint="run again with --limit for this node only",
            )
        try:
            done = subprocess.run(
                [*self._ipmitool(), *command],
                check=False,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
                env={
                    "PATH": os.environ.get("PATH", os.defpath),
                    "LC_ALL": "C",
                    "TZ": "UTC",
                    "HOME": "/nonexistent",
                },
            )
        except FileNotFoundError:
            raise BmcError("IPMI needs the program ipmitool.", hint="apt install ipmitool") from None
        except subprocess.TimeoutExpired:
            raise NoAnswer(
                f"{self._target} did not finish its answer to `{asked}` within {round(seconds)} s.",
                hint="raise `timeout_seconds` of its `bmc`, or reset the BMC itself: ipmitool mc reset cold",
            ) from None
        out, err = (text[:_OUTPUT_MAX].decode(errors="replace") for text in (done.stdout, done.stderr))
        if done.returncode != 0:
            raise self._failed(asked, out, err)
        return out

    def _failed(self, asked: str, out: str, err: str) -> BmcError:
        reason = last_line(out, err).replace(self._target.password.reveal(), "(the password)")
        bmc = self._target.bmc
        for words, doubt in _UNANSWERED.items():
            if words in err:
                return NoAnswer(
                    f"{self._target} did not answer `{asked}`{doubt}.",
                    hint=f"rackwright bmc power FILE status --limit {self._target.node}; a BMC under load may be slow",
                )
        if "Unable to establish" not in err:
            return BmcError(
                f"{self._target} failed at `{asked}`: {reason.rstrip('. ')}.",
                hint="some BMCs do not support this command; does the user have the Administrator role on the BMC?",
            )
        if any(words in err.lower() for words in _OTHER_SUITE):
            return BmcError(
                f"{self._target} refuses IPMI cipher suite {self._suite} ({asked}).",
                hint="update its firmware, or declare `cipher_suite: 3`, which older BMCs support; its SHA-1 is weaker"
                if self._suite != 3
                else "declare `cipher_suite: 17`; weaker suites than 3 are not used",
            )
        if self._is_there():
            return BmcError(
                f"{self._target} refuses user {bmc.user} or the password ({asked}).",
                hint=f"is IPMI over LAN allowed for {bmc.user}? store the right password with: "
                f"rackwright secrets put {bmc.password} FILE",
            )
        return NoAnswer(
            f"{self._target} does not answer IPMI on UDP port {bmc.port} ({asked}).",
            hint="check its address and cable; is IPMI over LAN enabled on the BMC?",
        )

    def _is_there(self) -> bool:
        """Whether it answers a request that needs no login."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.settimeout(2)
            try:
                asking.connect((str(self._target.bmc.address), self._target.bmc.port))
                asking.send(_ASK)
                return len(asking.recv(64)) > 0
            except OSError:
                return False
