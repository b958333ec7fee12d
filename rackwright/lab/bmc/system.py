"""Redfish's documents of the machine itself: the computer system, its ports, disks and firmware settings."""

from __future__ import annotations

from rackwright.lab import names, qemu, racked
from rackwright.lab.bmc.choice import CONTINUOUS, DISABLED, ONCE, TARGETS
from rackwright.lab.bmc.settings import FIRMWARE_SETTINGS
from rackwright.lab.bmc.view import (
    CHASSIS,
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

RESETS = ("On", "ForceOff", "GracefulShutdown", "ForceRestart", "GracefulRestart", "PowerCycle")
INDICATORS = ("Off", "Lit", "Blinking")
DRIVES = f"{SYSTEM}/Storage/1/Drives"


def systems(_: View) -> Document:
    """The one system of a BMC."""
    return collection(f"{ROOT}/Systems", "ComputerSystemCollection", "Systems", ["1"])


def system(view: View) -> Document:
    """The machine."""
    node, settings = view.node, view.settings
    assert node.vm is not None
    cpus = {"Count": node.vm.sockets, "LogicalProcessorCount": node.cpus, "Model": "qemu", "Status": status()}
    return resource(
        SYSTEM,
        "ComputerSystem.v1_20_0.ComputerSystem",
        node.name,
        SystemType="Physical",
        Manufacturer=qemu.MANUFACTURER,
        Model=qemu.PRODUCT,
        SerialNumber=view.serial,
        UUID=view.uuid,
        BiosVersion=racked.BIOS_VERSION,
        PowerState=view.power,
        IndicatorLED=settings.indicator,
        LocationIndicatorActive=settings.indicator != "Off",
        Boot=boot(view),
        ProcessorSummary=cpus,
        MemorySummary={"TotalSystemMemoryGiB": node.memory_mib / 1024, "Status": status()},
        Status=status(state="Enabled" if view.power == "On" else "StandbyOffline"),
        EthernetInterfaces=link(f"{SYSTEM}/EthernetInterfaces"),
        Storage=link(f"{SYSTEM}/Storage"),
        Bios=link(f"{SYSTEM}/Bios"),
        SecureBoot=link(f"{SYSTEM}/SecureBoot"),
        Links={"Chassis": [link(CHASSIS)], "ManagedBy": [link(MANAGER)]},
        Actions={
            "#ComputerSystem.Reset": {
                "target": f"{SYSTEM}/Actions/ComputerSystem.Reset",
                "ResetType@Redfish.AllowableValues": list(RESETS),
            }
        },
    )


def boot(view: View) -> Document:
    """What is booted next."""
    override = view.settings.override
    return {
        "BootSourceOverrideTarget": override.target,
        "BootSourceOverrideTarget@Redfish.AllowableValues": list(TARGETS),
        "BootSourceOverrideEnabled": override.enabled,
        "BootSourceOverrideEnabled@Redfish.AllowableValues": [DISABLED, ONCE, CONTINUOUS],
        "BootSourceOverrideMode": "UEFI",
        "BootSourceOverrideMode@Redfish.AllowableValues": ["UEFI"],
        "HttpBootUri": override.http_uri or None,
    }


def interfaces(view: View) -> Document:
    """The ports of the machine."""
    numbers = [str(number + 1) for number in range(len(view.node.addresses))]
    path = f"{SYSTEM}/EthernetInterfaces"
    return collection(path, "EthernetInterfaceCollection", "Ports", numbers)


def interface(view: View, number: str) -> Document | None:
    """One port; its addresses are the operating system's."""
    if number not in {str(place + 1) for place in range(len(view.node.addresses))}:
        return None
    mac = names.port_mac(view.rack, view.node.name, int(number) - 1).upper()
    return resource(
        f"{SYSTEM}/EthernetInterfaces/{number}",
        "EthernetInterface.v1_9_0.EthernetInterface",
        f"Port {number}",
        MACAddress=mac,
        PermanentMACAddress=mac,
        InterfaceEnabled=True,
        LinkStatus="LinkUp" if view.power == "On" else "NoLink",
        MTUSize=view.node.port_mtu(int(number) - 1),
        Status=status(),
    )


def storages(_: View) -> Document:
    """The one storage controller."""
    return collection(f"{SYSTEM}/Storage", "StorageCollection", "Storage", ["1"])


def storage(view: View) -> Document:
    """The disks of the machine."""
    drives = [link(f"{DRIVES}/{name}") for name in _drives(view)]
    return resource(
        f"{SYSTEM}/Storage/1",
        "Storage.v1_15_0.Storage",
        "Disks",
        Drives=drives,
        **{"Drives@odata.count": len(drives)},
        StorageControllers=[],
        Status=status(),
    )


def drive(view: View, name: str) -> Document | None:
    """One disk."""
    size = _drives(view).get(name)
    if size is None:
        return None
    return resource(
        f"{DRIVES}/{name}",
        "Drive.v1_17_0.Drive",
        f"Disk {name}",
        Manufacturer=qemu.MANUFACTURER,
        Model="QEMU NVMe Ctrl" if name != qemu.drive_name() else "virtio-blk",
        SerialNumber=names.disk_serial(view.node.name, name),
        CapacityBytes=size,
        MediaType="SSD",
        Protocol="NVMe" if name != qemu.drive_name() else "PCIe",
        Status=status(),
    )


def _drives(view: View) -> dict[str, int]:
    data = view.node.vm.data_disks_gb if view.node.vm else ()
    further = {qemu.drive_name(number): size * 10**9 for number, size in enumerate(data)}
    return {qemu.drive_name(): racked.ROOT_BYTES, **further}


def bios(view: View) -> Document:
    """The firmware's settings as the machine was last switched on with them."""
    path = f"{SYSTEM}/Bios"
    return resource(
        path,
        "Bios.v1_2_0.Bios",
        "BIOS",
        Attributes=dict(view.settings.bios),
        **{
            "@Redfish.Settings": {
                "@odata.type": "#Settings.v1_3_5.Settings",
                "SettingsObject": link(f"{path}/Settings"),
                "SupportedApplyTimes": ["OnReset"],
            }
        },
        Actions={"#Bios.ResetBios": {"target": f"{path}/Actions/Bios.ResetBios"}},
    )


def bios_settings(view: View) -> Document:
    """What the firmware's settings become when the machine is next switched on."""
    return resource(
        f"{SYSTEM}/Bios/Settings",
        "Bios.v1_2_0.Bios",
        "Pending BIOS settings",
        Attributes=dict(view.settings.bios_wanted),
    )


def bios_mistake(name: str, value: object) -> str | None:
    """Why a firmware setting cannot have a value; None where it can."""
    allowed = FIRMWARE_SETTINGS.get(name)
    if allowed is None:
        return f"there is no attribute {name}"
    return None if value in allowed else f"{name} is one of {', '.join(allowed)}"


def secure_boot(view: View) -> Document:
    """Secure Boot; a change takes effect when the machine is next switched on."""
    settings = view.settings
    return resource(
        f"{SYSTEM}/SecureBoot",
        "SecureBoot.v1_1_0.SecureBoot",
        "UEFI Secure Boot",
        SecureBootEnable=settings.secure_boot_wanted,
        SecureBootCurrentBoot="Enabled" if settings.secure_boot else "Disabled",
        SecureBootMode="UserMode" if settings.secure_boot else "SetupMode",
    )
