"""Redfish's documents of the BMC itself: its network, virtual media and event log."""

from __future__ import annotations

from datetime import UTC, datetime

from rackwright.lab import names
from rackwright.lab.bmc.settings import LOG_MAX, Entry
from rackwright.lab.bmc.view import (
    BMC_VERSION,
    CD,
    CHASSIS,
    LOG,
    MANAGER,
    ROOT,
    SYSTEM,
    Document,
    View,
    collection,
    link,
    resource,
    status,
)

PAGE = 100
"""Entries of the event log in one answer."""


def managers(_: View) -> Document:
    """The one BMC."""
    return collection(f"{ROOT}/Managers", "ManagerCollection", "Managers", ["1"])


def manager(view: View) -> Document:
    """The BMC."""
    return resource(
        MANAGER,
        "Manager.v1_19_0.Manager",
        f"BMC of {view.node.name}",
        ManagerType="BMC",
        Model="rackwright lab BMC",
        FirmwareVersion=BMC_VERSION,
        UUID=view.uuid,
        PowerState="On",
        DateTime=datetime.now(UTC).isoformat(timespec="seconds"),
        DateTimeLocalOffset="+00:00",
        Status=status(),
        EthernetInterfaces=link(f"{MANAGER}/EthernetInterfaces"),
        NetworkProtocol=link(f"{MANAGER}/NetworkProtocol"),
        VirtualMedia=link(f"{MANAGER}/VirtualMedia"),
        LogServices=link(f"{MANAGER}/LogServices"),
        Links={"ManagerForServers": [link(SYSTEM)], "ManagerForChassis": [link(CHASSIS)]},
        Actions={
            "#Manager.Reset": {
                "target": f"{MANAGER}/Actions/Manager.Reset",
                "ResetType@Redfish.AllowableValues": ["GracefulRestart", "ForceRestart"],
            }
        },
    )


def interfaces(_: View) -> Document:
    """The BMC's one port."""
    path = f"{MANAGER}/EthernetInterfaces"
    return collection(path, "EthernetInterfaceCollection", "Ports of the BMC", ["1"])


def interface(view: View) -> Document:
    """The BMC's port; its MAC is not one of the machine's."""
    mac = names.mac(view.rack, view.node.name, "bmc").upper()
    return resource(
        f"{MANAGER}/EthernetInterfaces/1",
        "EthernetInterface.v1_9_0.EthernetInterface",
        "Dedicated port of the BMC",
        MACAddress=mac,
        PermanentMACAddress=mac,
        InterfaceEnabled=True,
        IPv4Addresses=[{"Address": view.bmc.address, "AddressOrigin": "Static"}],
        Status=status(),
    )


def network_protocol(view: View) -> Document:
    """The protocols that the BMC speaks: this one alone."""
    off = {"ProtocolEnabled": False}
    return resource(
        f"{MANAGER}/NetworkProtocol",
        "ManagerNetworkProtocol.v1_10_0.ManagerNetworkProtocol",
        "Network protocols",
        HostName=f"{view.node.name}-bmc",
        HTTPS={"ProtocolEnabled": True, "Port": view.bmc.port},
        HTTP=off,
        IPMI=off,
        SSH=off,
        Status=status(),
    )


def all_media(_: View) -> Document:
    """The one virtual drive."""
    return collection(f"{MANAGER}/VirtualMedia", "VirtualMediaCollection", "Virtual media", ["Cd"])


def cd(view: View) -> Document:
    """The virtual CD drive."""
    medium = view.settings.medium
    return resource(
        CD,
        "VirtualMedia.v1_6_0.VirtualMedia",
        "Virtual CD",
        MediaTypes=["CD", "DVD"],
        Image=None if medium is None else medium.image,
        ImageName=None if medium is None else medium.image.rsplit("/", 1)[-1],
        Inserted=medium is not None,
        ConnectedVia="NotConnected" if medium is None else "URI",
        WriteProtected=True,
        VerifyCertificate=view.settings.verify_certificate,
        TransferMethod="Upload",
        Certificates=link(f"{CD}/Certificates"),
        Actions={
            "#VirtualMedia.InsertMedia": {"target": f"{CD}/Actions/VirtualMedia.InsertMedia"},
            "#VirtualMedia.EjectMedia": {"target": f"{CD}/Actions/VirtualMedia.EjectMedia"},
        },
    )


def certificates(view: View) -> Document:
    """What a server of images may be signed with."""
    return collection(
        f"{CD}/Certificates", "CertificateCollection", "Trusted for images", list(view.settings.certificates)
    )


def certificate(view: View, number: str) -> Document | None:
    """One of them."""
    text = view.settings.certificates.get(number)
    if text is None:
        return None
    path = f"{CD}/Certificates/{number}"
    return resource(
        path,
        "Certificate.v1_8_0.Certificate",
        "Trusted certificate",
        CertificateString=text,
        CertificateType="PEM",
    )


def log_services(_: View) -> Document:
    """The one log."""
    return collection(f"{MANAGER}/LogServices", "LogServiceCollection", "Logs", ["SEL"])


def log_service(view: View) -> Document:
    """The event log. A full one takes no new entries until it is cleared."""
    full = len(view.settings.log) >= LOG_MAX
    return resource(
        LOG,
        "LogService.v1_7_0.LogService",
        "System event log",
        ServiceEnabled=True,
        LogEntryType="SEL",
        MaxNumberOfRecords=LOG_MAX,
        OverWritePolicy="NeverOverWrites",
        Status=status("Warning" if full else "OK"),
        Entries=link(f"{LOG}/Entries"),
        Actions={"#LogService.ClearLog": {"target": f"{LOG}/Actions/LogService.ClearLog"}},
    )


def entries(view: View, skip: int, top: int) -> Document:
    """A page of the event log, oldest first."""
    path, log = f"{LOG}/Entries", view.settings.log
    shown = log[skip : skip + min(top, PAGE)]
    document = collection(path, "LogEntryCollection", "Entries", [])
    document |= {"Members@odata.count": len(log), "Members": [_entry(entry) for entry in shown]}
    end = skip + len(shown)
    if shown and end < len(log) and len(shown) < top:
        document["Members@odata.nextLink"] = f"{path}?$skip={end}"
    return document


def entry(view: View, number: str) -> Document | None:
    """One entry of the event log."""
    return next((_entry(one) for one in view.settings.log if str(one.number) == number), None)


def _entry(one: Entry) -> Document:
    return resource(
        f"{LOG}/Entries/{one.number}",
        "LogEntry.v1_16_0.LogEntry",
        f"Entry {one.number}",
        EntryType="SEL",
        Created=one.created,
        Severity=one.severity,
        Message=one.message,
        SensorType=one.sensor,
    )
