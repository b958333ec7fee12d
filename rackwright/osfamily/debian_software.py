"""What the roles install on Debian and Ubuntu: packages, units and paths by the names of `rackwright.osfamily.names`.

Sources: as in `debian`.
"""

from __future__ import annotations

from rackwright.osfamily.names import BASE_TOOLS, BEEGFS_CLIENT, BEEGFS_SERVER, HARDWARE_TOOLS, Names

# All of them although they depend on each other: each needs the pinned version.
_SLURM = ("slurm-client", "slurm-wlm-basic-plugins")
_SCHEDMD = ("slurm-smd", "slurm-smd-client")


def _exporter(kind: str, **paths: str) -> Names:
    name = f"prometheus-{kind}-exporter"
    return Names((name,), f"{name}.service", {"program": f"/usr/bin/{name}", **paths}, {"user": "prometheus"})


SOFTWARE = {
    "base": Names((*BASE_TOOLS, "curl", "iproute2", "iputils-ping", "procps", "python3")),
    "hardware": Names(HARDWARE_TOOLS),
    # the folder beside mdadm's own file that it reads as well (mdadm.conf(5))
    "mdadm": Names(("mdadm",), paths={"arrays": "/etc/mdadm/mdadm.conf.d/90-rackwright.conf"}),
    "lvm2": Names(("lvm2",)),
    "nfs-client": Names(("nfs-common",), "nfs-client.target", settings={"nobody_group": "nogroup"}),
    "nfs-server": Names(("nfs-kernel-server",), "nfs-server.service"),
    "xfsprogs": Names(("xfsprogs",)),
    "rsync": Names(("rsync",)),
    "e2fsprogs": Names(("e2fsprogs",)),
    "drives": Names(("nvme-cli",)),
    "bmc": Names(("ipmitool",)),
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
    # names as the archives of Debian 12 and 13 have them (read 2026-11-26), Ubuntu takes Debian's; tools: sssctl
    "sssd": Names(
        ("sssd-ldap", "libnss-sss", "libpam-sss", "sssd-tools"),
        "sssd.service",
        {"account": "/etc/pam.d/common-account", "session": "/etc/pam.d/common-session"},
    ),
    "home-maker": Names(()),  # in libpam-modules
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
    # Debian 12 has 1.1.1, Debian 13 1.2.1, Ubuntu's are in universe (packages.debian.org/age, packages.ubuntu.com/age)
    "backup": Names(("age", "gzip", "python3")),
    "python_environments": Names(("python3-venv",)),
    "redis": Names(("redis-server", "redis-tools"), "redis-server.service", settings={"user": "redis"}),
    "slurmctld": Names(("slurmctld", *_SLURM), "slurmctld.service"),
    "slurmdbd": Names(("slurmdbd", "slurm-wlm-mysql-plugin", *_SLURM), "slurmdbd.service"),
    "slurmd": Names(("slurmd", *_SLURM), "slurmd.service"),
    "slurm-client": Names(_SLURM),
    "extra-users": Names(("libnss-extrausers",)),
    "slurm-nvml": Names(("slurm-wlm-nvml-plugin",)),
    "pam-slurm-adopt": Names(("libpam-slurm-adopt",)),
    "schedmd/slurmctld": Names((*_SCHEDMD, "slurm-smd-slurmctld"), "slurmctld.service"),
    "schedmd/slurmdbd": Names((*_SCHEDMD, "slurm-smd-slurmdbd"), "slurmdbd.service"),
    "schedmd/slurmd": Names((*_SCHEDMD, "slurm-smd-slurmd"), "slurmd.service"),
    "schedmd/slurm-client": Names(_SCHEDMD),
    "schedmd/pam-slurm-adopt": Names(("slurm-smd-libpam-slurm-adopt",)),
    "journal-remote": Names(
        ("systemd-journal-remote",),
        paths={"program": "/usr/lib/systemd/systemd-journal-remote"},
        settings={"user": "systemd-journal-remote", "group": "systemd-journal-remote"},
    ),
    # packages of Grafana's and Elastic's archives; unconfirmed: no archive of theirs was read
    "loki": Names(
        ("loki",), "loki.service", {"conf": "/etc/loki/config.yml"}, {"user": "loki", "group": "loki"}
    ),
    "alloy": Names(
        ("alloy",),
        "alloy.service",
        {"conf": "/etc/alloy/config.alloy", "environment": "/etc/default/alloy"},
        {"user": "alloy", "group": "alloy"},
    ),
    "filebeat": Names(("filebeat",), "filebeat.service", {"conf": "/etc/filebeat/filebeat.yml"}),
    "rsyslog-elasticsearch": Names(("rsyslog", "rsyslog-elasticsearch"), "rsyslog.service"),
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
    # cri-tools: of the archive of Kubernetes itself; the rest are names of Debian 12 and 13 (read 2026-11-28)
    "kubernetes": Names(
        (
            *("conntrack", "containernetworking-plugins", "cri-tools", "curl", "ebtables", "etcd-client"),
            *("ethtool", "iptables", "nftables", "openssl", "procps", "socat"),
        )
    ),
    "shared-address": Names(("haproxy", "keepalived")),
    "haproxy": Names(("haproxy", "socat")),
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
    # names as Debian 12's and Ubuntu's universe archives have them (read 2026-11-26)
    "lmod": Names(("lmod",)),
    "rclone": Names(("rclone", "fuse3")),
    # from vendors' archives, which the site mirrors
    "mountpoint-s3": Names(("mount-s3",)),
    "cvmfs": Names(("cvmfs",)),
    "docker-registry": Names(("docker-registry",)),
    "enroot": Names(("enroot",), settings={"revision": "1"}),
    "pyxis-build": Names(("gcc", "libc6-dev", "libslurm-dev", "make", "binutils")),
    # {version} is filled in. Source: packages/ of NVIDIA/gdrcopy, read 2026-11-21.
    "gdrcopy": Names(("gdrdrv-dkms={version}", "libgdrapi={version}")),
    "gdrcopy-tests": Names(("gdrcopy-tests={version}",)),
    # {name} is filled in
    "package-archive": Names(
        ("curl", "gpg"),
        paths={
            "key_folder": "/etc/apt/keyrings",
            "key": "/etc/apt/keyrings/rackwright-{name}.asc",
            "source": "/etc/apt/sources.list.d/rackwright-{name}.sources",
        },
        settings={"template": "package_archive/apt.sources.j2"},
    ),
    # {version} and {kernel} are filled in. Source: debian/control.main and control.modules.in of lustre-release,
    # master of 2026-08-22, read 2026-11-26.
    "lustre-dkms": Names(
        ("lustre-client-modules-dkms={version}", "lustre-client-utils={version}"),
        paths={"sources": "/usr/src/lustre-client-modules-{upstream}*"},
    ),
    "lustre-prebuilt": Names(("lustre-client-modules-{kernel}={version}", "lustre-client-utils={version}")),
    # {version} is filled in. Source: debian/control and beegfs.spec of BeeGFS 7.4.7 and 8.3.1, and mgmtd/Cargo.toml of
    # beegfs-rust 8.3.1, read 2026-11-26: the same names in both families.
    "beegfs-client": BEEGFS_CLIENT,
    "beegfs-server": BEEGFS_SERVER,
    # For the modules that the WEKA agent and Storage Scale's mmbuildgpl make. Source: what public recipes install before
    # them (IBM's "Software requirements" lists the same for Storage Scale), read 2026-11-26.
    "weka-build": Names(("gcc", "libelf-dev", "make", "tar")),
    "gpfs-build": Names(("cpp", "gcc", "g++", "binutils", "ksh", "libelf-dev", "make", "m4")),
    "ceph": Names(("ceph-common",)),
    # names as the archive of Debian 13 has them (read 2026-11-26); Debian 12 and Ubuntu's universe have the same
    "prometheus": Names(
        ("prometheus",),
        "prometheus.service",
        {"program": "/usr/bin/prometheus", "conf": "/etc/prometheus/prometheus.yml"},
        {"user": "prometheus"},
    ),
    "alertmanager": Names(
        ("prometheus-alertmanager",),
        "prometheus-alertmanager.service",
        {
            "program": "/usr/bin/prometheus-alertmanager",
            "conf": "/etc/prometheus/alertmanager.yml",
            "data": "/var/lib/prometheus/alertmanager",
        },
        {"user": "prometheus"},
    ),
    "node_exporter": _exporter("node"),
    "blackbox_exporter": _exporter("blackbox"),
    "ipmi_exporter": _exporter("ipmi"),
    "mysqld_exporter": _exporter("mysqld", socket="/run/mysqld/mysqld.sock"),
    "snmp_exporter": _exporter("snmp"),
    # of NVIDIA's repository, the same in both families: packaging/ of NVIDIA/dcgm-exporter (read 2026-11-27)
    "dcgm_exporter": Names(
        ("datacenter-gpu-manager-exporter",),
        "nvidia-dcgm-exporter.service",
        {"program": "/usr/bin/dcgm-exporter"},
        {"user": "root"},
    ),
    "slurm_exporter": Names(
        ("python3-prometheus-client", "python3-bcrypt", "python3-yaml"),
        "rackwright-slurm-exporter.service",
        {"program": "/usr/libexec/rackwright/slurm-exporter"},
        {"user": "slurm-exporter", "manager": "slurm"},
    ),
    # of Grafana's own archive; paths: packaging/ of grafana/grafana (read 2026-11-27), unconfirmed on a node
    "grafana": Names(
        ("grafana",),
        "grafana-server.service",
        {
            "program": "/usr/share/grafana/bin/grafana",
            "home": "/usr/share/grafana",
            "conf": "/etc/grafana/grafana.ini",
            "ldap": "/etc/grafana/ldap.toml",
            "data": "/var/lib/grafana",
            "logs": "/var/log/grafana",
        },
        {"user": "grafana"},
    ),
}
