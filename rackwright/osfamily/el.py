"""Enterprise Linux (RHEL and Rocky Linux): the family, its software and its releases.

Sources: the distributions' own package indexes with EPEL, read 2026-11. NVIDIA's key: as in `debian`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from shlex import quote

from rackwright.osfamily import dnf
from rackwright.osfamily.family import Family, PackageChange
from rackwright.osfamily.names import BASE_TOOLS, HARDWARE_TOOLS, Names
from rackwright.osfamily.release import NvidiaRepository, Release, RepositoryFile

_KERNEL = re.compile(
    r"([0-9]+\.[0-9]+\.[0-9]+-[0-9.]+\.el[0-9]+(?:_[0-9]+)?)(?:\.(?:x86_64|aarch64))?(\+64k)?"
)

_SOFTWARE = {
    # curl is left as installed: curl and curl-minimal conflict, and one of them is always there
    "base": Names((*BASE_TOOLS, "iproute", "iputils", "procps-ng", "python3")),
    "hardware": Names(HARDWARE_TOOLS),
    "curl": Names(()),
    "locales": Names(("glibc-common", "glibc-locale-source")),
    "openssh": Names(
        ("openssh-clients", "openssh-server", "sudo"),
        "sshd.service",
        {"keysign": "/usr/libexec/openssh/ssh-keysign"},
    ),
    "tuned": Names(("tuned",), "tuned.service"),
    "chrony": Names(
        ("chrony",),
        "chronyd.service",
        {
            "conf": "/etc/chrony.conf",
            "daemon_options": "/etc/sysconfig/chronyd",
            "drift": "/var/lib/chrony/drift",
            "keys": "/etc/chrony.keys",
        },
        {"variable": "OPTIONS", "filter_level": "2"},
    ),
    "munge": Names(
        ("munge",),
        "munge.service",
        {"key": "/etc/munge/munge.key", "daemon_options": "/etc/sysconfig/munge"},
    ),
    # read in the order of their names, so that ours comes after the distribution's
    "mariadb": Names(("mariadb-server",), "mariadb.service", {"conf": "/etc/my.cnf.d/zz-rackwright.cnf"}),
    "slurmctld": Names(("slurm", "slurm-slurmctld"), "slurmctld.service"),
    "slurmdbd": Names(("slurm", "slurm-slurmdbd"), "slurmdbd.service"),
    "slurmd": Names(("slurm", "slurm-slurmd"), "slurmd.service"),
    "slurm-client": Names(("slurm",)),
    "slurm-nvml": Names(()),  # not built there
    "pam-slurm-adopt": Names(("slurm-pam_slurm",)),
    # SchedMD's own packages have EPEL's names
    "schedmd/slurmctld": Names(("slurm", "slurm-slurmctld"), "slurmctld.service"),
    "schedmd/slurmdbd": Names(("slurm", "slurm-slurmdbd"), "slurmdbd.service"),
    "schedmd/slurmd": Names(("slurm", "slurm-slurmd"), "slurmd.service"),
    "schedmd/slurm-client": Names(("slurm",)),
    "schedmd/pam-slurm-adopt": Names(("slurm-pam_slurm",)),
    "logrotate": Names(("logrotate",), "logrotate.timer"),
    "mpi": Names(("openmpi", "python3-mpi4py-openmpi", "python3-numpy")),
    # fingerprint: found as in `debian`
    "docker-archive": Names(
        ("gnupg2",),
        paths={"key": "/etc/pki/rpm-gpg/RPM-GPG-KEY-docker", "source": "/etc/yum.repos.d/docker-ce.repo"},
        settings={
            "fingerprint": "060A61C51B558A7F742B77AAC52FEB6B621E9F35",
            "template": "docker/docker-ce.repo.j2",
        },
    ),
    "nvidia-archive": Names(
        (),
        paths={
            "key": "/etc/pki/rpm-gpg/RPM-GPG-KEY-rackwright-nvidia",
            "source": "/etc/yum.repos.d/rackwright-nvidia.repo",
        },
        settings={"template": "nvidia_driver/dnf.repo.j2"},
    ),
    "docker-registry": Names(()),
    "enroot": Names(("enroot",), settings={"revision": "1.el8"}),  # one for EL 8 and later
    "pyxis-build": Names(("gcc", "glibc-devel", "make", "slurm-devel", "binutils")),
    # {version} is filled in; the module's release ends in `dkms`, and the tests are in gdrcopy
    "gdrcopy": Names(("gdrcopy-kmod={version}dkms", "gdrcopy={version}")),
    "gdrcopy-tests": Names(()),
}


class ElFamily(Family):
    """dnf and rpm, grubby, dracut, SELinux, firewalld, NetworkManager."""

    name = "el"
    software = _SOFTWARE
    package_tool = "dnf"
    query_self, query_owner = "rpm -q rpm", "rpm"
    apptainer_source = "epel"
    dcgm_epoch = ""
    nvidia_modules_renamed = False
    grub_folder = None
    locale_gen = None
    locale_link = None
    timezone_file = None
    has_firewalld = True
    has_networkmanager = True
    has_selinux = True
    mpi_module = "mpi"

    def package_query(self, packages: Sequence[str]) -> str:
        return dnf.query(packages)

    def package_change(self, change: PackageChange) -> str:
        return dnf.change(change)

    def package_file(self, name: str, version: str, cpu: str) -> str:
        return f"{name}-{version}.{cpu}.rpm"

    def initramfs(self, kernel: str) -> tuple[str, str]:
        return f"/boot/initramfs-{kernel}.img", f"dracut --force --kver {kernel}"

    def kernel_release(self, text: str, cpu: str) -> str | None:
        found = _KERNEL.fullmatch(text)
        return None if found is None else f"{found[1]}.{cpu}{found[2] or ''}"

    def kernel_of(self, package: str, version: str, cpu: str) -> str | None:
        return f"{version.rpartition(':')[2]}.{cpu}" if package == "kernel" else None

    def boots(self, kernel: str) -> tuple[str, str]:
        image = quote(f"/boot/vmlinuz-{kernel}")
        read = f'[ "$(grubby --default-kernel)" = {image} ] && echo {quote(kernel)}'
        return read, f"grubby --set-default {image}"

    def kernel_arguments(self, arguments: Sequence[str]) -> tuple[str, str]:
        read = "grubby --info=DEFAULT | sed -n 's/^args=//p' | tr -d '\"'"
        return read, f"grubby --update-kernel=ALL --args={quote(' '.join(arguments))}"


EL = ElFamily()


def _rocky_files(major: int) -> tuple[RepositoryFile, ...]:
    """Rocky's own files, in the layout of its mirrors."""
    return tuple(
        RepositoryFile(
            title=title,
            path=f"/etc/yum.repos.d/{file}",
            key=f"/etc/pki/rpm-gpg/RPM-GPG-KEY-Rocky-{major}",
            repositories={part.lower(): f"$releasever/{part}/$basearch/os/" for part in parts},
            shipped=True,
        )
        for title, file, parts in (
            ("Rocky's repositories", "rocky.repo", ("BaseOS", "AppStream", "CRB")),
            ("Rocky's extras", "rocky-extras.repo", ("extras",)),
        )
    )


