"""Redfish's documents of the service: its root, sessions, tasks and firmware versions."""

from __future__ import annotations

from rackwright.lab import racked
from rackwright.lab.bmc.sessions import IDLE_SECONDS, Session
from rackwright.lab.bmc.view import (
    BMC_VERSION,
    ROOT,
    SESSIONS,
    Document,
    View,
    collection,
    link,
    resource,
    status,
)

_FIRMWARE = {"BIOS": racked.BIOS_VERSION, "BMC": BMC_VERSION}


def versions() -> Document:
    """The protocol's versions."""
    return {"v1": f"{ROOT}/"}


def root(view: View) -> Document:
    """The beginning, which needs no password and names no serial number."""
    return {
        "@odata.id": f"{ROOT}/",
        "@odata.type": "#ServiceRoot.v1_16_0.ServiceRoot",
        "Id": "RootService",
        "Name": "Root service",
        "RedfishVersion": "1.18.0",
        "UUID": view.uuid,
        "Vendor": "rackwright",
        "Product": "rackwright lab BMC",
        "ProtocolFeaturesSupported": {"TopSkipQuery": True},
        "Systems": link(f"{ROOT}/Systems"),
        "Managers": link(f"{ROOT}/Managers"),
        "Chassis": link(f"{ROOT}/Chassis"),
        "SessionService": link(f"{ROOT}/SessionService"),
        "UpdateService": link(f"{ROOT}/UpdateService"),
        "Tasks": link(f"{ROOT}/TaskService"),
        "Registries": link(f"{ROOT}/Registries"),
        "Links": {"Sessions": link(SESSIONS)},
    }


def odata() -> Document:
    """The service document of OData."""
    named = ("Systems", "Managers", "Chassis", "SessionService", "UpdateService", "TaskService")
    value = [{"name": name, "kind": "Singleton", "url": f"{ROOT}/{name}"} for name in named]
    return {"@odata.context": f"{ROOT}/$metadata", "value": value}


def session_service(_: View) -> Document:
    """How long a session lives."""
    return resource(
        f"{ROOT}/SessionService",
        "SessionService.v1_1_9.SessionService",
        "Sessions",
        ServiceEnabled=True,
        SessionTimeout=int(IDLE_SECONDS),
        Sessions=link(SESSIONS),
        Status=status(),
    )


def sessions(numbers: list[str]) -> Document:
    """The sessions that are open."""
    return collection(SESSIONS, "SessionCollection", "Sessions", numbers)


def session(number: str, one: Session) -> Document:
    """One session; its token is in no document."""
    kind = "Session.v1_6_0.Session"
    return resource(f"{SESSIONS}/{number}", kind, "Session", UserName=one.user, CreatedTime=one.created)


def update_service(_: View) -> Document:
    """Firmware versions alone: nothing can be updated."""
    path = f"{ROOT}/UpdateService"
    return resource(
        path,
        "UpdateService.v1_14_0.UpdateService",
        "Updates",
        ServiceEnabled=False,
        Actions={},
        FirmwareInventory=link(f"{path}/FirmwareInventory"),
        Status=status(state="Disabled"),
    )


def inventory(_: View) -> Document:
    """The parts that have firmware."""
    path = f"{ROOT}/UpdateService/FirmwareInventory"
    return collection(path, "SoftwareInventoryCollection", "Firmware", list(_FIRMWARE))


def firmware(_: View, name: str) -> Document | None:
    """The firmware of one part."""
    if name not in _FIRMWARE:
        return None
    return resource(
        f"{ROOT}/UpdateService/FirmwareInventory/{name}",
        "SoftwareInventory.v1_10_2.SoftwareInventory",
        name,
        Version=_FIRMWARE[name],
        Updateable=False,
        Status=status(),
    )


def task_service(_: View) -> Document:
    """There are no tasks: each action is over when it is answered."""
    path = f"{ROOT}/TaskService"
    tasks = link(f"{path}/Tasks")
    return resource(path, "TaskService.v1_2_1.TaskService", "Tasks", ServiceEnabled=True, Tasks=tasks)


def tasks(_: View) -> Document:
    """No tasks."""
    return collection(f"{ROOT}/TaskService/Tasks", "TaskCollection", "Tasks", [])


def registries(_: View) -> Document:
    """No message registries: messages are in the answers."""
    return collection(f"{ROOT}/Registries", "MessageRegistryFileCollection", "Registries", [])
