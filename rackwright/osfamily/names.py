"""The small layer between a role and an operating-system family: names and places.

A role asks for "chrony" and gets the package, the unit and the paths as they are called here.
What differs between families stands in this file and nowhere else, one entry per software. Sources:
the distributions' own package indexes (Debian 12 and 13, Ubuntu 22.04 and 24.04; EL 9 with EPEL),
read 2026-11.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rackwright.model.types import Family, OsRelease


@dataclass(frozen=True)
class Names:
    """How one piece of software is called on a family."""

    packages: tuple[str, ...]
    unit: str | None = None
    paths: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Release:
    """What differs between the releases of one family."""

    codename: str
    """Of the archive's suites; EL has none."""
    archive_keyring: str | None
    components: tuple[str, ...]
    tuned_profiles: str
    """Where tuned looks for profiles of the site: it moved with tuned 2.24 (EL 9 kept the old place)."""
    sshd_has_penalties: bool = False
    """Whether sshd (from OpenSSH 9.8) shuts out addresses that failed to log in, and knows exemptions."""


# Command-line tools of a maintained node; the same set everywhere, under each family's names.
_BASE = (
    "ca-certificates",
    "ethtool",
    "jq",
    "less",
    "lsof",
    "numactl",
    "pciutils",
    "psmisc",
    "rsync",
    "tzdata",
)

# Named one by one although they depend on each other: a pinned version has to be said of each.
_SLURM = ("slurm-client", "slurm-wlm-basic-plugins")

_NAMES: dict[str, dict[Family, Names]] = {
    "base": {
        Family.DEBIAN: Names((*_BASE, "curl", "iproute2", "iputils-ping", "procps", "python3")),
        # curl is left as installed: curl and curl-minimal conflict, and one of them is always there
        Family.EL: Names((*_BASE, "iproute", "iputils", "procps-ng", "python3")),
    },
    "hardware": {
        Family.DEBIAN: Names(("dmidecode", "ipmitool", "nvme-cli", "smartmontools")),
        Family.EL: Names(("dmidecode", "ipmitool", "nvme-cli", "smartmontools")),
    },
    "locales": {
        Family.DEBIAN: Names(("locales",)),
        Family.EL: Names(("glibc-common", "glibc-locale-source")),
    },
    "openssh": {
        Family.DEBIAN: Names(
            ("openssh-client", "openssh-server", "sudo"),
            "ssh.service",
            {"keysign": "/usr/lib/openssh/ssh-keysign"},
        ),
        Family.EL: Names(
            ("openssh-clients", "openssh-server", "sudo"),
            "sshd.service",
            {"keysign": "/usr/libexec/openssh/ssh-keysign"},
        ),
    },
    "tuned": {
        Family.DEBIAN: Names(("tuned",), "tuned.service"),
        Family.EL: Names(("tuned",), "tuned.service"),
    },
    "chrony": {
        Family.DEBIAN: Names(
            ("chrony",),
            "chrony.service",
            {
                "conf": "/etc/chrony/chrony.conf",
                "daemon_options": "/etc/default/chrony",
                "drift": "/var/lib/chrony/chrony.drift",
                "keys": "/etc/chrony/chrony.keys",
            },
        ),
        Family.EL: Names(
            ("chrony",),
            "chronyd.service",
            {
                "conf": "/etc/chrony.conf",
                "daemon_options": "/etc/sysconfig/chronyd",
                "drift": "/var/lib/chrony/drift",
                "keys": "/etc/chrony.keys",
            },
        ),
    },
    "munge": {
        Family.DEBIAN: Names(
            ("munge",),
            "munge.service",
            {"key": "/etc/munge/munge.key", "daemon_options": "/etc/default/munge"},
        ),
        Family.EL: Names(
            ("munge",),
            "munge.service",
            {"key": "/etc/munge/munge.key", "daemon_options": "/etc/sysconfig/munge"},
        ),
    },
    "mariadb": {
        # read in the order of their names, so that ours comes after the distribution's
        Family.DEBIAN: Names(
            ("mariadb-server",), "mariadb.service", {"conf": "/etc/mysql/mariadb.conf.d/90-rackwright.cnf"}
        ),
        Family.EL: Names(("mariadb-server",), "mariadb.service", {"conf": "/etc/my.cnf.d/zz-rackwright.cnf"}),
    },
    "slurmctld": {
        Family.DEBIAN: Names(("slurmctld", *_SLURM), "slurmctld.service"),
        Family.EL: Names(("slurm", "slurm-slurmctld"), "slurmctld.service"),
    },
    "slurmdbd": {
        Family.DEBIAN: Names(("slurmdbd", "slurm-wlm-mysql-plugin", *_SLURM), "slurmdbd.service"),
        Family.EL: Names(("slurm", "slurm-slurmdbd"), "slurmdbd.service"),
    },
    "slurmd": {
        Family.DEBIAN: Names(("slurmd", *_SLURM), "slurmd.service"),
        Family.EL: Names(("slurm", "slurm-slurmd"), "slurmd.service"),
    },
    "slurm-client": {
        Family.DEBIAN: Names(_SLURM),
        Family.EL: Names(("slurm",)),
    },
    "pam-slurm-adopt": {
        Family.DEBIAN: Names(("libpam-slurm-adopt",)),
        Family.EL: Names(("slurm-pam_slurm",)),
    },
    "slurm-nvml": {
        Family.DEBIAN: Names(("slurm-wlm-nvml-plugin",)),
        Family.EL: Names(()),  # not built there
    },
    "logrotate": {
        Family.DEBIAN: Names(("logrotate",), "logrotate.timer"),
        Family.EL: Names(("logrotate",), "logrotate.timer"),
    },
    "mpi": {
        Family.DEBIAN: Names(("openmpi-bin", "python3-mpi4py", "python3-numpy")),
        Family.EL: Names(("openmpi", "python3-mpi4py-openmpi", "python3-numpy")),
    },
    # SchedMD's own packaging; on EL its names are the distribution's.
    "schedmd/slurmctld": {
        Family.DEBIAN: Names(("slurm-smd", "slurm-smd-client", "slurm-smd-slurmctld"), "slurmctld.service"),
        Family.EL: Names(("slurm", "slurm-slurmctld"), "slurmctld.service"),
    },
    "schedmd/slurmdbd": {
        Family.DEBIAN: Names(("slurm-smd", "slurm-smd-client", "slurm-smd-slurmdbd"), "slurmdbd.service"),
        Family.EL: Names(("slurm", "slurm-slurmdbd"), "slurmdbd.service"),
    },
    "schedmd/slurmd": {
        Family.DEBIAN: Names(("slurm-smd", "slurm-smd-client", "slurm-smd-slurmd"), "slurmd.service"),
        Family.EL: Names(("slurm", "slurm-slurmd"), "slurmd.service"),
    },
    "schedmd/slurm-client": {
        Family.DEBIAN: Names(("slurm-smd", "slurm-smd-client")),
        Family.EL: Names(("slurm",)),
    },
    "schedmd/pam-slurm-adopt": {
        Family.DEBIAN: Names(("slurm-smd-libpam-slurm-adopt",)),
        Family.EL: Names(("slurm-pam_slurm",)),
    },
}

