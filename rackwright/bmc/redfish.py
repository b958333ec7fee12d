"""A BMC over Redfish: we parse what it reports; changes go through sushy."""

from __future__ import annotations

from rackwright.bmc.documents import Document, last_part, link, sub, text
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
from rackwright.bmc.redfish_boot import NAMES, await_target, boot_of
from rackwright.bmc.redfish_change import Changes
from rackwright.bmc.redfish_console import console_argv
from rackwright.bmc.redfish_health import read_health
from rackwright.bmc.redfish_identity import read_firmware, read_identity
from rackwright.bmc.redfish_log import read_log
from rackwright.bmc.redfish_media import await_inserted, cd_drives, drives, media_of, same_certificate
from rackwright.bmc.redfish_session import RedfishSession
from rackwright.bmc.redfish_tasks import await_task
from rackwright.bmc.redfish_tree import Tree
from rackwright.bmc.redfish_update import RedfishUpdates
from rackwright.errors import BmcError

_POWER = {
    "on": Power.ON,
    "off": Power.OFF,
    "poweringon": Power.CHANGING,
    "poweringoff": Power.CHANGING,
    "reset": Power.CHANGING,
}
_RESETS = {
    PowerAction.ON: ("On", "ForceOn"),
    PowerAction.OFF: ("ForceOff",),
    PowerAction.SOFT: ("GracefulShutdown", "PushPowerButton"),
    PowerAction.CYCLE: ("PowerCycle", "ForceRestart"),
    PowerAction.RESET: ("ForceRestart", "PowerCycle"),
}


