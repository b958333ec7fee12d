"""What to install on a node without an operating system, and over which network."""

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
    """How a machine boots the installer."""

    VIRTUAL_MEDIA = "virtual-media"
    """The BMC presents it as a CD: nothing else on the network can answer, and the token stays between head and BMC."""
    HTTP = "http"
    """DHCP; the firmware downloads it by UEFI HTTP boot."""
    PXE = "pxe"
    """DHCP and TFTP."""


class Installer(StrEnum):
    """A distribution's installer, run with a generated answer file, instead of an image."""

    AUTOINSTALL = "autoinstall"
    """Ubuntu's."""
    KICKSTART = "kickstart"
    """Anaconda's, for RHEL and its rebuilds."""
    PRESEED = "preseed"
    """Debian's."""


class Volumes(StrEnum):
    """What holds the root file system."""

    PLAIN = "plain"
    """A partition, or an array of two."""
    LVM = "lvm"


class Encryption(StrEnum):
    """What unlocks the encrypted root at boot."""

    NONE = "none"
    TPM2 = "tpm2"
    """The machine's TPM, bound to the Secure Boot state."""
    TANG = "tang"
    """A Tang server on the network."""


def _serial(text: str) -> str:
    if not SERIAL.fullmatch(text):
        raise mistake("Not a valid disk serial number.", "`lsblk -dno PATH,SERIAL,MODEL` lists them")
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
    """Selects the disks for the operating system: one, or two with `mirror`. Set only one kind of rule."""

    serials: tuple[DiskSerial, ...] = Field(
        default=(),
        max_length=2,
        description="Disk serial numbers, for a group of one node; larger groups set `disk` in `machines`.",
    )
    by_path: tuple[ByPath, ...] = Field(
        default=(),
        max_length=2,
        description="Names in /dev/disk/by-path, e.g. `pci-0000:00:17.0-ata-1`: the same slot in each node.",
    )
    model: str | None = Field(
        default=None,
        min_length=2,
        max_length=64,
        description="Model as `lsblk -o MODEL` prints it. Install stops unless exactly the needed number of disks match.",
    )
    size_gb: int | None = Field(
        default=None,
        ge=4,
        le=262144,
        description="With `model`: disk size in GB (10^9 bytes), matched to 5 %.",
    )

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if sum(map(bool, (self.serials, self.by_path, self.model))) > 1:
            raise mistake(
                "The disk is declared by more than one kind of rule.", "keep one of serials, by_path, model"
            )
        if self.size_gb is not None and self.model is None:
            raise mistake("`size_gb` needs `model`.", "add `model:`")
        return self

    @property
    def declared(self) -> bool:
        """Whether any rule is set."""
        return bool(self.serials or self.by_path or self.model)


