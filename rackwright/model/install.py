"""What is installed on a node that has no operating system yet, and over which network."""

from __future__ import annotations

from enum import StrEnum
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from rackwright.model.disks import SERIAL
from rackwright.model.options import Frozen
from rackwright.model.serials import placeholder_mistake
from rackwright.model.strings import HttpUrl
from rackwright.model.text import Address, Label, Mac, mistake


class BootWay(StrEnum):
    """How a machine gets the installer."""

    VIRTUAL_MEDIA = "virtual-media"
    """The BMC shows it a CD: nothing else on the network can answer, and the token stays between head and BMC."""
    HTTP = "http"
    """DHCP, and the firmware fetches it by UEFI HTTP boot."""
    PXE = "pxe"
    """DHCP and TFTP."""


class Installer(StrEnum):
    """A distribution's installer, answered by a generated file, in place of an image."""

    AUTOINSTALL = "autoinstall"
    """Ubuntu's."""
    KICKSTART = "kickstart"
    """Anaconda's: RHEL and its rebuilds."""
    PRESEED = "preseed"
    """Debian's."""


class Volumes(StrEnum):
    """What the root file system is made on."""

    PLAIN = "plain"
    """A partition, or the array of two."""
    LVM = "lvm"


class Encryption(StrEnum):
    """What unlocks the encrypted root at boot."""

    NONE = "none"
    TPM2 = "tpm2"
    """The machine's TPM, bound to Secure Boot's state."""
    TANG = "tang"
    """A Tang server on the network."""


def _serial(text: str) -> str:
    if not SERIAL.fullmatch(text):
        raise mistake("Not the serial number of a disk.", "`lsblk -dno PATH,SERIAL,MODEL` prints them")
    return text


def _no_placeholder(text: str) -> str:
    if (wrong := placeholder_mistake(text)) is not None:
        raise mistake(*wrong)
    return text


DiskSerial = Annotated[str, AfterValidator(_serial)]
MachineSerial = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._/+-]{0,63}$"),
    AfterValidator(_no_placeholder),
]
"""Serial number of a machine, as its firmware and its BMC print it."""
ByPath = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9:._+-]{0,200}$")]
"""A name below /dev/disk/by-path."""
KernelArgument = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+(=[A-Za-z0-9_.,:/@+-]*)?$")]
Console = Annotated[str, StringConstraints(pattern=r"^tty(S|AMA)[0-9]{1,2}(,[0-9]{4,7}[a-z0-9]{0,3})?$")]


class DiskRule(Frozen):
    """Which disks of a node get the operating system: one, or two with `mirror`. One kind of rule is set."""

    serials: tuple[DiskSerial, ...] = Field(
        default=(),
        max_length=2,
        description="Serial numbers, for a group of one node; others have `disk` in `machines`.",
    )
    by_path: tuple[ByPath, ...] = Field(
        default=(),
        max_length=2,
        description="Names below /dev/disk/by-path, e.g. `pci-0000:00:17.0-ata-1`: the same slot in each node.",
    )
    model: str | None = Field(
        default=None,
        min_length=2,
        max_length=64,
        description="Model as `lsblk -o MODEL` prints it. The node is held unless exactly the declared number has it.",
    )
    size_gb: int | None = Field(
        default=None,
        ge=4,
        le=262144,
        description="With `model`: of this size too, in GB (10^9 bytes), to 5 %.",
    )

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if sum(map(bool, (self.serials, self.by_path, self.model))) > 1:
            raise mistake(
                "The disk is declared in more than one kind of rule.", "keep one of serials, by_path, model"
            )
        if self.size_gb is not None and self.model is None:
            raise mistake("`size_gb` narrows a rule by `model`.", "add `model:`")
        return self

    @property
    def declared(self) -> bool:
        """Whether any rule is set."""
        return bool(self.serials or self.by_path or self.model)


