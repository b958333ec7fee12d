"""What roles may ask of one release of an operating system; its tables are in `debian` and `el`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rackwright.osfamily.family import Family


@dataclass(frozen=True)
class NvidiaRepository:
    """NVIDIA's CUDA repository for one release."""

    folder: str
    key_file: str
    fingerprint: str

    def url(self, cpu: str) -> str:
        """Its place for one CPU architecture."""
        base = "https://developer.download.nvidia.com/compute/cuda/repos"
        return f"{base}/{self.folder}/{'sbsa' if cpu == 'aarch64' else cpu}/"


@dataclass(frozen=True)
class RepositoryFile:
    """A file of dnf repositories that rackwright writes where the cluster has a mirror."""

    title: str
    path: str
    key: str
    repositories: dict[str, str]
    """Repository id to its path below the mirror."""
    shipped: bool
    """The distribution's own file: without a mirror it stays as installed."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Release:
    """One release. There is one object of each, so they are compared by identity."""

    id: str
    """As the cluster file names it, e.g. `debian-12`."""
    family: Family

    tuned_profiles: str
    """Where tuned looks for profiles of the site: it moved with tuned 2.24 (EL 9 kept the old place)."""
    network: Literal["networkd", "netplan", "networkmanager"]
    """What configures the network on its servers."""
    installer: Literal["autoinstall", "kickstart", "preseed"]
    """The format of the answers that its installer reads."""
    networkd_makes_ipoib: bool = True
    """Whether its systemd-networkd, where that is used, has [IPoIB] settings: from systemd 250 on (systemd's pull
    request 21563, merged in December 2021, and systemd.netdev(5) of 252; read 2026-11-25)."""
    sshd_has_penalties: bool
    """Whether sshd (from OpenSSH 9.8) blocks addresses after failed logins, and takes exemptions."""
    sssd_conf: tuple[str, str] = ("600", "root")
    """Mode and group of sssd.conf. sssd.service of SSSD 2.10 and newer lets its group read it when it starts (Debian
    13's unit, sssd 2.10.1, read 2026-11-26); earlier ones refuse other modes than 600 (sssd.conf(5) of 2.9)."""
    slurm: str | None
    """The Slurm release its archive, or EPEL, ships; None: not known."""
    podman: tuple[str, ...]
    """Packages of podman, its runtime and its network tools."""
    container_daemons: Mapping[str, tuple[str, ...]]
    """Packages of the distribution's own `docker` and `containerd`; () where it has none."""
    docker_archive: str
    """The folder of Docker's own archive."""
    nvidia: NvidiaRepository
    kernel_headers: tuple[str, ...]
    """Headers of the usual kernel, by the names of x86_64."""
    kernel_index: str | None
    """Index of the archive that kernels are updated from; {cpu} and {deb} are filled in. None: none is public."""

    codename: str = ""
    """Of the apt archive's suites."""
    archive_keyring: str | None = None
    components: tuple[str, ...] = ()
    security_in_archive: bool = False
    """Whether the archive itself carries the security suite."""
    has_ppas: bool = False
    repository_files: tuple[RepositoryFile, ...] = ()
    has_module_streams: bool = False
    """Whether dnf has module streams, which NVIDIA's repository uses for driver branches."""
    ceph: int | None = None
    """Major release of the archive's ceph-common; None: it has none, or it is not known."""
    alertmanager: tuple[int, int] | None = None
    """Release of the archive's Alertmanager; None: the site brings its own, or it is not known."""
    lab_image: bool = False
    """Whether the lab boots containers of it."""

    def __str__(self) -> str:
        return self.id

    def headers(self, cpu: str) -> tuple[str, ...]:
        """Headers of the usual kernel on a CPU architecture."""
        return tuple(
            name.replace("amd64", "arm64") if cpu == "aarch64" else name for name in self.kernel_headers
        )

    def indexes(self, cpu: str) -> tuple[str, str | None]:
        """Package indexes of NVIDIA's repository and of the release's own kernels; None: none is public."""
        file = "Packages.gz" if self.family.package_tool == "apt" else "repodata/repomd.xml"
        deb = "arm64" if cpu == "aarch64" else "amd64"
        kernels = None if self.kernel_index is None else self.kernel_index.format(cpu=cpu, deb=deb)
        if kernels is not None and cpu == "aarch64":  # Ubuntu keeps other architectures in another archive
            kernels = kernels.replace("archive.ubuntu.com/ubuntu/", "ports.ubuntu.com/ubuntu-ports/")
        return self.nvidia.url(cpu) + file, kernels
