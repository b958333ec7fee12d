"""What every BMC can be asked, whichever protocol it speaks."""

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
    """What can be done to a node's power."""

    ON = "on"
    OFF = "off"
    """At once, as if the plug were pulled."""
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
    """No override: the firmware's own order."""


class Condition(StrEnum):
    """The state of a part as the BMC reports it."""

    OK = "ok"
    WARNING = "warning"
    CRITICAL = "critical"
    ABSENT = "absent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BmcIdentity:
    """Which machine this is; None and empty where the BMC does not report it."""

    maker: str | None = None
    model: str | None = None
    serial: str | None = None
    uuid: str | None = None
    """Lower case."""
    macs: tuple[str, ...] = ()
    """Of the node's own network ports, lower case; the BMC's ports are not among them."""
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
    """With its time zone; None where the BMC had no clock yet."""
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
    """What the BMC measures."""

    overall: Condition
    """The BMC's own verdict on the whole machine."""
    power_supplies: tuple[Part, ...] = ()
    fans: tuple[Part, ...] = ()
    temperatures: tuple[Part, ...] = ()
    power_watts: float | None = None
    sel_full: int | None = None
    """Percent of the event log's room that is used; None where it is not reported."""
    sel_wraps: bool = False
    """Whether a full log drops its oldest entries; otherwise it drops new ones, as IPMI's does."""
    unread: tuple[str, ...] = ()
    """Resources that the BMC failed to read, so that parts may be missing here."""

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
    """One BMC, logged in when first asked.

    Every method raises BmcError, which names the node, the BMC's address, what was asked and what to do next.
    """

    def power(self) -> Power:
        """Whether the node has power."""

    def set_power(self, action: PowerAction) -> None:
        """Ask for a change; returns once the BMC has accepted it, which is before it has happened."""

    def identity(self) -> BmcIdentity:
        """Which machine this is."""

    def boot(self) -> BootOverride:
        """What overrides the firmware's boot order."""

    def set_boot(self, target: BootTarget, *, once: bool, http_uri: str | None = None) -> None:
        """Override the boot order, for the next boot or until it is changed; in UEFI mode.

        Over Redfish, BmcError where the BMC accepts it and reports another target.

        + http_uri: what to fetch with `BootTarget.HTTP`; a BMC that cannot be given it leaves that to DHCP
        """

    def media(self) -> list[Media]:
        """The virtual drives."""

    def insert_media(self, url: str) -> None:
        """Put a write-protected CD from this URL into the virtual drive; what is there is ejected.

        Returns once the drive reports it, as far as the BMC reports that; BmcError where it does not in time.
        """

    def trust_media(self, pem: str) -> bool:
        """Have the BMC check the certificate of the server that images come from, against this CA.

        False where this BMC cannot: it then fetches images over HTTPS without a check, or refuses to.
        """

    def eject_media(self) -> None:
        """Empty the virtual drives for CDs."""

    def secure_boot(self) -> bool | None:
        """Whether the firmware's next boot checks signatures; None where the BMC does not know."""

    def set_secure_boot(self, on: bool) -> None:
        """Switch Secure Boot, from the next boot on."""

    def identify(self, on: bool) -> None:
        """Switch the light that shows where in the rack it is."""

    def event_log(self, limit: int) -> list[LogEntry]:
        """The newest entries of the hardware's event log, newest first."""

    def health(self) -> BmcHealth:
        """Power supplies, fans, temperatures."""

    def firmware(self) -> list[Firmware]:
        """Versions of all components."""

    def bios(self) -> dict[str, object]:
        """BIOS attributes in effect."""

    def bios_pending(self) -> dict[str, object]:
        """BIOS attributes that the next boot sets."""

    def set_bios(self, changes: dict[str, object]) -> None:
        """Set BIOS attributes with the next boot."""

    def console_command(self) -> list[str] | None:
        """The command line that opens the serial console, no secret in it; usable until `close`."""

    def updates(self) -> BmcUpdates:
        """Firmware of every component, and updates of it; usable until `close`."""

    def close(self) -> None:
        """Log out. Never raises: a BMC that has gone away ends its sessions by itself."""
