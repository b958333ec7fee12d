"""Enterprise Linux (RHEL, Rocky Linux, AlmaLinux, CentOS Stream): the family, its software and its releases.

Sources: the distributions' own package indexes with EPEL, read 2026-11. NVIDIA's key: as in `debian`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from rackwright.osfamily import dnf
from rackwright.osfamily.el_software import SOFTWARE
from rackwright.osfamily.family import Family, PackageChange
from rackwright.osfamily.release import NvidiaRepository, Release, RepositoryFile

_KERNEL = re.compile(
    r"([0-9]+\.[0-9]+\.[0-9]+-[0-9.]+\.el[0-9]+(?:_[0-9]+)?)(?:\.(?:x86_64|aarch64))?(\+64k)?"
)

_RECORD = "/var/lib/rackwright/kernel-arguments"
"""What rackwright added with grubby, to take out again what is no longer declared."""


class ElFamily(Family):
    """dnf and rpm, grubby, dracut, SELinux, firewalld, NetworkManager."""

    name = "el"
    software = SOFTWARE
    package_tool = "dnf"
    query_self, query_owner = "rpm -q rpm", "rpm"
    held = f"sed -nE '/^[^#!]/s/-[^-]*-[^-]*$//p' {dnf.VERSIONLOCK} 2>/dev/null"
    apptainer_source = "epel"
    dcgm_epoch = ""
    nvidia_modules_renamed = False
    grub_folder = None
    next_arguments = "grubby --info=DEFAULT | sed -n 's/^args=//p' | tr -d '\"'"
    locale_gen = None
    locale_link = None
    timezone_file = None
    has_firewalld = True
    has_networkmanager = True
    has_selinux = True
    has_crypto_policies = True
    # update-ca-trust(8): RHEL 9 "Securing networks", Using shared system certificates (read 2026-11-24)
    trust_folder = "/etc/pki/ca-trust/source/anchors"
    trust_bundle = "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"
    trust_update = "update-ca-trust extract"

    def package_query(self, packages: Sequence[str]) -> str:
        return dnf.query(packages)

    def package_change(self, change: PackageChange) -> str:
        return dnf.change(change)

    def unhold(self, packages: Sequence[str]) -> str:
        return f"dnf -q versionlock delete {' '.join(quote(name) for name in packages)}"

    def database_query(self) -> None:
        return None  # rpm installs in transactions; `dnf check` reads all headers for many seconds

    def database_repair(
        self, install: Sequence[str], remove: Sequence[str], *, simulated: bool, wait_seconds: int
    ) -> str:
        raise NotImplementedError("nothing is read that would ask for a repair")

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

    def with_large_pages(self, kernel: str) -> str | None:
        return kernel if kernel.endswith("+64k") else f"{kernel}+64k"

    def arguments_left(self, arguments: Sequence[str]) -> str:
        kept = quote(f" {' '.join(arguments)} ")
        return (
            f"for one in $(cat {_RECORD} 2>/dev/null); do case {kept} in "
            '*" $one "*) ;; *) echo "left: $one" ;; esac; done'
        )

    def put_arguments(self, arguments: Sequence[str], remove: Sequence[str]) -> str:
        ours = quote(" ".join(arguments))
        left = self.arguments_left(arguments)
        # grubby removes arguments before it adds new ones, so a changed value is not lost
        return (
            f"gone={quote(' '.join(remove))}; gone=\"$gone $({left} | sed 's/^left: //' | tr '\\n' ' ')\"\n"
            f'set -- --update-kernel=ALL; [ -z "${{gone# }}" ] || set -- "$@" --remove-args="$gone"\n'
            f'[ -z {ours} ] || set -- "$@" --args={ours}\n'
            f'[ $# -eq 1 ] || grubby "$@" || exit 1\n'
            f"mkdir -p {_RECORD.rpartition('/')[0]} && echo {ours} >{_RECORD}.new && mv {_RECORD}.new {_RECORD}"
        )


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
    """Our repository file: subscription-manager writes RHEL's. The mirror has the layout of `dnf reposync`."""
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
    sssd_conf: tuple[str, str] = ("600", "root"),
) -> Iterator[Release]:
    """Releases of one major number: by name, the folder of Docker's archive and the repository files."""
    for distribution, (docker_archive, repository_files) in distributions.items():
        index = _KERNEL_INDEXES.get(distribution)
        yield Release(
            id=f"{distribution}-{major}",
            family=EL,
            network="networkmanager",
            installer="kickstart",
            tuned_profiles=tuned_profiles,
            sshd_has_penalties=sshd_has_penalties,
            sssd_conf=sssd_conf,
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
    # unconfirmed: NVIDIA's key, from EL 9; names of files in yum.repos.d and of packages, from EL 9; sssd.conf's
    # group, from upstream's sssd.service of SSSD 2.10.
    *_el(
        10,
        {"rocky": ("centos", _rocky_files(10)), "rhel": ("rhel", _rhel_files(10))},
        tuned_profiles="/etc/tuned/profiles",
        sshd_has_penalties=True,
        slurm=None,
        has_module_streams=False,
        sssd_conf=("640", "sssd"),
    ),
)
