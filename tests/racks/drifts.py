"""Manual changes to nodes, and what a plan must show for each of them."""

from __future__ import annotations

from dataclasses import dataclass

from tests.racks.site import Operations


@dataclass(frozen=True)
class Drift:
    """One hand on one node."""

    node: str
    by_hand: str
    role: str
    operation: str
    target: str
    """What the change in the plan is a change of."""
    says: tuple[str, ...]
    """The +/- lines of its diff; of a change without a diff: `before -> after`."""
    then: tuple[str, ...] = ()
    """Operations of the same role that follow from it: restarts and reloads."""

    @property
    def operations(self) -> Operations:
        return {(self.node, self.role, name) for name in (self.operation, *self.then)}


FILES_AND_PEOPLE = (
    Drift("head1", "echo '10.9.9.9 intruder' >>/etc/hosts", "base", "Write /etc/hosts", "/etc/hosts",
          ("-10.9.9.9 intruder",)),
    Drift("worker1", "sed -i '/worker2/d' /etc/hosts", "base", "Write /etc/hosts", "/etc/hosts",
          ("+10.77.0.12 worker2.lab.test worker2",)),
    Drift("worker2", "rm /etc/hosts", "base", "Write /etc/hosts", "/etc/hosts", ("None -> file 644 root:root",)),
    Drift("head1", "echo Europe/Berlin >/etc/timezone", "base", "Write /etc/timezone", "/etc/timezone",
          ("-Europe/Berlin", "+UTC")),
    Drift("worker1", "ln -sf /usr/share/zoneinfo/Asia/Tokyo /etc/localtime", "base", "Set the timezone",
          "/etc/localtime", ("link to /usr/share/zoneinfo/Asia/Tokyo -> link to /usr/share/zoneinfo/UTC",)),
    Drift("worker2", "rm /etc/default/locale; echo LANG=C >/etc/default/locale", "base",
          "Link Debian's locale file", "/etc/default/locale", ("file 644 root:root -> link to ../locale.conf",)),
    Drift("worker2", "echo LANG=de_DE.UTF-8 >/etc/locale.conf", "base", "Write /etc/locale.conf",
          "/etc/locale.conf", ("-LANG=de_DE.UTF-8", "+LANG=C.UTF-8")),
    Drift("head1", "rm /etc/apt/apt.conf.d/20auto-upgrades", "base", "Disable apt's periodic upgrades",
          "/etc/apt/apt.conf.d/20auto-upgrades", ("None -> file 644 root:root",)),
    Drift("worker1", "ln -sf /dev/null /etc/cloud/cloud.cfg.d/99-rackwright.cfg", "base",
          "Keep cloud-init from renaming the node", "/etc/cloud/cloud.cfg.d/99-rackwright.cfg",
          ("link to /dev/null -> file 644 root:root",)),
    Drift("worker1", "hostname intruder", "base", "Set the hostname", "hostname",
          ("intruder -> worker1",)),
    Drift("head1", "usermod -s /bin/sh ada", "access", "Create user ada", "ada", ("shell /bin/sh -> shell /bin/bash",)),
    Drift("worker1", "groupmod -g 3999 ada", "access", "Create group ada", "ada", ("gid 3999 -> gid 3000",)),
    Drift("worker2", "userdel bob; ! getent group bob || groupdel bob", "access", "Create group bob", "bob",
          ("None -> gid 3001",), then=("Create user bob",)),
    Drift("head1", "echo 'ssh-ed25519 AAAA intruder' >>/etc/ssh/authorized_keys.d/bob", "access",
          "Write the keys of bob", "/etc/ssh/authorized_keys.d/bob", ("-ssh-ed25519 AAAA intruder",)),
    Drift("worker1", "chown daemon:daemon /etc/ssh/authorized_keys.d/bob", "access", "Write the keys of bob",
          "/etc/ssh/authorized_keys.d/bob", ("file 644 daemon:daemon -> file 644 root:root",)),
    Drift("worker2", "chmod 644 /etc/sudoers.d/90-rackwright", "access", "Write the sudo rules",
          "/etc/sudoers.d/90-rackwright", ("file 644 root:root -> file 440 root:root",)),
    Drift("head1", "rm /etc/ssh/ssh_known_hosts", "access", "Write every node's host keys",
          "/etc/ssh/ssh_known_hosts", ("None -> file 644 root:root",)),
    Drift("worker1", "echo intruder >>/etc/ssh/shosts.equiv", "access", "Write /etc/ssh/shosts.equiv",
          "/etc/ssh/shosts.equiv", ("-intruder",)),
    Drift("worker2", "sed -i 's/^PasswordAuthentication no/PasswordAuthentication yes/' "
          "/etc/ssh/sshd_config.d/00-rackwright.conf", "access", "Write sshd's settings",
          "/etc/ssh/sshd_config.d/00-rackwright.conf",
          ("-PasswordAuthentication yes", "+PasswordAuthentication no"), then=("Start sshd with its settings",)),
    Drift("worker1", "chmod 700 /etc/systemd/system.conf.d", "tuning", "Create the folder for systemd settings",
          "/etc/systemd/system.conf.d", ("directory 700 root:root -> directory 755 root:root",)),
    Drift("worker2", "sed -i 's/nofile.*/nofile 1024/' /etc/security/limits.d/90-rackwright.conf", "tuning",
          "Write the limits for login sessions", "/etc/security/limits.d/90-rackwright.conf",
          ("-* - nofile 1024", "+* - nofile 1048576", "-root - nofile 1024", "+root - nofile 1048576")),
    Drift("head1", "rm /etc/logrotate.d/slurmctld", "slurm", "Rotate the log of slurmctld",
          "/etc/logrotate.d/slurmctld", ("None -> file 644 root:root",)),
    Drift("worker1", "chmod 700 /etc/slurm/epilog.d", "slurm", "Create the folder for epilog scripts",
          "/etc/slurm/epilog.d", ("directory 700 root:root -> directory 755 root:root",)),
    Drift("worker2", "chmod -x /etc/slurm/prolog.sh", "slurm", "Write the runner of prolog scripts",
          "/etc/slurm/prolog.sh", ("file 644 root:root -> file 755 root:root",)),
)  # fmt: skip

