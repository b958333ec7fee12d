"""Options of the ipoib role."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from pydantic import Field, field_validator, model_validator

from rackwright.lock.for_roles import Trouble
from rackwright.model.cluster import Cluster, Node
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.text import mistake
from rackwright.roles.ipoib import problems
from rackwright.roles.ipoib.problems import MTU_MAX

NAME_MAX = 10
"""Of the interface of a port: children add a dot and four digits, and Linux takes 15 bytes (IFNAMSIZ)."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_KERNELS_OWN = re.compile(r"ib[0-9]*|ib[opsx][0-9].*|(eth|bond|dummy|tun|tap|veth)[0-9]*|en[ospx].*")

Mode = Literal["datagram", "connected"]


class Child(Frozen):
    """An interface of a port in another partition; its name is PORT.PKEY, e.g. `ibrail0.8001`."""

    network: str | None = Field(default=None, description="Network whose address it has. None: no address.")
    rail: int = Field(default=0, ge=0, le=63, description="Rail of that network.")
    mode: Mode = Field(default="datagram", description="As of an interface.")
    mtu: int | None = Field(default=None, ge=1280, le=65520, description="None: the network's.")

    @model_validator(mode="after")
    def _fits(self) -> Child:
        _mtu_fits(self.mtu, self.mode)
        return self


class Interface(Frozen):
    """The interface of a port, in the partition at index 0 of its table (usually Default)."""

    network: str = Field(
        default="fabric", description="InfiniBand network of the cluster file, e.g. `fabric`."
    )
    rail: int = Field(default=0, ge=0, le=63, description="Rail of the network, counted from 0.")
    address: bool = Field(default=True, description="Whether it has the node's address on the network.")
    mode: Mode = Field(
        default="datagram",
        description="connected needs a driver that has it: ConnectX-4 and later have datagram alone by default "
        '(Enhanced IPoIB; Red Hat, "Configuring IPoIB", read 2026-11-25).',
    )
    mtu: int | None = Field(
        default=None,
        ge=1280,
        le=65520,
        description="None: the network's. At most 2044 in datagram mode where the partition's MTU is 2048, which is "
        "opensm's default; 4092 where it is 4096; 65520 in connected mode.",
    )
    partitions: dict[str, Child] = Field(
        default_factory=dict,
        description='Children by P_Key in quotes, bit 15 set, e.g. `"0x8001": {network: tenant1}`.',
    )

    @field_validator("partitions", mode="before")
    @classmethod
    def _have_keys(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        return {_pkey(key): child for key, child in given.items()}

    @model_validator(mode="after")
    def _fits(self) -> Interface:
        _mtu_fits(self.mtu, self.mode)
        return self


def _pkey(key: object) -> str:
    """`0x8001`, from text or a number of YAML; the kernel always sets bit 15 (ipoib_intf_alloc)."""
    try:
        value = int(key, 16) if isinstance(key, str) else key
    except ValueError:
        value = None
    if isinstance(value, bool) or not isinstance(value, int) or not 0x8001 <= value <= 0xFFFE:
        raise mistake(f"`{key}` is not the P_Key of a full member: 0x8001 to 0xfffe.", 'e.g. `"0x8001"`')
    return f"{value:#06x}"


def _mtu_fits(mtu: int | None, mode: str) -> None:
    if mtu is not None and mtu > MTU_MAX[mode]:
        raise mistake(f"In {mode} mode the MTU is at most {MTU_MAX[mode]}; this is {mtu}.", "mtu: 2044")


class IpoibOptions(RoleOptions):
    """IPoIB interfaces; addresses and MTUs are those of the cluster file's networks."""

    interfaces: dict[str, Interface] = Field(
        min_length=1, description="By name, e.g. `ibrail0: {network: fabric, rail: 0}`."
    )

    @field_validator("interfaces")
    @classmethod
    def _have_names(cls, given: dict[str, Interface]) -> dict[str, Interface]:
        for name in given:
            if not _NAME.fullmatch(name) or len(name) > NAME_MAX:
                raise mistake(
                    f"`{name}` is not a name for an interface: lower case, digits and `_`, at most {NAME_MAX} "
                    "characters, since a child's name adds five.",
                    "e.g. `ibrail0`",
                )
            if _KERNELS_OWN.fullmatch(name):
                raise mistake(
                    f"`{name}` is a name that the kernel or udev gives itself: renaming to it could fail.",
                    "e.g. `ibrail0`",
                )
        return given

    def runs_on(self, node: Node) -> bool:
        """On nodes with an address on a network of its interfaces."""
        networks = {entry.network for entry in node.addresses}
        return super().runs_on(node) and any(one.network in networks for one in self.interfaces.values())

    def problems(self, cluster: Cluster) -> Iterator[Trouble]:
        """Networks, rails, devices and partitions that the cluster does not have."""
        return problems.problems(self, cluster)

    def warnings(self, cluster: Cluster) -> Iterator[Trouble]:
        """Connected mode, which many cards lack."""
        return problems.warnings(self)
