"""What the roles install on Debian and Ubuntu: packages, units and paths by the names of `rackwright.osfamily.names`.

Sources: as in `debian`.
"""

from __future__ import annotations

from rackwright.osfamily.names import BASE_TOOLS, HARDWARE_TOOLS, Names

# All of them although they depend on each other: each needs the pinned version.
_SLURM = ("slurm-client", "slurm-wlm-basic-plugins")
_SCHEDMD = ("slurm-smd", "slurm-smd-client")

SOFTWARE = {
    "base": Names((*BASE_TOOLS, "curl", "iproute2", "iputils-ping", "procps", "python3")),
    "hardware": Names(HARDWARE_TOOLS),
    # the folder beside mdadm's own file that it reads as well (mdadm.conf(5))
    "mdadm": Names(("mdadm",), paths={"arrays": "/etc/mdadm/mdadm.conf.d/90-rackwright.conf"}),
    "lvm2": Names(("lvm2",)),
    "xfsprogs": Names(("xfsprogs",)),
    "e2fsprogs": Names(("e2fsprogs",)),
    "drives": Names(("nvme-cli",)),
    "bluefield": Names(("mstflint",)),  # mstconfig, which reads a card's mode
    # rdma is in iproute2; names as the archives of Debian 12 and 13 have them (read 2026-11-25), Ubuntu takes Debian's
    "rdma": Names(
        ("rdma-core", "ibverbs-providers", "ibverbs-utils", "rdmacm-utils", "perftest", "iproute2"),
        paths={"rdma_rename": "/usr/lib/udev/rdma_rename"},
    ),
    "infiniband": Names(("infiniband-diags",)),
    "opensm": Names(("opensm",), "opensm.service"),
    "mstflint": Names(("mstflint",)),
    "curl": Names(("curl",)),
    "certificates": Names(("ca-certificates", "openssl")),
    "locales": Names(("locales",)),
    "openssh": Names(
        ("openssh-client", "openssh-server", "sudo"),
        "ssh.service",
        {"keysign": "/usr/lib/openssh/ssh-keysign"},
    ),
    "dcb": Names(("iproute2", "mstflint")),  # mstconfig reads what firmware has of congestion control
    "lldpd": Names(("lldpd",), "lldpd.service"),
    "nftables": Names(("nftables",)),
    "tuned": Names(("tuned",), "tuned.service"),
    "chrony": Names(
        ("chrony",),
        "chrony.service",
        {
            "conf": "/etc/chrony/chrony.conf",
            "daemon_options": "/etc/default/chrony",
            "drift": "/var/lib/chrony/chrony.drift",
            "keys": "/etc/chrony/chrony.keys",
        },
        {"variable": "DAEMON_OPTS", "filter_level": "1"},
    ),
    "unbound": Names(
        ("unbound", "dns-root-data"),
        "unbound.service",
        {
            "conf": "/etc/unbound/unbound.conf",
            "names": "/etc/unbound/rackwright-names.conf",
            "trust_anchor": "/var/lib/unbound/root.key",
            # the unit copies it, but only before its first start
            "packaged_trust_anchor": "/usr/share/dns/root.key",
        },
    ),
    # what else writes the file; paths: what keeps a DHCP client from it
    "resolv.conf": Names(
        ("resolvconf", "openresolv"),
        paths={
            "dhclient": "/etc/dhcp/dhclient-enter-hooks.d/rackwright-dns",
            "dhcpcd": "/etc/dhcpcd.enter-hook",
        },
    ),
    "munge": Names(
        ("munge",),
        "munge.service",
        {"key": "/etc/munge/munge.key", "daemon_options": "/etc/default/munge"},
    ),
    # read in the order of their names, so that ours comes after the distribution's
    "mariadb": Names(
        ("mariadb-server",), "mariadb.service", {"conf": "/etc/mysql/mariadb.conf.d/90-rackwright.cnf"}
    ),
    "slurmctld": Names(("slurmctld", *_SLURM), "slurmctld.service"),
    "slurmdbd": Names(("slurmdbd", "slurm-wlm-mysql-plugin", *_SLURM), "slurmdbd.service"),
    "slurmd": Names(("slurmd", *_SLURM), "slurmd.service"),
    "slurm-client": Names(_SLURM),
    "slurm-nvml": Names(("slurm-wlm-nvml-plugin",)),
    "pam-slurm-adopt": Names(("libpam-slurm-adopt",)),
    "schedmd/slurmctld": Names((*_SCHEDMD, "slurm-smd-slurmctld"), "slurmctld.service"),
    "schedmd/slurmdbd": Names((*_SCHEDMD, "slurm-smd-slurmdbd"), "slurmdbd.service"),
    "schedmd/slurmd": Names((*_SCHEDMD, "slurm-smd-slurmd"), "slurmd.service"),
    "schedmd/slurm-client": Names(_SCHEDMD),
    "schedmd/pam-slurm-adopt": Names(("slurm-smd-libpam-slurm-adopt",)),
    "logrotate": Names(("logrotate",), "logrotate.timer"),
    "mpi": Names(("openmpi-bin",), paths={"library": "libmpi.so.40", "programs": "/usr/bin"}),
    "mpi-dev": Names(("libopenmpi-dev", "gcc", "g++", "libc6-dev")),
    "mpi4py": Names(("python3-mpi4py", "python3-numpy")),
    # packages.debian.org, read 2026-11-26: fio 3.33 in Debian 12, 3.39 in 13; Ubuntu takes Debian's
    "fio": Names(("fio",)),
    "torch": Names(("python3-torch",)),
    # hwloc and libevent are the OS's; autotools for a source without configure
    "mpi-build": Names(
        (
            *(
                "gcc",
                "g++",
                "gfortran",
                "libc6-dev",
                "make",
                "binutils",
                "perl",
                "pkgconf",
                "bzip2",
                "xz-utils",
            ),
            *("autoconf", "automake", "libtool", "flex", "libevent-dev", "libhwloc-dev", "zlib1g-dev"),
            *("libnuma-dev", "libibverbs-dev", "librdmacm-dev"),
        )
    ),
    "pmix-dev": Names(("libpmix-dev",)),
    "ucx-dev": Names(("libucx-dev",)),
    # fingerprint: as docs.docker.com/engine/install publishes it, and as many public installation scripts
    # that do not copy each other have it (read 2026-11-21); a wrong one refuses the key and lets no other in
    "docker-archive": Names(
        ("curl", "gpg"),
        paths={
            "key_folder": "/etc/apt/keyrings",
            "key": "/etc/apt/keyrings/docker.asc",
            "source": "/etc/apt/sources.list.d/docker.sources",
        },
        settings={
            "fingerprint": "9DC858229FC7DD38854AE2D88D81803C0EBFCD88",
            "template": "docker/docker.sources.j2",
        },
    ),
    "nvidia-archive": Names(
        (),
        paths={
            "key": "/usr/share/keyrings/rackwright-nvidia.asc",
            "source": "/etc/apt/sources.list.d/rackwright-nvidia.sources",
            "pin": "/etc/apt/preferences.d/rackwright-nvidia",
        },
        settings={"template": "nvidia_driver/apt.sources.j2"},
    ),
    "docker-registry": Names(("docker-registry",)),
    "enroot": Names(("enroot",), settings={"revision": "1"}),
    "pyxis-build": Names(("gcc", "libc6-dev", "libslurm-dev", "make", "binutils")),
    # {version} is filled in. Source: packages/ of NVIDIA/gdrcopy, read 2026-11-21.
    "gdrcopy": Names(("gdrdrv-dkms={version}", "libgdrapi={version}")),
    "gdrcopy-tests": Names(("gdrcopy-tests={version}",)),
}
