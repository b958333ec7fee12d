"""The operations of every BMC, independent of its protocol."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rackwright.bmc.updates import BmcUpdates


class Power(StrEnum):
    """Whether the node has power."""

    ON = "on"
    OFF = "off"
    CHANGING = "changing"
    UNKNOWN = "unknown"


class PowerAction(StrEnum):
    """Actions on a node's power."""

    ON = "on"
    OFF = "off"
    """Immediately, as if the plug were pulled."""
    SOFT = "soft"
    """Press the power button: the operating system shuts down."""
    CYCLE = "cycle"
    """Off and on again."""
    RESET = "reset"
    """The reset line: the node keeps its power."""


class BootTarget(StrEnum):
    """What the firmware boots from."""

    DISK = "disk"
    CD = "cd"
    PXE = "pxe"
    HTTP = "http"
    SETUP = "setup"
    NONE = "none"
    """No override: the firmware's configured order."""


class Condition(StrEnum):
    """The state of a part as the BMC reports it."""

    OK = "ok"
    WARNING = "warning"
    CRITICAL = "critical"
    ABSENT = "absent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BmcIdentity:
    """Identity of the machine; None and empty if the BMC does not report it."""

    maker: str | None = None
    model: str | None = None
    serial: str | None = None
    uuid: str | None = None
    """UUID in lower case."""
    macs: tuple[str, ...] = ()
    """MACs of the node's network ports, lower case, without the BMC's ports."""
    bios: str | None = None
    bmc_firmware: str | None = None


@dataclass(frozen=True, slots=True)
class BootOverride:
    """What the next boots use instead of the firmware's order."""

    target: BootTarget
    once: bool = False
    http_uri: str | None = None


@dataclass(frozen=True, slots=True)
class Media:
    """One virtual drive."""

    name: str
    inserted: bool
    image: str | None
    cd: bool
    """Whether it can hold a CD or DVD."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line of the hardware's event log."""

    when: datetime | None
    """Time with its zone; None if the BMC's clock was not set yet."""
    severity: Condition
    message: str
    sensor: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A power supply, a fan or a temperature."""

    name: str
    state: Condition
    value: float | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class BmcHealth:
    """Sensor readings of the BMC."""

    overall: Condition
    """The BMC's overall health of the machine."""
    power_supplies: tuple[Part, ...] = ()
    fans: tuple[Part, ...] = ()
    temperatures: tuple[Part, ...] = ()
    power_watts: float | None = None
    sel_full: int | None = None
    """Percent of the event log that is used; None if not reported."""
    sel_wraps: bool = False
    """Whether a full log drops its oldest entries; if not, it drops new ones, as IPMI's does."""
    unread: tuple[str, ...] = ()
    """Resources that the BMC failed to read, so some parts may be missing here."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """Power supplies, fans and temperatures."""
        return (*self.power_supplies, *self.fans, *self.temperatures)


@dataclass(frozen=True, slots=True)
class Firmware:
    """One component with firmware."""

    id: str
    name: str
    version: str
    updateable: bool = False


class BmcClient(Protocol):
    """One BMC; logs in on first use.

    Every method raises BmcError, which names the node, the BMC's address, the request and what to do next.
    """

    def power(self) -> Power:
        """Whether the node has power."""

    def set_power(self, action: PowerAction) -> None:
        """Request a change; returns once the BMC has accepted it, before it has happened."""

    def identity(self) -> BmcIdentity:
        """Which machine this is."""

    def boot(self) -> BootOverride:
        """What overrides the firmware's boot order."""

    def set_boot(self, target: BootTarget, *, once: bool, http_uri: str | None = None) -> None:
        """Override the boot order, for the next boot or permanently; in UEFI mode.

        Over Redfish, raises BmcError if the BMC accepts it but then reports another target.

        + http_uri: URL for `BootTarget.HTTP`; a BMC that cannot be given one leaves that to DHCP
        """

    def media(self) -> list[Media]:
        """The virtual drives."""

    def insert_media(self, url: str) -> None:
        """Insert a write-protected CD from this URL into the virtual drive; ejects what is in it.

        Returns once the drive reports it, if the BMC does so; BmcError if it does not in time.
        """

    def trust_media(self, pem: str) -> bool:
        """Make the BMC verify the image server's certificate against this CA.

        False if this BMC cannot: it then downloads images over HTTPS without verification, or refuses to.
        """

    def eject_media(self) -> None:
        """Eject the virtual CDs."""

    def secure_boot(self) -> bool | None:
        """Whether the firmware's next boot checks signatures; None if the BMC does not report it."""

    def set_secure_boot(self, on: bool) -> None:
        """Turn Secure Boot on or off, from the next boot on."""

    def identify(self, on: bool) -> None:
        """Turn the locator light on or off."""

    def event_log(self, limit: int) -> list[LogEntry]:
        """The newest entries of the hardware's event log, newest first."""

    def health(self) -> BmcHealth:
        """Power supplies, fans, temperatures."""

    def firmware(self) -> list[Firmware]:
        """Versions of all components."""

    def bios(self) -> dict[str, object]:
        """Current BIOS attributes."""

    def bios_pending(self) -> dict[str, object]:
        """BIOS attributes that the next boot sets."""

    def set_bios(self, changes: dict[str, object]) -> None:
        """Set BIOS attributes on the next boot."""

    def console_command(self) -> list[str] | None:
        """The command line that opens the serial console, without secrets; usable until `close`."""

    def updates(self) -> BmcUpdates:
        """Firmware of every component, and updates of it; usable until `close`."""

    def close(self) -> None:
        """Log out. Never raises: an unreachable BMC ends its sessions by itself."""