class RedfishClient:
    """One BMC; for one thread. See `interface.BmcClient`."""

    def __init__(self, session: RedfishSession) -> None:
        self._session = session
        self._tree = Tree(session)
        self._changes = Changes(session)

    def __repr__(self) -> str:
        return f"RedfishClient({self._session.target.node})"

    def power(self) -> Power:
        """Whether the node has power."""
        return power_of(self._tree.system())

    def set_power(self, action: PowerAction) -> None:
        """Ask for a change of power."""
        self._changes.reset(self._tree.system_path(), _RESETS[action])

    def identity(self) -> BmcIdentity:
        """Which machine this is."""
        return read_identity(self._tree)

    def boot(self) -> BootOverride:
        """What overrides the firmware's boot order."""
        return boot_of(self._tree.system())

    def set_boot(self, target: BootTarget, *, once: bool, http_uri: str | None = None) -> None:
        """Override the boot order, in UEFI mode."""
        system = self._tree.system()
        boot = sub(system, "Boot")
        enabled = "Disabled" if target is BootTarget.NONE else "Once" if once else "Continuous"
        maker = (text(system, "Manufacturer") or "").lower()
        # sent only if it differs, since some BMCs refuse it; Supermicro's forget the target without it
        now = text(boot, "BootSourceOverrideMode")
        mode = now is not None and (now != "UEFI" or maker.startswith("supermicro"))
        mode = mode and target is not BootTarget.NONE
        self._changes.boot(self._tree.system_path(), NAMES[target], enabled, http_uri, mode=mode)
        if target is not BootTarget.NONE:
            await_target(self._tree, target)

    def media(self) -> list[Media]:
        """The virtual drives."""
        return [media_of(one) for one in drives(self._tree).values()]

    def insert_media(self, url: str) -> None:
        """Put a write-protected CD into the virtual drive."""
        there = cd_drives(drives(self._tree))
        path = next(iter(there), None)
        if path is None:
            raise self._session.target.cannot(
                "take virtual media: it has no virtual drive for CDs",
                hint="it may lack a vendor license; `boot: http` and `boot: pxe` need no virtual media",
            )
        self._empty(there)  # with two CDs, the firmware would choose which one boots
        await_task(self._tree, self._changes.insert(path, url), "insert virtual media")
        await_inserted(self._tree, path, url)

    def trust_media(self, pem: str) -> bool:
        """Make the BMC verify the image server against this CA."""
        path, drive = next(iter(cd_drives(drives(self._tree)).items()), ("", {}))
        certificates = link(drive, "Certificates")
        if certificates is None or not isinstance(drive.get("VerifyCertificate"), bool):
            return False
        if not any(same_certificate(one, pem) for one in self._tree.members(certificates)):
            body = {"CertificateString": pem, "CertificateType": "PEM"}
            self._session.exchange("POST", certificates, body)
        if drive["VerifyCertificate"] is False:
            self._changes.patch(path, {"VerifyCertificate": True}, text(drive, "@odata.etag") or "")
        return True

    def eject_media(self) -> None:
        """Eject the virtual CDs."""
        self._empty(cd_drives(drives(self._tree)))

    def secure_boot(self) -> bool | None:
        """Whether the next boot checks signatures."""
        enabled = self._tree.optional(link(self._tree.system(), "SecureBoot")).get("SecureBootEnable")
        return enabled if isinstance(enabled, bool) else None

    def set_secure_boot(self, on: bool) -> None:
        """Turn Secure Boot on or off, from the next boot on."""
        self._changes.secure_boot(self._needed("SecureBoot", "switch Secure Boot"), on)

    def identify(self, on: bool) -> None:
        """Turn the light on or off, on the system or on its chassis."""
        system = self._tree.system()
        for doc in (system, *self._tree.chassis(system)):
            path = text(doc, "@odata.id")
            if path is None or not {"LocationIndicatorActive", "IndicatorLED"} & set(doc):
                continue
            etag = text(doc, "@odata.etag") or ""
            if "LocationIndicatorActive" in doc:
                self._changes.patch(path, {"LocationIndicatorActive": on}, etag)
            else:
                self._light(path, on, etag)
            return
        raise self._session.target.cannot("turn on a locator light: it has none")

    def event_log(self, limit: int) -> list[LogEntry]:
        """The newest entries of the hardware's event log."""
        return read_log(self._tree, limit)

    def health(self) -> BmcHealth:
        """Power supplies, fans, temperatures."""
        return read_health(self._tree)

    def firmware(self) -> list[Firmware]:
        """Versions of all components."""
        return read_firmware(self._tree)

    def bios(self) -> dict[str, object]:
        """BIOS attributes in effect."""
        return attributes_of(self._session.get(self._needed("Bios", "report BIOS attributes")))

    def bios_pending(self) -> dict[str, object]:
        """BIOS attributes that the next boot sets."""
        bios = self._session.get(self._needed("Bios", "report BIOS attributes"))
        settings = link(sub(bios, "@Redfish.Settings"), "SettingsObject")
        pending, now = attributes_of(self._tree.optional(settings)), attributes_of(bios)
        # some list only what will change, some list everything as it will be
        return {name: value for name, value in pending.items() if now.get(name) != value}

    def set_bios(self, changes: dict[str, object]) -> None:
        """Set BIOS attributes with the next boot."""
        path = self._needed("Bios", "set BIOS attributes")
        known = attributes_of(self._session.get(path))
        if unknown := sorted(set(changes) - set(known)):
            raise self._session.target.cannot(
                f"set {', '.join(unknown)}: its BIOS does not have the attribute",
                hint="names differ by vendor and firmware; the BMC's web interface lists them",
            )
        self._changes.bios(path, changes)

    def console_command(self) -> list[str] | None:
        """The command line that opens the serial console."""
        system = self._tree.system()
        return console_argv(self._session.target, system, self._tree.managers(system))

    def updates(self) -> RedfishUpdates:
        """Firmware of every component, and updates of it."""
        return RedfishUpdates(self._session, self._tree)

    def close(self) -> None:
        """Log out."""
        self._session.close()

    def _empty(self, there: dict[str, Document]) -> None:
        for path, doc in there.items():
            if media_of(doc).inserted:
                await_task(self._tree, self._changes.eject(path), "eject virtual media")

    def _light(self, path: str, on: bool, etag: str) -> None:
        try:
            self._changes.patch(path, {"IndicatorLED": "Blinking" if on else "Off"}, etag)
        except BmcError:
            if not on:
                raise
            self._changes.patch(path, {"IndicatorLED": "Lit"}, etag)  # it cannot blink

    def _needed(self, name: str, what: str) -> str:
        path = link(self._tree.system(), name)
        if path is None:
            raise self._session.target.cannot(
                f"{what}: its system {last_part(self._tree.system_path())} has no {name}",
                hint="update its firmware, or change this in the firmware setup",
            )
        return path


def power_of(system: Document) -> Power:
    """The state in a system's document."""
    return _POWER.get((text(system, "PowerState") or "").lower(), Power.UNKNOWN)


def attributes_of(bios: Document) -> dict[str, object]:
    """The attributes in a Bios document that have a plain value."""
    attributes = sub(bios, "Attributes")
    return {name: value for name, value in attributes.items() if isinstance(value, (str, int, float, bool))}
