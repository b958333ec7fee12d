"""Inputs and results of answer generation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from rackwright.errors import InstallError
from rackwright.model.authorized_keys import public_key
from rackwright.model.cluster import Cluster, Node
from rackwright.model.disks import SERIAL
from rackwright.model.install import Encryption, Install
from rackwright.model.plain_text import mistake_in

ONCE = "once"
"""File with the session and the recovery key. It is served once; the answers are not secret."""
_TOKEN = re.compile(r"[A-Za-z0-9_.~+/=-]{8,200}")
_RUN = re.compile(r"[a-z0-9]{4,40}")
_HEAD = re.compile(r"https://[0-9.]{7,15}(:[0-9]{1,5})?")
_FOLDER = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?/([A-Za-z0-9._~-]+/)+")
_PEM = re.compile(r"(-----BEGIN CERTIFICATE-----\n([A-Za-z0-9+/=]+\n)+-----END CERTIFICATE-----\n)+")


@dataclass(frozen=True)
class OsDisk:
    """A disk for the operating system, as found and approved."""

    path: str
    """Device in the signatures; it may change at the next boot, so disks are never looked up by it."""
    serial: str
    signatures: tuple[str, ...] = ()
    """Allowed contents, as the agent prints them (`/dev/sda1:ext4:root`); anything else ends the installation."""
    by_path: str | None = None
    """Name in /dev/disk/by-path that must also lead to it."""


@dataclass(frozen=True)
class Request:
    """One installation of one node."""

    cluster: Cluster
    node: Node
    run: str
    disks: tuple[OsDisk, ...]
    admin_key: str
    """Public key of `ssh.user`, a line of authorized_keys without options."""
    head: str
    """Where the node sends its report, e.g. `https://10.77.0.1:8443`."""
    ca: str
    """PEM of the CA that signed the head's certificate."""
    files_url: str
    """Random folder of this node's files; ends with a slash."""
    session: str = field(repr=False)
    recovery: str | None = field(default=None, repr=False)
    """Passphrase of an encrypted root, if the TPM or the Tang server fails."""
    media: str | None = None
    """URL of the live-server ISO (autoinstall) or of a tree with images/ (kickstart); None: on the boot medium."""
    nameservers: tuple[IPv4Address, ...] = ()

    def __post_init__(self) -> None:
        """Reject values that no caller may pass: each goes into scripts, on a separate line."""
        for name, value, form in (
            ("run", self.run, _RUN),
            ("head", self.head, _HEAD),
            ("files_url", self.files_url, _FOLDER),
            ("session", self.session, _TOKEN),
            ("recovery", self.recovery or "recovery", _TOKEN),
            ("ca", self.ca, _PEM),
        ):
            if not form.fullmatch(value):
                raise ValueError(f"{name} is malformed")  # the value may be secret
        public_key(self.admin_key)
        if (wrong := mistake_in(self.admin_key, what="administrator's key")) is not None:
            raise ValueError(wrong[0])
        for disk in self.disks:
            if not SERIAL.fullmatch(disk.serial):
                raise ValueError(f"{disk.serial!r} is not a valid disk serial number")
        if (self.recovery is not None) != (self.install.encryption is not Encryption.NONE):
            raise ValueError("a recovery key needs an encrypted root")

    @property
    def install(self) -> Install:
        """The `install` declaration; InstallError if there is none."""
        if self.node.install is None or self.node.install.installer is None:
            raise InstallError(
                f"{self.node.name} declares no installer.",
                hint=f"set `install: {{installer: {self.node.os.installer}}}`",
            )
        return self.node.install


@dataclass(frozen=True)
class Answers:
    """What the head serves for one installation."""

    files: Mapping[str, str]
    """Name in the random folder to content. Only `ONCE` is secret."""
    kernel_arguments: str
    """Kernel arguments of the installer's boot."""