DAEMONS_AND_KERNEL = (
    Drift("head1", "apt-get -qq purge jq >/dev/null", "base", "Install the base packages", "jq", ("None -> *",)),
    Drift("worker1", "systemctl unmask apt-daily.timer", "base", "Mask apt's download timer", "apt-daily.timer",
          ("* -> masked",)),
    Drift("worker2", "systemctl unmask apt-daily-upgrade.timer; systemctl start apt-daily-upgrade.timer", "base",
          "Mask apt's upgrade timer", "apt-daily-upgrade.timer", ("* -> masked",)),
    Drift("worker1", "sysctl -qw net.ipv4.tcp_fastopen=1", "tuning", "Set the kernel values",
          "net.ipv4.tcp_fastopen", ("1 -> 3",)),
    Drift("head1", "sysctl -qw net.ipv4.tcp_max_syn_backlog=100", "tuning", "Set the kernel values",
          "net.ipv4.tcp_max_syn_backlog", ("100 -> 4096",)),
    Drift("worker2", "sed -i s/^SystemMaxUse=.*/SystemMaxUse=1G/ /etc/systemd/journald.conf.d/90-rackwright.conf",
          "tuning", "Write journald's settings", "/etc/systemd/journald.conf.d/90-rackwright.conf",
          ("-SystemMaxUse=1G", "+SystemMaxUse=4G"),
          then=("Start journald with its settings",)),
    Drift("head1", "systemctl stop chrony", "time", "Start chronyd", "chrony.service", ("inactive -> running",)),
    Drift("worker1", "systemctl disable -q chrony", "time", "Start chronyd", "chrony.service",
          ("disabled -> enabled",)),
    Drift("worker2", "chmod 600 /etc/chrony/chrony.conf", "time", "Write chrony's configuration",
          "/etc/chrony/chrony.conf", ("file 600 root:root -> file 644 root:root",)),
    Drift("worker1", "head -c 1024 /dev/urandom >/etc/munge/munge.key", "munge", "Write the munge key",
          "/etc/munge/munge.key", ("file 400 munge:munge -> file 400 munge:munge, content (sensitive)",), then=("Start munged with its key",)),
    Drift("worker2", "chmod 755 /etc/munge", "munge", "Create munge's folder", "/etc/munge",
          ("directory 755 munge:munge -> directory 700 munge:munge",)),
    Drift("head1", "sed -i 's/^innodb_lock_wait_timeout.*/innodb_lock_wait_timeout = 50/' "
          "/etc/mysql/mariadb.conf.d/90-rackwright.cnf", "mariadb", "Write MariaDB's settings",
          "/etc/mysql/mariadb.conf.d/90-rackwright.cnf",
          ("-innodb_lock_wait_timeout = 50", "+innodb_lock_wait_timeout = 900"),
          then=("Start MariaDB with its settings",)),
    Drift("head1", "chmod 644 /etc/slurm/slurmdbd.conf", "slurm", "Write slurmdbd.conf", "/etc/slurm/slurmdbd.conf",
          ("file 644 slurm:slurm -> file 600 slurm:slurm",)),
    Drift("head1", "systemctl stop slurmctld", "slurm", "Start slurmctld with its settings", "slurmctld.service",
          ("* -> running",)),
    Drift("worker1", "sed -i 's/^SlurmctldTimeout=.*/SlurmctldTimeout=99/' /etc/slurm/slurm.conf", "slurm",
          "Write /etc/slurm/slurm.conf", "/etc/slurm/slurm.conf",
          ("-SlurmctldTimeout=99", "+SlurmctldTimeout=120"), then=("Start slurmd with its settings",)),
    Drift("worker2", "systemctl mask -q --now slurmd", "slurm", "Start slurmd with its settings", "slurmd.service",
          ("masked -> unmasked", "masked -> enabled", "inactive -> running")),
    Drift("worker2", "systemctl mask -q --now munge", "munge", "Start munged with its key", "munge.service",
          ("masked -> unmasked", "masked -> enabled", "inactive -> running")),
    Drift("worker1", "printf 'SwitchName=no\\n' >/etc/slurm/topology.conf", "slurm",
          "Remove /etc/slurm/topology.conf", "/etc/slurm/topology.conf", ("file 644 root:root -> None",), then=("Start slurmd with its settings",)),
    Drift("worker2", "chown daemon /var/spool/slurmd", "slurm", "Create slurmd's spool folder",
          "/var/spool/slurmd", ("directory 755 daemon:root -> directory 755 root:root",)),
)  # fmt: skip

_RECORDS = ("head1", "slurm", "Update accounts, users and QOS")
RECORDS = tuple(
    Drift(_RECORDS[0], f"sacctmgr -iQ {by_hand}", _RECORDS[1], _RECORDS[2], target, says)
    for by_hand, target, says in (
        ("add account rogue", "account rogue", ("exists -> None",)),
        ("modify qos where name=urgent set priority=5", "qos urgent", ("priority=5 -> priority=100",)),
        ("modify account where name=teaching set fairshare=7", "account teaching",
         ("fairshare=7 -> fairshare=2",)),
        ("modify account where name=research set description=mine", "account research",
         ("description=mine -> description=research groups",)),
        ("add user bob account=teaching", "user bob", ("exists -> None",)),
        ("remove user where name=ada account=research", "user ada in research", ("None -> *",)),
        ("add qos night priority=1", "qos night", ("exists -> None",)),
        ("modify user where name=root account=burnin set maxjobs=1", "user root in burnin",
         ("maxjobs=1 -> maxjobs=-",)),
    )
)  # fmt: skip
