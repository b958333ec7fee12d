"""Debian and Ubuntu: the family, its software and its releases.

Sources: the distributions' own package indexes (Debian 12 and 13, Ubuntu 22.04 and 24.04), read 2026-11.
NVIDIA's keys: fingerprints as public installation scripts and notes pin them, each found in at least
two places that do not copy each other (read 2026-11-21); key files' names as the repositories have them.
Not compared with the repositories themselves: a machine that reaches them has to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from shlex import quote

from rackwright.osfamily import apt, dpkg
from rackwright.osfamily.debian_software import SOFTWARE
from rackwright.osfamily.family import KERNEL_SETTINGS, Family, PackageChange
from rackwright.osfamily.release import NvidiaRepository, Release

_KERNEL = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+[0-9a-z.+~-]*-[0-9a-z-]+")
_MENU = "/boot/grub/grub.cfg"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class DebianFamily(Family):
    """apt and dpkg, update-grub, initramfs-tools."""

    name = "debian"
    software = SOFTWARE
    package_tool = "apt"
    query_self, query_owner = "dpkg-query -W dpkg", "dpkg"
    held = "awk '/^Package: /{name = $2} /^Status: hold /{print name}' /var/lib/dpkg/status"
    apptainer_source = "release"
    dcgm_epoch = "1:"
    nvidia_modules_renamed = True
    grub_folder = "/etc/default/grub.d"
    next_arguments = f"sed -n 's/^[[:space:]]*linux[[:space:]][[:space:]]*//p;T;q' {_MENU}"
    locale_gen = "/etc/locale.gen"
    locale_link = "/etc/default/locale"
    timezone_file = "/etc/timezone"
    has_firewalld = False
    has_networkmanager = False
    has_selinux = False
    has_crypto_policies = False
    # update-ca-certificates(8) of Debian 12 and 13
    trust_folder = "/usr/local/share/ca-certificates"
    trust_bundle = "/etc/ssl/certs/ca-certificates.crt"
    trust_update = "update-ca-certificates"

    def package_query(self, packages: Sequence[str]) -> str:
        return apt.query(packages)

    def package_change(self, change: PackageChange) -> str:
        return apt.change(change)

    def unhold(self, packages: Sequence[str]) -> str:
        return f"apt-mark -qq unhold {' '.join(quote(name) for name in packages)}"

    def database_query(self) -> str:
        return dpkg.QUERY

    def database_repair(
        self, install: Sequence[str], remove: Sequence[str], *, simulated: bool, wait_seconds: int
    ) -> str:
        return dpkg.repair(install, remove, simulated=simulated, wait_seconds=wait_seconds)

    def package_file(self, name: str, version: str, cpu: str) -> str:
        return f"{name}_{version}_{_ARCHITECTURES[cpu]}.deb"

    def initramfs(self, kernel: str) -> tuple[str, str]:
        return f"/boot/initrd.img-{kernel}", f"update-initramfs -u -k {kernel}"

    def kernel_release(self, text: str, cpu: str) -> str | None:
        return text if _KERNEL.fullmatch(text) else None

    def kernel_of(self, package: str, version: str, cpu: str) -> str | None:
        release = package.removeprefix("linux-image-")
        words = release.split("-")
        usual = words[-1] in ("generic", _ARCHITECTURES[cpu]) and not {"rt", "cloud"} & set(words)
        return release if release != package and usual and _KERNEL.fullmatch(release) else None

    def boots(self, kernel: str) -> tuple[str, str]:
        entry = f"with Linux {kernel}"
        return (
            f"grep -q '^ *set default=.*{entry}\"' {_MENU} && echo {quote(kernel)}",
            "update-grub",
        )

    def with_large_pages(self, kernel: str) -> str | None:
        return kernel if "-64k" in kernel else None

    def arguments_left(self, arguments: Sequence[str]) -> str:
        settings = f"{self.grub_folder}/{KERNEL_SETTINGS}"
        return f"[ ! -e {settings} ] || [ {_MENU} -nt {settings} ] || echo left: an older menu"

    def put_arguments(self, arguments: Sequence[str], remove: Sequence[str]) -> str:
        return "update-grub"  # the role's file in grub_folder has both


DEBIAN = DebianFamily()

_PODMAN = ("podman", "crun", "netavark", "aardvark-dns")
_DOCKER = ("docker.io", "containerd", "iptables")

_NVIDIA_2022 = ("3bf863cc.pub", "EB693B3035CD5710E231E123A4B469963BF863CC")
_NVIDIA_2025 = ("8793F200.pub", "02182E60104FCDC26EAE1B8597A5D4CB8793F200")


def _debian(
    id: str,
    codename: str,
    *,
    tuned_profiles: str,
    sshd_has_penalties: bool,
    slurm: str | None,
    podman: tuple[str, ...],
    docker: tuple[str, ...],
    nvidia_key: tuple[str, str],
    ceph: int,
    alertmanager: tuple[int, int],
    sssd_conf: tuple[str, str] = ("600", "root"),
) -> Release:
    return Release(
        id=id,
        family=DEBIAN,
        network="networkd",
        installer="preseed",
        codename=codename,
        archive_keyring="/usr/share/keyrings/debian-archive-keyring.gpg",
        components=("main", "contrib", "non-free", "non-free-firmware"),
        tuned_profiles=tuned_profiles,
        sshd_has_penalties=sshd_has_penalties,
        sssd_conf=sssd_conf,
        slurm=slurm,
        podman=podman,
        container_daemons={"docker": docker, "containerd": ("containerd",)},
        docker_archive="debian",
        nvidia=NvidiaRepository(id.replace("-", ""), *nvidia_key),
        kernel_headers=("linux-headers-amd64",),
        ceph=ceph,
        alertmanager=alertmanager,
        kernel_index=f"http://deb.debian.org/debian-security/dists/{codename}-security/main/binary-{{deb}}/Packages.xz",
        lab_image=True,
    )


def _ubuntu(
    id: str,
    codename: str,
    *,
    tuned_profiles: str,
    sshd_has_penalties: bool,
    slurm: str | None,
    podman: tuple[str, ...],
    nvidia_key: tuple[str, str],
    alertmanager: tuple[int, int],
    ceph: int | None = None,
    networkd_makes_ipoib: bool = True,
    sssd_conf: tuple[str, str] = ("600", "root"),
) -> Release:
    return Release(
        id=id,
        family=DEBIAN,
        network="netplan",
        installer="autoinstall",
        networkd_makes_ipoib=networkd_makes_ipoib,
        codename=codename,
        archive_keyring="/usr/share/keyrings/ubuntu-archive-keyring.gpg",
        components=("main", "restricted", "universe", "multiverse"),
        security_in_archive=True,
        has_ppas=True,
        tuned_profiles=tuned_profiles,
        sshd_has_penalties=sshd_has_penalties,
        sssd_conf=sssd_conf,
        slurm=slurm,
        podman=podman,
        container_daemons={"docker": _DOCKER, "containerd": ("containerd",)},
        docker_archive="ubuntu",
        nvidia=NvidiaRepository(id.replace("-", "").replace(".", ""), *nvidia_key),
        kernel_headers=("linux-headers-generic",),
        ceph=ceph,
        alertmanager=alertmanager,
        kernel_index=f"http://archive.ubuntu.com/ubuntu/dists/{codename}-updates/main/binary-{{deb}}/Packages.xz",
    )


# nftables and iptables: netavark up to 1.9 asks for iptables, later ones for nft. Alertmanager: apt-cache policy on
# Debian 12 and 13 (2026-11-26), packages.ubuntu.com for the others (read 2026-11-27).
RELEASES = (
    _debian(
        "debian-12",
        "bookworm",
        tuned_profiles="/etc/tuned",
        sshd_has_penalties=False,
        slurm="22.05",
        podman=(*_PODMAN, "iptables", "slirp4netns", "uidmap"),
        docker=_DOCKER,
        nvidia_key=_NVIDIA_2022,
        alertmanager=(0, 25),
        ceph=16,  # apt-cache policy ceph-common, 2026-11-26: 16.2.15+ds-0+deb12u2
    ),
    _debian(
        "debian-13",
        "trixie",
        tuned_profiles="/etc/tuned/profiles",
        sshd_has_penalties=True,
        slurm="24.11",
        podman=(*_PODMAN, "nftables", "passt", "uidmap"),
        docker=(*_DOCKER, "docker-cli"),
        sssd_conf=("640", "root"),
        nvidia_key=_NVIDIA_2025,
        alertmanager=(0, 28),
        ceph=18,  # unconfirmed: no index of trixie was read; 18.2.7 when it was released
    ),
    _ubuntu(
        "ubuntu-22.04",
        "jammy",
        tuned_profiles="/etc/tuned",
        sshd_has_penalties=False,
        slurm="21.08",
        networkd_makes_ipoib=False,  # systemd 249
        # podman 3.4 has CNI only
        podman=("podman", "crun", "containernetworking-plugins", "iptables", "slirp4netns", "uidmap"),
        nvidia_key=_NVIDIA_2022,
        alertmanager=(0, 23),
        ceph=17,  # unconfirmed: no index was read
    ),
    _ubuntu(
        "ubuntu-24.04",
        "noble",
        tuned_profiles="/etc/tuned",
        sshd_has_penalties=False,
        slurm="23.11",
        podman=(*_PODMAN, "iptables", "passt", "slirp4netns", "uidmap"),
        nvidia_key=_NVIDIA_2022,
        alertmanager=(0, 26),
        ceph=19,  # unconfirmed: no index was read
    ),
    # Released 2026-04-23. packages.ubuntu.com and public logs of the release, read 2026-11-22: tuned 2.25.1,
    # OpenSSH 10.2p1, Slurm 25.11.2, podman 5.7.0 with netavark 1.16.1 (recommends nftables), Docker's suite
    # resolute; NVIDIA's key in two places that do not copy each other. unconfirmed: passt and uidmap, from
    # Debian 13's podman 5; docker.io with its client in it, from 24.04; a PPA of Apptainer for it; access of
    # sssd.conf, from Debian 13.
    _ubuntu(
        "ubuntu-26.04",
        "resolute",
        tuned_profiles="/etc/tuned/profiles",
        sshd_has_penalties=True,
        slurm="25.11",
        podman=(*_PODMAN, "nftables", "passt", "uidmap"),
        sssd_conf=("640", "root"),
        alertmanager=(0, 28),
        nvidia_key=("60DF8A40.pub", "14BAFBC7562AD710CA04E69905FBB6DA60DF8A40"),
    ),
)
