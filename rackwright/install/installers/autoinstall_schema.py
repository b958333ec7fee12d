"""The part of autoinstall that we write, strict: subiquity ignores misspelt keys, and some wrong storage types.

Only from the public references, read 2026-11-27: Autoinstall configuration reference manual, curtin's storage and
apt_source topics, netplan's YAML configuration. Subiquity's own JSON Schema is AGPL and is not used here.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address, ip_interface
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

Size = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*[MG]$")]
Id = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
Mac = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2}:){5}[0-9a-f]{2}$")]
Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s\"']+$")]
Path = Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9./_-]*$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=False)


class Match(_Strict):
    """Globs over udev properties; all must match."""

    path: str | None = Field(default=None, min_length=1)
    serial: str | None = Field(default=None, min_length=1)


class Disk(_Strict):
    """A whole disk."""

    id: Id
    type: Literal["disk"]
    ptable: Literal["gpt"]
    wipe: Literal["superblock", "superblock-recursive"]
    match: Match
    grub_device: Literal[False]


class Partition(_Strict):
    """-1 takes the remaining space."""

    id: Id
    type: Literal["partition"]
    device: Id
    number: int = Field(ge=1, le=128)
    size: Size | Literal[-1]
    wipe: Literal["superblock"]
    flag: Literal["boot"] | None = None
    grub_device: bool = False


class Raid(_Strict):
    """An md array."""

    id: Id
    type: Literal["raid"]
    name: Name
    raidlevel: Literal[1]
    devices: list[Id] = Field(min_length=2, max_length=2)


class DmCrypt(_Strict):
    """A LUKS volume; `key` would put the passphrase into the file."""

    id: Id
    type: Literal["dm_crypt"]
    volume: Id
    dm_name: Name
    keyfile: Path


class VolumeGroup(_Strict):
    """An LVM volume group."""

    id: Id
    type: Literal["lvm_volgroup"]
    name: Name
    devices: list[Id] = Field(min_length=1)


class Volume(_Strict):
    """A logical volume."""

    id: Id
    type: Literal["lvm_partition"]
    name: Name
    volgroup: Id
    size: Size | Literal[-1]


class Format(_Strict):
    """A file system."""

    id: Id
    type: Literal["format"]
    volume: Id
    fstype: Literal["ext4", "fat32"]


class Mount(_Strict):
    """An entry of fstab."""

    id: Id
    type: Literal["mount"]
    device: Id
    path: Path


Action = Annotated[
    Disk | Partition | Raid | DmCrypt | VolumeGroup | Volume | Format | Mount, Field(discriminator="type")
]


class Swap(_Strict):
    """0: no swap file."""

    size: Literal[0]


class Storage(_Strict):
    """Actions in execution order."""

    swap: Swap
    config: list[Action] = Field(min_length=1)


class _Addressed(_Strict):
    addresses: list[str] = Field(default_factory=list)
    dhcp4: Literal[False] = False
    dhcp6: Literal[False] = False
    link_local: list[str] | None = Field(default=None, alias="link-local")
    mtu: int | None = Field(default=None, ge=576, le=65535)
    routes: list[dict[Literal["to", "via"], str]] = Field(default_factory=list)
    nameservers: dict[Literal["addresses"], list[str]] | None = None


class MacMatch(_Strict):
    """A port is matched only by its MAC."""

    macaddress: Mac


class Ethernet(_Addressed):
    """A port."""

    match: MacMatch


class Bond(_Addressed):
    """LACP."""

    interfaces: list[str] = Field(min_length=2)
    parameters: dict[Literal["mode", "mii-monitor-interval", "transmit-hash-policy"], str | int]


class NetworkConfig(_Strict):
    """Netplan, version 2."""

    version: Literal[2]
    ethernets: dict[str, Ethernet] = Field(min_length=1)
    bonds: dict[str, Bond] = Field(default_factory=dict)


class Mirror(_Strict):
    """An archive for some architectures."""

    arches: list[str]
    uri: Url


class Apt(_Strict):
    """apt's sources and proxy."""

    preserve_sources_list: bool
    geoip: bool
    primary: list[Mirror] = Field(default_factory=list)
    security: list[Mirror] = Field(default_factory=list)
    http_proxy: Url | None = None


