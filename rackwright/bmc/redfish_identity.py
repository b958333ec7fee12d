"""Identity and firmware of a machine, from Redfish documents."""

from __future__ import annotations

from collections.abc import Iterable

from rackwright.bmc.documents import Document, document, link, listed, mac, sub, text
from rackwright.bmc.interface import BmcIdentity, Firmware
from rackwright.bmc.redfish_tree import Tree

_NO_SERIALS = {
    "none",
    "n/a",
    "na",
    "null",
    "unknown",
    "default string",
    "to be filled by o.e.m.",
    "0123456789",
}
_ADAPTERS_MAX = 32
_FIRMWARE_MAX = 256


def read_identity(tree: Tree) -> BmcIdentity:
    """Vendor, model, serial, MACs and versions."""
    system = tree.system()
    managers = tree.managers(system)
    macs = interface_macs(tree.members(link(system, "EthernetInterfaces")))
    if not macs:
        macs = adapter_macs(_adapters(tree, system))
    return identity_of(system, managers, macs)


def identity_of(system: Document, managers: Iterable[Document], macs: Iterable[str]) -> BmcIdentity:
    """The identity in a system's document."""
    firmware = next((found for one in managers if (found := text(one, "FirmwareVersion"))), None)
    uuid = text(system, "UUID")
    return BmcIdentity(
        maker=text(system, "Manufacturer"),
        model=text(system, "Model"),
        serial=serial_of(system),
        uuid=uuid.lower() if uuid is not None else None,
        macs=tuple(sorted(set(macs))),
        bios=text(system, "BiosVersion"),
        bmc_firmware=firmware,
    )


def serial_of(system: Document) -> str | None:
    """The serial number as DMI prints it: Dell's service tag is its `SKU`."""
    maker = (text(system, "Manufacturer") or "").lower()
    names = ("SKU", "SerialNumber") if maker.startswith("dell") else ("SerialNumber",)
    serial = text(system, *names)
    return None if serial is None or serial.lower() in _NO_SERIALS else serial


def interface_macs(interfaces: Iterable[Document]) -> list[str]:
    """MACs of the system's Ethernet interfaces, permanent ones first."""
    found = [mac(one.get("PermanentMACAddress")) or mac(one.get("MACAddress")) for one in interfaces]
    return [one for one in found if one is not None]


def adapter_macs(parts: Iterable[Document]) -> list[str]:
    """MACs in functions and ports of network adapters, and in HPE's adapters."""
    found = []
    for part in parts:
        ethernet = sub(part, "Ethernet")
        found.append(mac(ethernet.get("PermanentMACAddress")) or mac(ethernet.get("MACAddress")))
        for name in ("AssociatedNetworkAddresses", "AssociatedMACAddresses"):
            for holder in (part, ethernet):
                values = holder.get(name)
                found += [mac(one) for one in values] if isinstance(values, list) else []
        found += [mac(port.get("MacAddress")) for port in listed(part, "PhysicalPorts")]
    return [one for one in found if one is not None]


def firmware_of(documents: Iterable[Document]) -> list[Firmware]:
    """Components of a firmware inventory, one per name and version."""
    found: dict[tuple[str, str], Firmware] = {}
    for doc in documents:
        name, version = text(doc, "Name"), text(doc, "Version")
        identity = text(doc, "Id")
        if identity is None or version is None or identity.startswith("Previous-"):
            continue  # iDRAC also lists versions for rollback
        one = Firmware(identity, name or identity, version, doc.get("Updateable") is True)
        found.setdefault((one.name, version), one)
    return sorted(found.values(), key=lambda one: (one.name, one.id))


def read_firmware(tree: Tree) -> list[Firmware]:
    """Versions of all components."""
    service = tree.optional(link(tree.session.root(), "UpdateService"))
    return firmware_of(tree.members(link(service, "FirmwareInventory"), _FIRMWARE_MAX))


def _adapters(tree: Tree, system: Document) -> Iterable[Document]:
    """Functions and ports of the system's network adapters, in each place where vendors have them."""
    for interface in tree.members(link(system, "NetworkInterfaces"), _ADAPTERS_MAX):
        functions = link(interface, "NetworkDeviceFunctions")
        adapter = tree.optional(link(sub(interface, "Links"), "NetworkAdapter"))
        yield from tree.members(functions or link(adapter, "NetworkDeviceFunctions"))
        yield from tree.members(link(adapter, "Ports") or link(adapter, "NetworkPorts"))
    for oem in ("Hpe", "Hp"):
        own = sub(system, "Oem", oem, "Links")
        yield from tree.members(link(own, "NetworkAdapters") or link(own, "BaseNetworkAdapters"))
    base = document(system.get("BaseNetworkAdapters"))
    yield from tree.members(link({"base": base}, "base"))
