"""What the roles install on Enterprise Linux: packages, units and paths by the names of `rackwright.osfamily.names`.

Sources: as in `el`.
"""

from __future__ import annotations

from rackwright.osfamily.names import BASE_TOOLS, BEEGFS_CLIENT, BEEGFS_SERVER, HARDWARE_TOOLS, Names


def _exporter(kind: str, **paths: str) -> Names:
    name = f"{kind}_exporter"
    return Names((name,), f"{name}.service", {"program": f"/usr/bin/{name}", **paths}, {"user": "prometheus"})


SOFTWARE = {
    # curl is left as installed: curl and curl-minimal conflict, and one of them is always there
    "base": Names((*BASE_TOOLS, "iproute", "iputils", "procps-ng", "python3")),
    "hardware": Names(HARDWARE_TOOLS),
    # the folder beside mdadm's own file that it reads as well (mdadm.conf(5))
    "mdadm": Names(("mdadm",), paths={"arrays": "/etc/mdadm.conf.d/90-rackwright.conf"}),
    "lvm2": Names(("lvm2",)),
    "nfs-client": Names(("nfs-utils",), "nfs-client.target", settings={"nobody_group": "nobody"}),
    "nfs-server": Names(("nfs-utils",), "nfs-server.service"),
    "xfsprogs": Names(("xfsprogs",)),
    "rsync": Names(("rsync",)),
    "e2fsprogs": Names(("e2fsprogs",)),
    "drives": Names(("nvme-cli",)),
    "bmc": Names(("ipmitool",)),
    "bluefield": Names(("mstflint",)),  # mstconfig, which reads a card's mode
    # NVIDIA's inbox documentation for RHEL 9.4 and 9.5, "Important Packages and Their Installation", names them all
    # (read 2026-11-25); rdma is in iproute
    "rdma": Names(
        ("rdma-core", "libibverbs-utils", "librdmacm-utils", "perftest", "iproute"),
        paths={"rdma_rename": "/usr/lib/udev/rdma_rename"},
    ),
    "infiniband": Names(("infiniband-diags",)),
    "opensm": Names(("opensm",), "opensm.service"),
    "mstflint": Names(("mstflint",)),
    "curl": Names(()),
    "certificates": Names(("ca-certificates", "openssl")),
    "locales": Names(("glibc-common", "glibc-locale-source")),
    "openssh": Names(
        ("openssh-clients", "openssh-server", "sudo"),
        "sshd.service",
        {"keysign": "/usr/libexec/openssh/ssh-keysign"},
    ),
    # unconfirmed: from AppStream or EPEL, which a site adds where AppStream has none
    # unconfirmed: dcb in iproute, as in Debian's iproute2
    "dcb": Names(("iproute", "mstflint")),  # mstconfig reads what firmware has of congestion control
    "lldpd": Names(("lldpd",), "lldpd.service"),
    # docs.redhat.com, "Configuring authentication and authorization in RHEL" 8 and 9 (read 2026-11-26);
    # the home-maker is what authselect's feature with-mkhomedir asks for; unconfirmed on EL 10
    "sssd": Names(
        ("sssd-ldap", "sssd-client", "sssd-tools", "authselect"),
        "sssd.service",
        {"account": "/etc/pam.d/password-auth", "session": "/etc/pam.d/password-auth"},
    ),
    "home-maker": Names(("oddjob-mkhomedir",), "oddjobd.service"),
    "nftables": Names(("nftables",)),
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
    "unbound": Names(
        ("unbound",),
        "unbound.service",
        {
            "conf": "/etc/unbound/unbound.conf",
            "names": "/etc/unbound/rackwright-names.conf",
            "trust_anchor": "/var/lib/unbound/root.key",  # of unbound-libs
        },
    ),
    "resolv.conf": Names(()),  # NetworkManager alone writes it
    "munge": Names(
        ("munge",),
        "munge.service",
        {"key": "/etc/munge/munge.key", "daemon_options": "/etc/sysconfig/munge"},
    ),
    # read in the order of their names, so that ours comes after the distribution's
    "mariadb": Names(("mariadb-server",), "mariadb.service", {"conf": "/etc/my.cnf.d/zz-rackwright.cnf"}),
    # unconfirmed: from EPEL, which a site adds
    "backup": Names(("age", "gzip", "python3")),
    "python_environments": Names(()),  # EL 9's own Python is 3.9, older than Ray needs
    "redis": Names((), settings={"user": "redis"}),  # EL 10 has Valkey in its place
    "slurmctld": Names(("slurm", "slurm-slurmctld"), "slurmctld.service"),
    "slurmdbd": Names(("slurm", "slurm-slurmdbd"), "slurmdbd.service"),
    "slurmd": Names(("slurm", "slurm-slurmd"), "slurmd.service"),
    "slurm-client": Names(("slurm",)),
    "extra-users": Names(()),  # images of pods are built of Debian alone
    "slurm-nvml": Names(()),  # not built there
    "pam-slurm-adopt": Names(("slurm-pam_slurm",)),
    # SchedMD's own packages have EPEL's names
    "schedmd/slurmctld": Names(("slurm", "slurm-slurmctld"), "slurmctld.service"),
    "schedmd/slurmdbd": Names(("slurm", "slurm-slurmdbd"), "slurmdbd.service"),
    "schedmd/slurmd": Names(("slurm", "slurm-slurmd"), "slurmd.service"),
    "schedmd/slurm-client": Names(("slurm",)),
    "schedmd/pam-slurm-adopt": Names(("slurm-pam_slurm",)),
    # unconfirmed: names and paths as of Debian's, which are systemd's own
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
        {"conf": "/etc/alloy/config.alloy", "environment": "/etc/sysconfig/alloy"},
        {"user": "alloy", "group": "alloy"},
    ),
    "filebeat": Names(("filebeat",), "filebeat.service", {"conf": "/etc/filebeat/filebeat.yml"}),
    "rsyslog-elasticsearch": Names(("rsyslog", "rsyslog-elasticsearch"), "rsyslog.service"),
    "logrotate": Names(("logrotate",), "logrotate.timer"),
    # unconfirmed: hwloc-devel, libevent-devel and pmix-devel may need the repository CRB
    "mpi": Names(
        ("openmpi",),
        paths={"library": "/usr/lib64/openmpi/lib/libmpi.so.40", "programs": "/usr/lib64/openmpi/bin"},
    ),
    "mpi-dev": Names(("openmpi-devel", "gcc", "gcc-c++", "glibc-devel")),
    "mpi4py": Names(("python3-mpi4py-openmpi", "python3-numpy")),
    # unconfirmed: the engine's own package as Oracle Linux 9 and Fedora have it since 2021
    "fio": Names(("fio", "fio-engine-libaio")),
    "torch": Names(()),
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
    "kubernetes": Names(()),
    "shared-address": Names(("haproxy", "keepalived")),
    "haproxy": Names(("haproxy", "socat")),
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
    # from EPEL; Lmod's scripts in /etc/profile.d as public notes and playbooks that agree have them (read 2026-11-26)
    "lmod": Names(("Lmod",)),
    "rclone": Names(("rclone", "fuse3")),
    # from vendors' archives, which the site mirrors
    "mountpoint-s3": Names(("mount-s3",)),
    "cvmfs": Names(("cvmfs",)),
    "docker-registry": Names(()),
    "enroot": Names(("enroot",), settings={"revision": "1.el8"}),  # one for EL 8 and later
    "pyxis-build": Names(("gcc", "glibc-devel", "make", "slurm-devel", "binutils")),
    # {version} is filled in; the module's release ends in `dkms`, and the tests are in gdrcopy
    "gdrcopy": Names(("gdrcopy-kmod={version}dkms", "gdrcopy={version}")),
    "gdrcopy-tests": Names(()),
    # {name} is filled in
    "package-archive": Names(
        ("gnupg2",),
        paths={
            "key": "/etc/pki/rpm-gpg/RPM-GPG-KEY-rackwright-{name}",
            "source": "/etc/yum.repos.d/rackwright-{name}.repo",
        },
        settings={"template": "package_archive/dnf.repo.j2"},
    ),
    # {version} is filled in. Source: lustre-dkms.spec.in and lustre.spec.in of lustre-release (a build with
    # --disable-server), master of 2026-08-22, read 2026-11-26.
    "lustre-dkms": Names(
        ("lustre-client-dkms={version}", "lustre-client={version}"),
        paths={"sources": "/usr/src/lustre-client-{upstream}*"},
    ),
    "lustre-prebuilt": Names(("kmod-lustre-client={version}", "lustre-client={version}")),
    # {version} is filled in. Source: debian/control and beegfs.spec of BeeGFS 7.4.7 and 8.3.1, and mgmtd/Cargo.toml of
    # beegfs-rust 8.3.1, read 2026-11-26: the same names in both families.
    "beegfs-client": BEEGFS_CLIENT,
    "beegfs-server": BEEGFS_SERVER,
    # For the modules that the WEKA agent and Storage Scale's mmbuildgpl make. Source: what public recipes install before
    # them (IBM's "Software requirements" lists the same for Storage Scale), read 2026-11-26.
    "weka-build": Names(("elfutils-libelf-devel", "gcc", "make", "tar")),
    "gpfs-build": Names(("cpp", "gcc", "gcc-c++", "binutils", "elfutils-libelf-devel", "ksh", "make", "m4")),
    "ceph": Names(
        ("ceph-common",)
    ),  # of the CentOS Storage SIG, or Ceph's own repository: AppStream has none
    # The naming scheme of the Prometheus packages that sites mirror (spec and service files of the common rpm project, read 2026-11-26);
    # unconfirmed on a node
    "prometheus": Names(
        ("prometheus2",),
        "prometheus.service",
        {"program": "/usr/bin/prometheus", "conf": "/etc/prometheus/prometheus.yml"},
        {"user": "prometheus"},
    ),
    "alertmanager": Names(
        ("alertmanager",),
        "alertmanager.service",
        {
            "program": "/usr/bin/alertmanager",
            "conf": "/etc/prometheus/alertmanager.yml",
            "data": "/var/lib/prometheus/alertmanager",
        },
        {"user": "prometheus"},
    ),
    "node_exporter": _exporter("node"),
    "blackbox_exporter": _exporter("blackbox"),
    "ipmi_exporter": _exporter("ipmi"),
    "mysqld_exporter": _exporter("mysqld", socket="/var/lib/mysql/mysql.sock"),
    "snmp_exporter": _exporter("snmp"),
    # of NVIDIA's repository, the same in both families: packaging/ of NVIDIA/dcgm-exporter (read 2026-11-27)
    "dcgm_exporter": Names(
        ("datacenter-gpu-manager-exporter",),
        "nvidia-dcgm-exporter.service",
        {"program": "/usr/bin/dcgm-exporter"},
        {"user": "root"},
    ),
    # unconfirmed: the first two of EPEL, the third of BaseOS
    "slurm_exporter": Names(
        ("python3-prometheus_client", "python3-bcrypt", "python3-pyyaml"),
        "rackwright-slurm-exporter.service",
        {"program": "/usr/libexec/rackwright/slurm-exporter"},
        {"user": "slurm-exporter", "manager": "slurm"},
    ),
    # of Grafana's own archive; paths: packaging/ of grafana/grafana (read 2026-11-27), unconfirmed: no node had it
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
