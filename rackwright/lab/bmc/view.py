"""What a Redfish document is made from, and the parts that all documents have."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rackwright.lab import names
from rackwright.lab.bmc.settings import Settings
from rackwright.lab.spec import BmcSpec, NodeSpec

Document = dict[str, Any]
ROOT = "/redfish/v1"
SYSTEM, MANAGER, CHASSIS = f"{ROOT}/Systems/1", f"{ROOT}/Managers/1", f"{ROOT}/Chassis/1"
SESSIONS = f"{ROOT}/SessionService/Sessions"
CD = f"{MANAGER}/VirtualMedia/Cd"
LOG = f"{MANAGER}/LogServices/SEL"
BMC_VERSION = "1.0.0"


@dataclass(frozen=True, slots=True)
class View:
    """One machine and its BMC at this moment."""

    rack: str
    node: NodeSpec
    settings: Settings
    running: bool
    faults: Mapping[str, Sequence[str]]

    @property
    def bmc(self) -> BmcSpec:
        """The declared BMC."""
        assert self.node.bmc is not None
        return self.node.bmc

    @property
    def power(self) -> str:
        """The power state that the BMC reports."""
        return "On" if self.running and "bmc:off-lies" not in self.faults else "Off"

    @property
    def serial(self) -> str:
        """Serial number of the machine."""
        return names.serial_number(self.rack, self.node.name)

    @property
    def uuid(self) -> str:
        """UUID of the machine."""
        return names.machine_uuid(self.rack, self.node.name)

    def broken(self, fault: str) -> bool:
        """Whether the machine has this fault of its power supplies or fans."""
        return fault in self.faults


def link(path: str) -> Document:
    """A reference to another resource."""
    return {"@odata.id": path}


def resource(path: str, kind: str, name: str, **members: object) -> Document:
    """A resource, with what each of them has.

    + kind: with its version, e.g. `ComputerSystem.v1_20_0.ComputerSystem`
    """
    number = path.rsplit("/", 1)[-1]
    return {"@odata.id": path, "@odata.type": f"#{kind}", "Id": number, "Name": name, **members}


def collection(path: str, kind: str, name: str, members: Sequence[str]) -> Document:
    """A collection of resources."""
    return {
        "@odata.id": path,
        "@odata.type": f"#{kind}.{kind}",
        "Name": name,
        "Members@odata.count": len(members),
        "Members": [link(f"{path}/{member}") for member in members],
    }


def status(health: str = "OK", state: str = "Enabled") -> Document:
    """Health and state of a part."""
    return {"Health": health, "State": state}


def etag(document: Document) -> str:
    """Changes with the document, and with nothing else."""
    text = json.dumps(document, sort_keys=True)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:16]}"'
