"""Options of the snmp_exporter role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Self

from pydantic import Field, model_validator

from rackwright.documents.nearest import suggest
from rackwright.exporters import ExporterOptions, Problem
from rackwright.model.cluster import Cluster, Node
from rackwright.model.monitoring import SERVER_SECRET, Probe, Scrape
from rackwright.model.strings import NodePath
from rackwright.model.text import mistake
from rackwright.model.types import NodeRole
from rackwright.roles.snmp_exporter.devices import Auth, Device, DeviceName
from rackwright.roles.snmp_exporter.modules import MODULES

SNMP_PATH = "/snmp"


class SnmpExporterOptions(ExporterOptions):
    """snmp_exporter on the primary head, for declared switches, PDUs and UPSes."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD})
    role: ClassVar[str] = "snmp_exporter"
    software: ClassVar[str] = "snmp_exporter"
    job: ClassVar[str] = "snmp"
    secrets: ClassVar[tuple[str, ...]] = (SERVER_SECRET,)
    password_secret: ClassVar[str] = SERVER_SECRET

    port: int = Field(default=9116, ge=1, le=65535, description="TCP port on the management address.")
    devices: dict[DeviceName, Device] = Field(
        default_factory=dict,
        description="Devices by name. A switch that nodes have as `switch` has the same name here.",
    )
    auths: dict[DeviceName, Auth] = Field(default_factory=dict, description="Credentials by name.")
    module_files: tuple[NodePath, ...] = Field(
        default=(),
        description="Files with further modules, which the site puts on the head: what snmp_exporter's generator makes.",
    )
    interval_seconds: int = Field(default=60, ge=10, le=240, description="Between two readings of a device.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for name, device in self.devices.items():
            if device.auth not in self.auths:
                hint = suggest(device.auth, self.auths) or "declare it in `auths`"
                raise mistake(
                    f"{name} has the credentials {device.auth}, which `auths` does not declare.", hint
                )
            for module in device.read:
                if module not in MODULES and not self.module_files:
                    hint = suggest(module, MODULES) or f"one of: {', '.join(MODULES)}, or add `module_files`"
                    raise mistake(f"{name} names the module {module}, which rackwright does not have.", hint)
        return self

    @property
    def supplied_secrets(self) -> tuple[str, ...]:
        """Passwords and communities of devices."""
        return tuple(dict.fromkeys(name for auth in self.auths.values() for name in auth.secrets))

    def runs_on(self, node: Node) -> bool:
        """On the primary head."""
        return node.primary

    def service(self, node: Node) -> tuple[str, ...]:
        """It sends and receives, and nothing else."""
        return (
            "CapabilityBoundingSet=",
            "NoNewPrivileges=yes",
            "PrivateDevices=yes",
            "PrivateTmp=yes",
            "ProtectHome=yes",
            "ProtectSystem=strict",
        )

    def scrapes(self, cluster: Cluster, node: Node) -> tuple[Scrape, ...]:
        """Itself, and the devices: those with the same credentials and modules are one."""
        groups: dict[tuple[str, str], list[Probe]] = {}
        for name, device in self.devices.items():
            labels = _labels(cluster, name, device)
            groups.setdefault((device.auth, ",".join(device.read)), []).append(Probe(device.target, labels))
        return (
            Scrape(self.job, self.port, password_secret=self.password_secret),
            *(
                Scrape(
                    self.job,
                    self.port,
                    password_secret=self.password_secret,
                    path=SNMP_PATH,
                    interval_seconds=self.interval_seconds,
                    timeout_seconds=min(30, self.interval_seconds),
                    parameters={"auth": (auth,), "module": (modules,)},
                    probes=tuple(probes),
                )
                for (auth, modules), probes in groups.items()
            ),
        )

    def warnings(self, cluster: Cluster) -> Iterable[Problem]:
        """Communities in the clear; a device at a node's address; leaf switches that are not read."""
        for name, auth in self.auths.items():
            if auth.version == 2:
                yield f"auths.{name}", f"SNMPv2c sends the community {name} in the clear.", "use version 3"
        nodes = {entry.address: node.name for node in cluster.nodes for entry in node.addresses}
        for name, device in self.devices.items():
            if device.address in nodes:
                sentence = f"{device.address} is {nodes[device.address]}, a node, not a separate device."
                yield f"devices.{name}.address", sentence, "the address at which the device answers SNMP"
        leaves = {leaf for node in cluster.nodes for leaf in node.switches}
        asked = {name for name, device in self.devices.items() if device.kind == "switch"}
        if asked and (left := sorted(leaves - asked)):
            more = f" and {len(left) - 1} more" if left[1:] else ""
            yield "devices", f"The leaf switch {left[0]}{more} is not monitored.", "add it to `devices`"


def _labels(cluster: Cluster, name: str, device: Device) -> dict[str, str]:
    """A leaf has the label that its nodes have: one name for all leaves of a rail-optimised unit."""
    labels = {"switch" if device.kind == "switch" else "device": name, "kind": device.kind}
    units = {node.switch for node in cluster.nodes if name in node.switches and node.switch is not None}
    if device.kind == "switch" and len(units) == 1:
        labels["leaf"] = units.pop()
    if device.rack is not None:
        labels["rack"] = device.rack
    return labels
