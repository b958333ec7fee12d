"""Enterprise Linux (RHEL, Rocky Linux, AlmaLinux, CentOS Stream): the family, its software and its releases.

Sources: the distributions' own package indexes with EPEL, read 2026-11. NVIDIA's key: as in `debian`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
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
    "bluefield": Names(("mstflint",)),  # mstconfig, which reads a card's mode
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
    # unconfirmed: hwloc-devel, libevent-devel and pmix-devel may need the repository CRB
    "mpi": Names(
        ("openmpi",),
        paths={"library": "/usr/lib64/openmpi/lib/libmpi.so.40", "programs": "/usr/lib64/openmpi/bin"},
    ),
    "mpi-dev": Names(("openmpi-devel", "gcc", "gcc-c++", "glibc-devel")),
    "mpi4py": Names(("python3-mpi4py-openmpi", "python3-numpy")),
    "mpi-build": Names(
        (
            *(
                "gcc",
                "gcc-c++",
                "gcc-gfortran",
                "glibc-devel",
                "make",
                "binutils",
                "perl",
                "pkgconf-pkg-config",
            ),
            *("bzip2", "xz", "autoconf", "automake", "libtool", "flex", "libevent-devel", "hwloc-devel"),
            *("zlib-devel", "numactl-devel", "rdma-core-devel"),
        )
    ),
    "pmix-dev": Names(("pmix-devel",)),
    "ucx-dev": Names(("ucx-devel",)),
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


def _alma_files(major: int) -> tuple[RepositoryFile, ...]:
    """AlmaLinux's own files, one for each repository, in the layout of its mirrors."""
    return tuple(
        RepositoryFile(
            title=f"AlmaLinux's {part} repository",
            path=f"/etc/yum.repos.d/almalinux-{part.lower()}.repo",
            key=f"/etc/pki/rpm-gpg/RPM-GPG-KEY-AlmaLinux-{major}",
            repositories={part.lower(): f"$releasever/{part}/$basearch/os/"},
            shipped=True,
        )
        for part in ("BaseOS", "AppStream", "CRB", "extras")
    )


def _stream_files(major: int) -> tuple[RepositoryFile, ...]:
    """CentOS Stream's own files, in the layout of mirror.stream.centos.org; dnf's $stream is `9-stream`."""
    keys = "/etc/pki/rpm-gpg/RPM-GPG-KEY"
    return (
        RepositoryFile(
            title="CentOS Stream's repositories",
            path="/etc/yum.repos.d/centos.repo",
            key=f"{keys}-centosofficial",
            repositories={
                part.lower(): f"{major}-stream/{part}/$basearch/os/"
                for part in ("BaseOS", "AppStream", "CRB")
            },
            shipped=True,
        ),
        RepositoryFile(
            title="CentOS Stream's extras",
            path="/etc/yum.repos.d/centos-addons.repo",
            key=f"{keys}-CentOS-SIG-Extras-SHA512",
            repositories={"extras-common": f"SIGs/{major}-stream/extras/$basearch/extras-common/"},
            shipped=True,
        ),
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


_KERNEL_INDEXES = {
    "rocky": "https://dl.rockylinux.org/pub/rocky/{major}/BaseOS/{cpu}/os/repodata/repomd.xml",
    "almalinux": "https://repo.almalinux.org/almalinux/{major}/BaseOS/{cpu}/os/repodata/repomd.xml",
    "centos-stream": "https://mirror.stream.centos.org/{major}-stream/BaseOS/{cpu}/os/repodata/repomd.xml",
}
"""Where the kernels of each are listed; RHEL's own index needs the client's certificate."""


def _el(
    major: int,
    distributions: Mapping[str, tuple[str, tuple[RepositoryFile, ...]]],
    *,
    tuned_profiles: str,
    sshd_has_penalties: bool,
    slurm: str | None,
    has_module_streams: bool,
) -> Iterator[Release]:
    """Releases of one major number: by name, the folder of Docker's archive and the repository files."""
    for distribution, (docker_archive, repository_files) in distributions.items():
        index = _KERNEL_INDEXES.get(distribution)
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
            kernel_index=None if index is None else index.replace("{major}", str(major)),
            repository_files=repository_files,
            has_module_streams=has_module_streams,
        )


# AlmaLinux 9 and CentOS Stream 9, read 2026-11-23. Names of files, sections and keys: `dnf repoinfo` and copies of
# /etc/yum.repos.d in public logs of both (almalinux-baseos.repo; centos.repo, centos-addons.repo). Docker's archive:
# docs.docker.com/engine/install/centos names CentOS Stream 9; for AlmaLinux unconfirmed, as for Rocky. NVIDIA's driver
# guide (release 620, introduction and kernel modules) lists AlmaLinux 9 with the repository rhel9 and its module
# streams; it does not list CentOS Stream: unconfirmed, from RHEL 9, and only streams that build with DKMS can follow
# Stream's kernels, which come before those that NVIDIA compiles for. EPEL 9 serves both; epel-next 9 holds rebuilds
# for Stream where a library moved ahead of RHEL's (packages.fedoraproject.org, epel-next-release 9-10): a site adds it
# by `base.packages: [epel-next-release]`. Everything else of both is unconfirmed, from Rocky 9.
RELEASES = (
    *_el(
        9,
        {
            "rocky": ("centos", _rocky_files(9)),
            "rhel": ("rhel", _rhel_files(9)),
            "almalinux": ("centos", _alma_files(9)),
            "centos-stream": ("centos", _stream_files(9)),
        },
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
        {"rocky": ("centos", _rocky_files(10)), "rhel": ("rhel", _rhel_files(10))},
        tuned_profiles="/etc/tuned/profiles",
        sshd_has_penalties=True,
        slurm=None,
        has_module_streams=False,
    ),
)