class Ssh(_Strict):
    """User and key are not set through subiquity."""

    install_server: Literal[True] = Field(alias="install-server")
    allow_pw: Literal[False] = Field(alias="allow-pw")


class Autoinstall(_Strict):
    """The top level."""

    version: Literal[1]
    early_commands: list[str] = Field(alias="early-commands", min_length=1)
    locale: str
    keyboard: dict[Literal["layout"], str]
    refresh_installer: dict[Literal["update"], bool] = Field(alias="refresh-installer")
    network: NetworkConfig
    apt: Apt
    storage: Storage
    ssh: Ssh
    packages: list[str]
    drivers: dict[Literal["install"], bool]
    timezone: str
    updates: Literal["security", "all"]
    shutdown: Literal["poweroff"]
    user_data: dict[Literal["users", "ssh_deletekeys"], list[str] | bool] = Field(alias="user-data")
    late_commands: list[str] = Field(alias="late-commands", min_length=1)
    error_commands: list[str] = Field(alias="error-commands", min_length=1)


class Document(_Strict):
    """user-data."""

    autoinstall: Autoinstall


def mistakes(text: str) -> list[str]:
    """What is wrong with user-data, each with its location; empty if it is valid."""
    if not text.startswith("#cloud-config\n"):
        return ["the first line is not #cloud-config"]
    try:
        document = Document.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        return [f"not YAML: {str(error).splitlines()[0]}"]
    except ValidationError as error:
        return [
            f"{'.'.join(map(str, one['loc']))}: {one['msg']}"
            for one in error.errors(include_url=False, include_input=False)
        ]
    found = document.autoinstall
    return [*_storage(found.storage.config), *_network(found.network)]


def _references(action: Any) -> list[str]:  # noqa: ANN401 - one of the union
    single = (getattr(action, key, None) for key in ("device", "volume", "volgroup"))
    return [one for one in (*single, *getattr(action, "devices", ())) if one is not None]


def _storage(actions: list[Any]) -> Iterator[str]:
    seen: dict[str, Any] = {}
    for action in actions:
        if action.id in seen:
            yield f"storage: the id {action.id} appears twice"
        yield from (
            f"storage: {action.id} refers to {one}, which is not defined before it"
            for one in _references(action)
            if one not in seen
        )
        seen[action.id] = action
    disks = [one for one in actions if isinstance(one, Disk)]
    for disk in disks:
        parts = [one for one in actions if isinstance(one, Partition) and one.device == disk.id]
        if disk.match.path is None and disk.match.serial is None:
            yield f"storage: {disk.id} matches any disk"
        loaders = [one.id for one in parts if one.grub_device]
        if len(loaders) != 1 or any(one.grub_device and one.flag != "boot" for one in parts):
            yield f"storage: {disk.id} needs one EFI partition with grub_device, but has: {', '.join(loaders) or 'none'}"
        if any(one.size == -1 for one in parts[:-1]):
            yield f"storage: a partition of {disk.id} takes the remaining space, but is not the last"
    if len({(one.match.path, one.match.serial) for one in disks}) != len(disks):
        yield "storage: two disks have the same match"
    paths = sorted(one.path for one in actions if isinstance(one, Mount))
    if paths != ["/", "/boot", "/boot/efi"]:
        yield f"storage: the mount points are {', '.join(paths) or 'none'}, but must be /, /boot and /boot/efi"


def _network(network: NetworkConfig) -> Iterator[str]:
    for name, bond in network.bonds.items():
        yield from (
            f"network: {name} refers to {one}, which is not a port"
            for one in bond.interfaces
            if one not in network.ethernets
        )
    addressed = [one for one in (*network.ethernets.values(), *network.bonds.values()) if one.addresses]
    if len(addressed) != 1:
        yield f"network: {len(addressed)} interfaces have an address; exactly one must"
    for one in addressed:
        try:
            for address in one.addresses:
                ip_interface(address)
            for route in one.routes:
                ip_address(route["via"])
        except ValueError as error:
            yield f"network: {error}"