_DEBIAN_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_UBUNTU_KEYRING = "/usr/share/keyrings/ubuntu-archive-keyring.gpg"
_DEBIAN_COMPONENTS = ("main", "contrib", "non-free", "non-free-firmware")
_UBUNTU_COMPONENTS = ("main", "restricted", "universe", "multiverse")

_RELEASES: dict[OsRelease, Release] = {
    OsRelease.DEBIAN_12: Release("bookworm", _DEBIAN_KEYRING, _DEBIAN_COMPONENTS, "/etc/tuned"),
    OsRelease.DEBIAN_13: Release("trixie", _DEBIAN_KEYRING, _DEBIAN_COMPONENTS, "/etc/tuned/profiles", True),
    OsRelease.UBUNTU_22_04: Release("jammy", _UBUNTU_KEYRING, _UBUNTU_COMPONENTS, "/etc/tuned"),
    OsRelease.UBUNTU_24_04: Release("noble", _UBUNTU_KEYRING, _UBUNTU_COMPONENTS, "/etc/tuned"),
    OsRelease.ROCKY_9: Release("", None, (), "/etc/tuned"),
    OsRelease.RHEL_9: Release("", None, (), "/etc/tuned"),
}


def names(family: Family, software: str) -> Names:
    """Packages, unit and paths of a piece of software on a family; KeyError if it has none there."""
    return _NAMES[software][family]


def release(os: OsRelease) -> Release:
    """What differs between this release and the others of its family."""
    return _RELEASES[os]