class InstallSettings(Frozen):
    """What gets onto the disks, and how the machine is booted to put it there."""

    image: Path | None = Field(
        default=None,
        description="Folder of an image that `rackwright image build --format root` made, relative to the cluster file.",
    )
    installer: Installer | None = Field(
        default=None, description="The distribution's installer, in place of an image."
    )
    installer_files: Path | None = Field(
        default=None,
        description="With `installer`: folder with its kernel, initrd and signed boot loaders, relative to the cluster file: "
        "the mounted ISO, or debian-installer/amd64 of Debian's netboot.tar.gz.",
    )
    installer_media: HttpUrl | None = Field(
        default=None,
        description="With `autoinstall`: URL of the live-server ISO. With `kickstart`: of a tree with images/install.img. "
        "None: the base repository.",
    )
    mirror: bool = Field(
        default=False, description="The root on two disks, as md RAID1, with an EFI partition on each."
    )
    volumes: Volumes = Field(default=Volumes.PLAIN, description="`lvm`: the root is a logical volume.")
    encryption: Encryption = Field(
        default=Encryption.NONE, description="LUKS2 for the root, unlocked at boot by a TPM or a Tang server."
    )
    tang: HttpUrl | None = Field(default=None, description="The Tang server, with `encryption: tang`.")
    diskless: bool = Field(
        default=False, description="The whole image in memory at each boot; no disk is written."
    )
    secure_boot: bool = Field(
        default=True,
        description="Whether the machine boots with Secure Boot, which is compared before and after.",
    )
    boot: BootWay = Field(default=BootWay.VIRTUAL_MEDIA, description="How the machine gets the installer.")
    console: Console | None = Field(default="ttyS0,115200", description="Serial console of the kernel.")
    kernel_arguments: tuple[KernelArgument, ...] = Field(
        default=(),
        description="Of the kernels of agent and installer, and of the installed one from its first boot on; the role kernel "
        "declares those of a running node.",
    )
    vlan: int | None = Field(
        default=None,
        ge=1,
        le=4094,
        description="VLAN of the management network, where it is tagged at the node. Another boot network is untagged there.",
    )
    bond: tuple[Mac, ...] = Field(
        default=(),
        max_length=8,
        description="MACs of further ports that form an LACP bond with the declared one.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.image is not None and self.installer is not None:
            raise mistake("Both an image and an installer are declared.", "keep one of them")
        if self.installer is None and (self.installer_files is not None or self.installer_media is not None):
            raise mistake(
                "Files of an installer are declared, and no installer.",
                "e.g. `installer: preseed`, or remove them",
            )
        if (self.tang is not None) != (self.encryption is Encryption.TANG):
            raise mistake(
                "A Tang server goes with `encryption: tang`, and that with a server.",
                "e.g. `tang: http://10.1.0.5`",
            )
        if self.diskless and (self.mirror or self.installer or self.encryption is not Encryption.NONE):
            raise mistake("A diskless node has neither an array, an installer nor encryption.", "remove them")
        if self.diskless and self.volumes is not Volumes.PLAIN:
            raise mistake("A diskless node has no volumes.", "remove `volumes:`")
        return self


class Install(InstallSettings):
    """How one node is installed; paths are absolute, and the disk rule is the node's own."""

    disk: DiskRule = DiskRule()

    @property
    def disks(self) -> int:
        """How many disks it takes."""
        return 0 if self.diskless else 2 if self.mirror else 1


class BootNetworkSection(Frozen):
    """The network on which machines without an operating system reach this control node."""

    network: Label | None = Field(
        default=None, description="Its name among `networks`. None: the management network."
    )
    server: Address = Field(
        description="Address of the control node in that network; machines fetch their image there."
    )
    bmc_server: Address | None = Field(
        default=None, description="Address of the control node that BMCs can reach. None: `server`."
    )
    port: int = Field(
        default=8443, ge=1, le=65535, description="Port of HTTPS on both addresses, while an install runs."
    )
    answers_port: int = Field(
        default=8480,
        ge=1,
        le=65535,
        description="Port of plain HTTP on `server`, while nodes are installed by their distribution's installer.",
    )
    http_port: int = Field(
        default=8080,
        ge=1,
        le=65535,
        description="Port of plain HTTP on `server`, for machines of `boot: http`, while an install runs.",
    )
    token_minutes: int = Field(
        default=30,
        ge=1,
        le=1440,
        description="Life of the one-time token that a booted machine shows, and of the session that an installer fetches.",
    )
    hold_minutes: int = Field(
        default=30, ge=1, le=1440, description="How long a machine that is held waits for a confirmation."
    )
    at_once: int = Field(default=16, ge=1, le=512, description="Machines installed at the same time.")
    rack_percent: int = Field(
        default=100,
        ge=1,
        le=100,
        description="Share of the nodes of one rack installed at the same time; at least one.",
    )

    @model_validator(mode="after")
    def _two_ports(self) -> Self:
        if self.answers_port == self.port:
            raise mistake(
                "`port` and `answers_port` are the same.", "remove one of them: 8443 and 8480 are used then"
            )
        return self


class BootNetwork(BootNetworkSection):
    """The same, resolved."""

    network: str
    bmc_server: IPv4Address
