"""What roles may ask of an operating-system family; `debian` and `el` implement it.

A family is one class that sets every attribute below (tests/unit/osfamily checks it), and its instance is
listed in `known`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from rackwright.osfamily.names import Names

LOCK_WAIT_SECONDS = 300
KERNEL_SETTINGS = "90-rackwright-kernel.cfg"
"""What the kernel boots with, in a family's `grub_folder`: last, so that it wins over what images bring."""


@dataclass(frozen=True)
class PackageChange:
    """Packages to install or remove, by name and version.

    `unhold` are held ones that are to move or go; `hold` are kept where they are afterwards. With
    nothing wanted, only holds are set. `must_update`: the package index has to be read first.
    """

    verb: Literal["install", "remove"]
    packages: Mapping[str, str | None]
    start_daemons: bool = True
    build_modules: bool = True
    must_update: bool = False
    unhold: Sequence[str] = ()
    hold: Mapping[str, str | None] | None = None
    wait_seconds: int = LOCK_WAIT_SECONDS
    """How long to wait for another installation on the node."""


class Family(ABC):
    """Package tool, paths, commands and names of software that all releases of a family share."""

    name: ClassVar[str]
    """As in package tables, in file names of templates and in questions to the fact helper."""
    software: ClassVar[Mapping[str, Names]]
    """Names by software; read with rackwright.osfamily.names.names."""

    # packages
    package_tool: ClassVar[Literal["apt", "dnf"]]
    query_self: ClassVar[str]
    """A query that a working query tool always answers: for its own package, `query_owner`."""
    query_owner: ClassVar[str]
    held: ClassVar[str]
    """Shell that prints the names of packages that no upgrade moves."""
    apptainer_source: ClassVar[Literal["release", "epel"]]
    """Where packages of Apptainer come from: files of the project's releases, or EPEL."""
    dcgm_epoch: ClassVar[str]
    """What NVIDIA's packages of DCGM put before their version."""

    # boot
    grub_folder: ClassVar[str | None]
    """Settings of GRUB's menu, one file each. None: kernel arguments are kept by grubby."""
    next_arguments: ClassVar[str]
    """Shell that prints the kernel arguments of the next boot, in one line."""
    nvidia_modules_renamed: ClassVar[bool]
    """Whether the distribution's own NVIDIA packages install the modules under other names."""

    # system
    locale_gen: ClassVar[str | None]
    """The list of locales that package updates generate again; None: there is none."""
    locale_link: ClassVar[str | None]
    """A second name of /etc/locale.conf; None: there is none."""
    timezone_file: ClassVar[str | None]
    """A file with the timezone's name, which some programs read; None: only the link is read."""
    has_firewalld: ClassVar[bool]
    has_networkmanager: ClassVar[bool]
    """Whether NetworkManager writes /etc/resolv.conf unless it is configured not to."""
    has_selinux: ClassVar[bool]
    has_crypto_policies: ClassVar[bool]
    """Whether the site chooses algorithms for all programs with update-crypto-policies."""

    # certificates that all programs trust
    trust_folder: ClassVar[str]
    """Where the site adds certificates of CAs, one file each, with a name that ends in `.crt`."""
    trust_bundle: ClassVar[str]
    """What is built of them and the distribution's own: every trusted certificate, PEM."""
    trust_update: ClassVar[str]
    """The command that builds it."""

    def __str__(self) -> str:
        return self.name

    @abstractmethod
    def package_query(self, packages: Sequence[str]) -> str:
        """Shell that prints the state of packages, as rackwright.facts.packages reads it."""

    @abstractmethod
    def package_change(self, change: PackageChange) -> str:
        """Shell that installs or removes packages, one at a time on a node."""

    @abstractmethod
    def unhold(self, packages: Sequence[str]) -> str:
        """The command that lets upgrades move packages again."""

    @abstractmethod
    def database_query(self) -> str | None:
        """Shell that prints what is broken in the package database, as rackwright.facts.package_database reads it.

        None: nothing of the kind is read quickly.
        """

    @abstractmethod
    def database_repair(
        self, install: Sequence[str], remove: Sequence[str], *, simulated: bool, wait_seconds: int
    ) -> str:
        """Shell that repairs it by installing and removing these packages and no other."""

    @abstractmethod
    def package_file(self, name: str, version: str, cpu: str) -> str:
        """The file name of a package, e.g. `enroot_3.5.0-1_amd64.deb`."""

    @abstractmethod
    def initramfs(self, kernel: str) -> tuple[str, str]:
        """The path of a kernel's initramfs, and the command that builds it anew."""

    @abstractmethod
    def kernel_release(self, text: str, cpu: str) -> str | None:
        """A kernel as uname -r prints it, from what an operator wrote; None: not a kernel of this family."""

    @abstractmethod
    def kernel_of(self, package: str, version: str, cpu: str) -> str | None:
        """The release of the usual kernel that a package of an index boots; None for any other package."""

    @abstractmethod
    def boots(self, kernel: str) -> tuple[str, str]:
        """Shell that prints this kernel where it boots by default, and the command that makes it so."""

    @abstractmethod
    def with_large_pages(self, kernel: str) -> str | None:
        """The flavour of a kernel with 64 KiB pages (Arm); None: the name must include the flavour."""

    @abstractmethod
    def arguments_left(self, arguments: Sequence[str]) -> str:
        """Shell that prints a line for what an earlier declaration added to the next boot and this one has not."""

    @abstractmethod
    def put_arguments(self, arguments: Sequence[str], remove: Sequence[str]) -> str:
        """The command that gives the next boot these arguments, and takes those named `remove`, or left, out."""