def _rhel_files(major: int) -> tuple[RepositoryFile, ...]:
    """A file of ours: subscription-manager writes RHEL's. The mirror is laid out as `dnf reposync` does."""
    repositories = {
        f"rhel-{major}-{part}": f"rhel-{major}-for-$basearch-{part}-rpms" for part in ("baseos", "appstream")
    }
    return (
        RepositoryFile(
            title="the site's repositories",
            path="/etc/yum.repos.d/rackwright.repo",
            key="/etc/pki/rpm-gpg/RPM-GPG-KEY-redhat-release",
            repositories=repositories,
            shipped=False,
        ),
    )


def _el(
    major: int, *, tuned_profiles: str, sshd_has_penalties: bool, slurm: str | None, has_module_streams: bool
) -> Iterator[Release]:
    """Rocky Linux and RHEL of one major release."""
    rocky = f"https://dl.rockylinux.org/pub/rocky/{major}/BaseOS/{{cpu}}/os/repodata/repomd.xml"
    for distribution, docker_archive, repository_files, kernel_index in (
        ("rocky", "centos", _rocky_files(major), rocky),
        ("rhel", "rhel", _rhel_files(major), None),  # its own needs the client's certificate
    ):
        yield Release(
            id=f"{distribution}-{major}",
            family=EL,
            tuned_profiles=tuned_profiles,
            sshd_has_penalties=sshd_has_penalties,
            slurm=slurm,
            podman=("podman", "crun", "netavark", "aardvark-dns", "passt", "shadow-utils-subid"),
            container_daemons={"docker": (), "containerd": ()},
            docker_archive=docker_archive,
            nvidia=NvidiaRepository(
                folder=f"rhel{major}",
                key_file="D42D0685.pub",
                fingerprint="610C7B14E068A878070DA4E99CD0A493D42D0685",
            ),
            kernel_headers=("kernel-devel-matched", "kernel-headers"),
            kernel_index=kernel_index,
            repository_files=repository_files,
            has_module_streams=has_module_streams,
        )


RELEASES = (
    *_el(
        9,
        tuned_profiles="/etc/tuned",  # kept by its tuned 2.24
        sshd_has_penalties=False,
        slurm="22.05",
        has_module_streams=True,
    ),
    # docs.redhat.com and public logs of both, read 2026-11-22: /etc/tuned/profiles, openssh-server-9.9p1,
    # repositories' names, RPM-GPG-KEY-Rocky-10, Docker's archive for both; NVIDIA's driver guide: no module
    # streams. EPEL has Slurm 26.05 from 10.3 on and none before, so the role asks for the release.
    # unconfirmed: NVIDIA's key, from EL 9; names of files in yum.repos.d and of packages, from EL 9.
    *_el(
        10,
        tuned_profiles="/etc/tuned/profiles",
        sshd_has_penalties=True,
        slurm=None,
        has_module_streams=False,
    ),
)
