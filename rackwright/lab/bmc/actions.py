"""What a BMC does when it is asked to: power, virtual media, log, settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from urllib.parse import urlsplit

from rackwright.boundary import Refused
from rackwright.certificates.read import certificates_in
from rackwright.errors import LabError
from rackwright.lab.bmc import media, system
from rackwright.lab.bmc.choice import CONTINUOUS, DISABLED, ONCE, TARGETS
from rackwright.lab.bmc.machine import Machine
from rackwright.lab.bmc.refusal import Refusal, bad_request, conflict, not_found
from rackwright.lab.bmc.sessions import Sessions
from rackwright.lab.bmc.settings import FIRMWARE_SETTINGS, Medium, Settings

Body = dict[str, Any]
_SHUTDOWN_SECONDS = 300.0
_CERTIFICATES_MAX = 8


@dataclass(frozen=True, slots=True)
class Controller:
    """One BMC: its machine, its settings and its sessions."""

    machine: Machine
    changing: Callable[[], AbstractContextManager[Settings]]
    sessions: Sessions
    download: Callable[[media.Source, Path], int]
    medium: Path
    """Where the image in the CD drive is kept."""
    authorities: Callable[[], list[str]]
    """PEM of the CAs that the BMC trusts by itself."""
    drive: Lock = field(default_factory=Lock)
    """Of the CD drive: one image is inserted or ejected at a time."""


def reset(bmc: Controller, body: Body) -> None:
    """ComputerSystem.Reset."""
    kind = _only(body, "ResetType").get("ResetType")
    if kind not in system.RESETS:
        raise bad_request(f"ResetType is one of {', '.join(system.RESETS)}.", "ActionParameterValueNotInList")
    running = bmc.machine.running()
    if not running and kind not in ("On", "ForceOff"):
        raise conflict(f"{kind} needs a machine that is on.")
    try:
        if kind in ("ForceOff", "ForceRestart", "PowerCycle"):
            bmc.machine.off()
        if kind in ("On", "ForceRestart", "PowerCycle"):
            bmc.machine.on()
        if kind in ("GracefulShutdown", "GracefulRestart"):
            bmc.machine.press()
        if kind == "GracefulRestart":
            Thread(target=_on_when_off, args=(bmc.machine,), daemon=True).start()
    except LabError as error:
        raise Refusal(500, "InternalError", f"{kind} failed: {error.message}") from None


def _on_when_off(machine: Machine) -> None:
    deadline = time.monotonic() + _SHUTDOWN_SECONDS
    while machine.running():
        if time.monotonic() > deadline:
            return  # its operating system did not react to the button: it stays on
        time.sleep(0.2)
    machine.on()


def insert(bmc: Controller, body: Body) -> None:
    """VirtualMedia.InsertMedia: what is there already is taken out first."""
    known = ("Image", "Inserted", "WriteProtected", "TransferMethod", "TransferProtocolType", "MediaType")
    _only(body, *known, "UserName", "Password")
    url = media.check(body.get("Image"))
    if body.get("WriteProtected", True) is not True:
        raise bad_request("The virtual CD is write-protected.", "ActionParameterValueError")
    with _drive(bmc):
        with bmc.changing() as settings:
            verify, trusted = settings.verify_certificate, list(settings.certificates.values())
        name, password = (str(body.get(key) or "") for key in ("UserName", "Password"))
        source = media.Source(url, [*trusted, *bmc.authorities()], verify, name, password)
        _take_out(bmc)
        size = bmc.download(source, bmc.medium)
        with bmc.changing() as settings:
            settings.medium = Medium(media.shown(url), write_protected=True, size=size)
            settings.note(f"Virtual CD inserted from {urlsplit(url).hostname}, {size} bytes", "Virtual Media")
        _put_in(bmc, bmc.medium)


def eject(bmc: Controller, body: Body) -> None:
    """VirtualMedia.EjectMedia: nothing is left of the image."""
    _only(body)
    with _drive(bmc):
        _take_out(bmc)


@contextmanager
def _drive(bmc: Controller) -> Iterator[None]:
    if not bmc.drive.acquire(blocking=False):
        raise conflict("The virtual CD drive is busy.")
    try:
        yield
    finally:
        bmc.drive.release()


def _take_out(bmc: Controller) -> None:
    _put_in(bmc, None)
    bmc.medium.unlink(missing_ok=True)
    with bmc.changing() as settings:
        if settings.medium is not None:
            settings.note("Virtual CD ejected", "Virtual Media")
        settings.medium = None


def _put_in(bmc: Controller, image: Path | None) -> None:
    try:
        bmc.machine.put_in(image)
    except LabError as error:
        if bmc.machine.running():
            raise Refusal(500, "InternalError", f"The CD drive did not react: {error.message}") from None


def change_medium(bmc: Controller, body: Body) -> None:
    """PATCH of the virtual CD drive: whether servers of images have to show a trusted certificate."""
    verify = _only(body, "VerifyCertificate").get("VerifyCertificate")
    if not isinstance(verify, bool):
        raise bad_request("VerifyCertificate is true or false.")
    with bmc.changing() as settings:
        settings.verify_certificate = verify


def trust(bmc: Controller, body: Body) -> str:
    """POST to the certificates of the virtual CD drive; returns the number of the new one."""
    _only(body, "CertificateString", "CertificateType")
    text = body.get("CertificateString")
    try:
        certificates_in(text if isinstance(text, str) else "")
    except Refused as error:
        raise bad_request(f"CertificateString: {error}.") from None
    with bmc.changing() as settings:
        if len(settings.certificates) >= _CERTIFICATES_MAX:
            raise conflict(f"There are {_CERTIFICATES_MAX} certificates already.")
        number = str(settings.next_certificate)
        settings.next_certificate += 1
        settings.certificates[number] = str(text)
    return number


def distrust(bmc: Controller, number: str) -> None:
    """DELETE of one of them."""
    with bmc.changing() as settings:
        if settings.certificates.pop(number, None) is None:
            raise not_found(f"certificate {number}")


def clear_log(bmc: Controller, body: Body) -> None:
    """LogService.ClearLog."""
    _only(body)
    with bmc.changing() as settings:
        settings.log.clear()
        settings.note("Event log cleared", "Event Logging")


def change_system(bmc: Controller, body: Body) -> None:
    """PATCH of the system: boot override and the light that shows where it is."""
    _only(body, "Boot", "IndicatorLED", "LocationIndicatorActive")
    led, located = body.get("IndicatorLED"), body.get("LocationIndicatorActive")
    if led is not None and led not in system.INDICATORS:
        raise bad_request(f"IndicatorLED is one of {', '.join(system.INDICATORS)}.", "PropertyValueNotInList")
    if located is not None and not isinstance(located, bool):
        raise bad_request("LocationIndicatorActive is true or false.")
    with bmc.changing() as settings:
        if "Boot" in body:
            _override(settings, body["Boot"])
        if located is not None:
            settings.indicator = "Blinking" if located else "Off"
        if led is not None:
            settings.indicator = led


def _override(settings: Settings, asked: object) -> None:
    if not isinstance(asked, dict):
        raise bad_request("Boot is an object.")
    named = {"Target": tuple(TARGETS), "Enabled": (DISABLED, ONCE, CONTINUOUS), "Mode": ("UEFI",)}
    wanted = {f"BootSourceOverride{name}": values for name, values in named.items()}
    _only(asked, *wanted, "HttpBootUri")
    for name, values in wanted.items():
        if name in asked and asked[name] not in values:
            raise bad_request(f"{name} is one of {', '.join(values)}.", "PropertyValueNotInList")
    uri = asked.get("HttpBootUri", settings.override.http_uri) or ""
    if uri:
        media.check(uri)
    override = settings.override
    override.target = asked.get("BootSourceOverrideTarget", override.target)
    override.enabled = asked.get("BootSourceOverrideEnabled", override.enabled)
    override.http_uri = uri
    if "None" in (override.target, asked.get("BootSourceOverrideTarget")) or override.enabled == DISABLED:
        override.target, override.enabled = "None", DISABLED
    settings.note(f"Boot override: {override.target}, {override.enabled}", "Boot")


def change_bios(bmc: Controller, body: Body) -> None:
    """PATCH of the pending firmware settings."""
    attributes = _only(body, "Attributes", "@Redfish.SettingsApplyTime").get("Attributes")
    if not isinstance(attributes, dict):
        raise bad_request("Attributes is an object.")
    mistakes = [why for name, value in attributes.items() if (why := system.bios_mistake(name, value))]
    if mistakes:
        raise bad_request(f"{'; '.join(mistakes)}.", "PropertyValueNotInList")
    with bmc.changing() as settings:
        settings.bios_wanted |= attributes


def reset_bios(bmc: Controller, body: Body) -> None:
    """Bios.ResetBios."""
    _only(body)
    with bmc.changing() as settings:
        settings.bios_wanted = {name: values[0] for name, values in FIRMWARE_SETTINGS.items()}


def change_secure_boot(bmc: Controller, body: Body) -> None:
    """PATCH of Secure Boot."""
    wanted = _only(body, "SecureBootEnable").get("SecureBootEnable")
    if not isinstance(wanted, bool):
        raise bad_request("SecureBootEnable is true or false.")
    with bmc.changing() as settings:
        settings.secure_boot_wanted = wanted


def restart(bmc: Controller, body: Body) -> None:
    """Manager.Reset: sessions end."""
    _only(body, "ResetType")
    bmc.sessions.close_all()


def _only(body: Body, *known: str) -> Body:
    """The body, which has no member that would be ignored."""
    unknown = sorted(set(body) - set(known))
    if unknown:
        raise bad_request(f"There is no property {', '.join(unknown)} to set here.", "PropertyUnknown")
    return body