class InstallSettings(Frozen):
    """What to write to the disks, and how to boot the machine for it."""

    image: Path | None = Field(
        default=None,
        description="Image folder from `rackwright image build --format root`, relative to the cluster file.",
    )
    installer: Installer | None = Field(
        default=None, description="The distribution's installer, instead of an image."
    )
    installer_files: Path | None = Field(
        default=None,
        description="With `installer`: folder with its kernel, initrd and signed boot loaders, relative to the cluster file: "
        "the mounted ISO, or debian-installer/amd64 from Debian's netboot.tar.gz.",
    )
    installer_media: HttpUrl | None = Field(
        default=None,
        description="With `autoinstall`: URL of the live-server ISO. With `kickstart`: URL of a tree with "
        "images/install.img. None: the base repository.",
    )
    mirror: bool = Field(
        default=False, description="Mirror the root on two disks (md RAID1), with an EFI partition on each."
    )
    volumes: Volumes = Field(default=Volumes.PLAIN, description="`lvm`: put the root on a logical volume.")
    encryption: Encryption = Field(
        default=Encryption.NONE,
        description="Encrypt the root with LUKS2, unlocked at boot by a TPM or a Tang server.",
    )
    tang: HttpUrl | None = Field(default=None, description="URL of the Tang server, with `encryption: tang`.")
    diskless: bool = Field(
        default=False, description="Load the whole image into memory at each boot; no disk is written."
    )
    secure_boot: bool = Field(
        default=True,
        description="Whether the machine boots with Secure Boot; compared before and after the installation.",
    )
    boot: BootWay = Field(default=BootWay.VIRTUAL_MEDIA, description="How the machine boots the installer.")
    console: Console | None = Field(default="ttyS0,115200", description="Serial console of the kernel.")
    kernel_arguments: tuple[KernelArgument, ...] = Field(
        default=(),
        description="Kernel arguments of the agent and installer, and of the installed kernel on its first boot; the role "
        "kernel declares those of a running node.",
    )
    vlan: int | None = Field(
        default=None,
        ge=1,
        le=4094,
        description="VLAN of the management network if it is tagged at the node. Any other boot network is untagged there.",
    )
    bond: tuple[Mac, ...] = Field(
        default=(),
        max_length=8,
        description="MAC addresses of further ports that form an LACP bond with the declared one.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.image is not None and self.installer is not None:
            raise mistake("Both `image` and `installer` are set.", "keep one of them")
        if self.installer is None and (self.installer_files is not None or self.installer_media is not None):
            raise mistake(
                "`installer_files` or `installer_media` is set without `installer`.",
                "set e.g. `installer: preseed`, or remove them",
            )
        if (self.tang is not None) != (self.encryption is Encryption.TANG):
            raise mistake(
                "`tang` and `encryption: tang` must be set together.",
                "e.g. `tang: http://10.1.0.5`",
            )
        if self.diskless and (self.mirror or self.installer or self.encryption is not Encryption.NONE):
            raise mistake("A diskless node cannot have an array, an installer or encryption.", "remove them")
        if self.diskless and self.volumes is not Volumes.PLAIN:
            raise mistake("A diskless node cannot have volumes.", "remove `volumes:`")
        return self


class Install(InstallSettings):
    """How to install one node; paths are absolute, and the disk rule applies to this node."""

    disk: DiskRule = DiskRule()

    @property
    def disks(self) -> int:
        """Number of disks it needs."""
        return 0 if self.diskless else 2 if self.mirror else 1


class BootNetworkSection(Frozen):
    """The network on which machines without an operating system reach this control node."""

    network: Label | None = Field(
        default=None, description="Name of the network in `networks`. None: the management network."
    )
    server: Address = Field(
        description="Address of the control node on that network; machines download their image from it."
    )
    bmc_server: Address | None = Field(
        default=None, description="Address of the control node that BMCs can reach. None: `server`."
    )
    port: int = Field(
        default=8443, ge=1, le=65535, description="HTTPS port on both addresses during an install."
    )
    answers_port: int = Field(
        default=8480,
        ge=1,
        le=65535,
        description="Plain HTTP port on `server` while distribution installers run.",
    )
    http_port: int = Field(
        default=8080,
        ge=1,
        le=65535,
        description="Plain HTTP port on `server` for machines with `boot: http`, during an install.",
    )
    token_minutes: int = Field(
        default=30,
        ge=1,
        le=1440,
        description="Lifetime of the one-time token that a booted machine presents, and of an installer's session.",
    )
    hold_minutes: int = Field(
        default=30, ge=1, le=1440, description="How long a machine on hold waits for confirmation."
    )
    at_once: int = Field(default=16, ge=1, le=512, description="Machines installed at the same time.")
    rack_percent: int = Field(
        default=100,
        ge=1,
        le=100,
        description="Share of a rack's nodes installed at the same time; at least one node.",
    )

    @model_validator(mode="after")
    def _two_ports(self) -> Self:
        if self.answers_port == self.port:
            raise mistake(
                "`port` and `answers_port` are the same.",
                "remove one of them: the defaults are 8443 and 8480",
            )
        return self


class BootNetwork(BootNetworkSection):
    """The resolved boot network."""

    network: str
    bmc_server: IPv4Address
