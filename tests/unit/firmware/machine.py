"""A BMC over TLS and the node behind it: images, tasks, restarts, settings that a boot makes effective."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from rackwright.bmc.interface import Power
from rackwright.firmware.asking import Asking, Tempo
from rackwright.firmware.restart import off_and_on
from rackwright.model.firmware import Baseline, Release
from tests.factories import make_node
from tests.unit.bmc import fake

QUICK = Tempo(poll=0.01, task=3.0, away=2.0, settle=0.3, shutdown=0.5, between=0.0)
SYSTEM = "/redfish/v1/Systems/System.Embedded.1"
BIOS, SETTINGS = f"{SYSTEM}/Bios", f"{SYSTEM}/Bios/Settings"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
MANAGER = "/redfish/v1/Managers/iDRAC.Embedded.1"
UPDATES = "/redfish/v1/UpdateService"
SIMPLE, PUSH = f"{UPDATES}/Actions/UpdateService.SimpleUpdate", f"{UPDATES}/push"
INVENTORY = f"{UPDATES}/FirmwareInventory"
TASKS = "/redfish/v1/TaskService/Tasks"
TASK = f"{TASKS}/1"
BIOS_ID = "Installed-159-2.6.6__BIOS.Setup.1-1"
REGISTRY = "/redfish/v1/Registries/BiosAttributeRegistry/store"
ATTRIBUTES = [
    {"AttributeName": "ProcVirtualization", "Type": "Enumeration", "Value": [{"ValueName": "Enabled"}]},
    {"AttributeName": "SriovGlobalEnable", "Type": "Enumeration", "Value": [{"ValueName": "Enabled"}]},
    {"AttributeName": "BootMode", "Type": "Enumeration", "ReadOnly": True},
]
SAID = "Unable to verify the update package signature."


class _Faults(dict):
    """Those of the fake; while the BMC restarts, every request is cut off."""

    machine: Machine

    def get(self, key: Any, default: Any = None) -> Any:
        if self.machine.away > 0:
            self.machine.away -= 1
            return _cut_off
        return super().get(key, default)


def _cut_off(handler: Any) -> bool:
    handler.close_connection = True
    handler.connection.close()
    return True


class Machine:
    """A node that is on, and its iDRAC."""

    def __init__(self, bmc: fake.Fake) -> None:
        self.bmc = bmc
        self.away = 0
        """Requests that are cut off from now on."""
        self.away_after_update = 0
        self.states: list[dict[str, Any]] = [
            {"TaskState": "Running", "PercentComplete": 40},
            {"TaskState": "Completed"},
        ]
        """What the task says, one after the other; the last stays."""
        self.now: dict[str, str] = {}
        """Document to the version that it has as soon as the task has ended."""
        self.at_boot: dict[str, str] = {}
        """The same, once the node has booted."""
        self.stubborn: set[str] = set()
        """BIOS attributes that a boot does not set."""
        self.shuts_down = True
        self.loses_answers = False
        """Whether orders to switch the power are carried out and not answered."""
        self.boots = 0
        self.images: list[Any] = []
        self._tell()
        faults = _Faults(bmc.faults)
        faults.machine = self
        bmc.faults = faults
        bmc.fault(SIMPLE, self._update, "POST")
        bmc.fault(PUSH, self._update, "POST")
        bmc.fault(TASK, self._task)
        bmc.fault(RESET, self._reset, "POST")

    @property
    def documents(self) -> dict[str, Any]:
        """Of the BMC."""
        return self.bmc.documents

    def asking(self) -> Asking:
        """What the changes of a node ask."""
        return Asking(make_node("gpu001", 11), lambda node: self.bmc.client(), QUICK)

    def reboot(self, asking: Asking) -> None:
        """In good order."""
        off_and_on(asking)

    def power(self) -> Power:
        """As the BMC has it."""
        return Power(self.documents[SYSTEM]["PowerState"].lower())

    def _tell(self) -> None:
        self.documents["/redfish/v1/"]["Tasks"] = {"@odata.id": "/redfish/v1/TaskService"}
        self.documents["/redfish/v1/"]["Registries"] = {"@odata.id": "/redfish/v1/Registries"}
        self.documents["/redfish/v1/TaskService"] = {"Tasks": {"@odata.id": TASKS}}
        self.documents[TASKS] = {"Members": []}
        self.documents[UPDATES]["Actions"] = {"#UpdateService.SimpleUpdate": {"target": SIMPLE}}
        self.documents[BIOS]["AttributeRegistry"] = "BiosAttributeRegistry.v1_0_0"
        file = "/redfish/v1/Registries/BiosAttributeRegistry.v1_0_0"
        self.documents["/redfish/v1/Registries"] = {"Members": [{"@odata.id": file}]}
        self.documents[file] = {"Location": [{"Language": "en", "Uri": REGISTRY}]}
        self.documents[REGISTRY] = {"RegistryEntries": {"Attributes": ATTRIBUTES}}

    def _update(self, handler: Any) -> bool:
        self.images.append(self.bmc.asked[-1][2])
        self.away = self.away_after_update
        return fake.answer(handler, 202, {"Messages": []}, Location=TASK)

    def _task(self, handler: Any) -> bool:
        document = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if document["TaskState"] == "Completed":
            self._set(self.now)
        if document["TaskState"] == "gone":
            self._set(self.now)
            return fake.answer(handler, 404)
        return fake.answer(handler, 200, {"@odata.id": TASK, **document})

    def _reset(self, handler: Any) -> bool:
        kind = self.bmc.asked[-1][2]["ResetType"]
        if kind == "GracefulShutdown" and self.shuts_down:
            self.documents[SYSTEM]["PowerState"] = "Off"
        elif kind == "On":
            self.documents[SYSTEM]["PowerState"] = "On"
            self.booted()
        return _cut_off(handler) if self.loses_answers else fake.answer(handler, 204)

    def booted(self) -> None:
        """What a boot makes effective."""
        self.boots += 1
        self._set(self.at_boot)
        pending = self.documents[SETTINGS]["Attributes"]
        kept = {name: value for name, value in pending.items() if name not in self.stubborn}
        self.documents[BIOS]["Attributes"] |= kept
        self.documents[SETTINGS]["Attributes"] = {}

    def _set(self, versions: dict[str, str]) -> None:
        for path, version in versions.items():
            name = {SYSTEM: "BiosVersion", MANAGER: "FirmwareVersion"}.get(path, "Version")
            self.documents[path][name] = version


def tree() -> dict[str, Any]:
    """An iDRAC's documents, with two GPUs and a NIC in its inventory."""
    documents = copy.deepcopy(fake.tree("idrac"))
    for identity, name, version in (
        ("HGX_FW_GPU_0", "Software Inventory", "97.10"),
        ("HGX_FW_GPU_1", "Software Inventory", "97.10"),
        ("NIC.Slot.3", "ConnectX-7", ""),
    ):
        path = f"{INVENTORY}/{identity}"
        documents[path] = {"@odata.id": path, "Id": identity, "Name": name, "Version": version}
        documents[INVENTORY]["Members"].append({"@odata.id": path})
    return documents


def baseline(**changes: Any) -> Baseline:
    """BIOS 2.7.1, from a file."""
    bios = Release(version="2.7.1", url="http://images.example.com/bios.exe")
    return Baseline(**{"bios": bios, **changes})


def image(folder: Path, content: bytes = b"image") -> Path:
    """A file."""
    file = folder / "bios 1.exe"
    file.write_bytes(content)
    return file
