"""The agent's inventory of a machine: untrusted until it is validated here."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from rackwright.boundary import Refused, printable, printable_data

Text = Annotated[str, StringConstraints(max_length=300)]
Count = Annotated[int, Field(ge=0, le=2**63)]


class _Found(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Nic(_Found):
    """A network port."""

    name: Text
    mac: Text
    pci: Text | None = None
    driver: Text | None = None
    carrier: bool | None = None
    speed_mbps: Count | None = None


class Disk(_Found):
    """A disk; `signatures` lists its contents, sorted: filesystems, arrays, volumes, partitions."""

    path: Text
    serial: Text | None = None
    wwn: Text | None = None
    model: Text | None = None
    size_bytes: Count
    rotational: bool = False
    read_only: bool = False
    by_path: tuple[Text, ...] = Field(default=(), max_length=64)
    pci: Text | None = None
    signatures: tuple[Text, ...] = Field(default=(), max_length=1024)
    error: Text | None = None
    """Why it is unreadable; its contents are then unknown."""

    @property
    def label(self) -> str:
        """Name in messages."""
        return f"{self.path} (serial {self.serial or 'unknown'}, {self.model or 'unknown model'})"


class Pci(_Found):
    """A PCI device; class, vendor and device in hexadecimal."""

    address: Text
    vendor: Text
    device: Text
    device_class: Text = Field(alias="class")


class Dmi(_Found):
    """What the firmware reports about the machine."""

    product_uuid: Text | None = None
    product_serial: Text | None = None
    sys_vendor: Text | None = None
    product_name: Text | None = None
    bios_version: Text | None = None
    bios_date: Text | None = None
    board_serial: Text | None = None
    chassis_serial: Text | None = None


class Inventory(_Found):
    """Everything found in a machine, see docs/bare-metal.md."""

    version: Literal[1]
    dmi: Dmi
    memory_kib: Count
    cpus: Count
    cpu_model: Text | None = None
    sockets: Count | None = None
    efi: bool
    secure_boot: bool | None = None
    tpm: Text | None = None
    clock: float = 0.0
    kernel: Text | None = None
    nics: tuple[Nic, ...] = Field(max_length=256)
    disks: tuple[Disk, ...] = Field(max_length=512)
    pci: tuple[Pci, ...] = Field(default=(), max_length=4096)
    gpus: Count = 0

    @property
    def macs(self) -> frozenset[str]:
        """MAC addresses of all ports, lower case."""
        return frozenset(nic.mac.lower() for nic in self.nics)


def read_inventory(document: Any) -> Inventory:  # noqa: ANN401 - JSON data
    """The document of an agent; raises Refused."""
    try:
        return Inventory.model_validate(printable_data(document))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise Refused(f"its inventory is not valid: {place}: {printable(first['msg'], 100)}") from None
