"""One rack for the set: a head with Slurm, its database and its backups, and a worker."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pyrage
import pytest
import yaml

from tests.racks.site import Site

PLACE = "/srv/backup"
_DECLARED = """\
version: 1
cluster: {name: "", domain: lab.test}
defaults: {os: debian-13, platform: container, sku: lab-node, lab: {cpus: 2, memory_mib: 2048}}
networks:
  management: {purpose: management, cidr: 10.96.0.0/24, gateway: 10.96.0.1}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
mirrors: {apt_proxy: "http://10.96.0.1:3142"}
nodes:
  - {nodes: head1, roles: [head], addresses: {management: 10.96.0.10}}
  - {nodes: worker1, roles: [worker], addresses: {management: 10.96.0.11}}
roles:
  base: {}
  access: {users: [{name: ada, uid: 3000}]}
  munge: {}
  mariadb: {}
  slurm:
    partitions: {main: {nodes: worker1, default: true, max_time: "01:00:00"}}
    accounts: {research: {}}
    users: {ada: {default_account: research}}
  backup: {place: /srv/backup, every: "*-*-* 02:30:00"}
"""
# what a new disk has: none of the programs, none of their state, none of rackwright's; the place is another disk
_EMPTY = """\
systemctl stop slurmctld slurmdbd mariadb rackwright-backup.timer
DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 purge --autoremove \
  'slurm*' 'mariadb*' age >/dev/null 2>&1
rm -rf /var/lib/mysql /etc/mysql /var/lib/slurm /etc/slurm /var/log/slurm /var/lib/rackwright /etc/rackwright
rm -f /etc/systemd/system/rackwright-backup.* /usr/libexec/rackwright/backup
systemctl daemon-reload
! command -v slurmctld && ! command -v mariadb && ! command -v age
"""


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once from bare nodes."""
    site = Site(tmp_path_factory.mktemp("backup"), "bu", yaml.safe_load(_DECLARED))
    with site.booted():
        site.apply()
        yield site


def make_backup(site: Site) -> str:
    """Start the timer's service; the name of the backup that it has made."""
    site.on("head1", "systemctl start rackwright-backup.service")
    return backups(site)[-1]


def backups(site: Site) -> list[str]:
    """Names of all backups in the place, oldest first."""
    return site.on("head1", f"ls {PLACE}/{site.name}").split()


def empty_head(site: Site) -> None:
    """Leave nothing of the head but its place of backups and its access."""
    site.on("head1", _EMPTY, 600)


def asked(site: Site, command: str) -> str:
    """What a command of Slurm prints on the head, once slurmdbd and slurmctld answer."""
    return site.on(
        "head1",
        f"for try in $(seq 60); do scontrol ping 2>&1 | grep -q UP && sacctmgr -n list cluster >/dev/null && break; "
        f"sleep 1; done; {command}",
        120,
    )


def unpack_site(site: Site, name: str) -> dict[str, bytes]:
    """The cluster file and the secrets store of a backup, by the steps of docs/backup.md with age and tar alone."""
    folder = site.folder / "unpacked"
    folder.mkdir(exist_ok=True)
    encrypted = folder / "site.gz.age"
    done = subprocess.run(
        site.rack.ssh_command("head1", ("sudo", "cat", f"{PLACE}/{site.name}/{name}/site.gz.age")),
        capture_output=True,
        timeout=120,
        check=True,
    )
    encrypted.write_bytes(done.stdout)
    key = (site.config / "rackwright" / "identity.age.txt").read_text().splitlines()[-1]
    identity = pyrage.x25519.Identity.from_str(key)
    # as `age -d`: this machine need not have age
    packed = pyrage.decrypt(encrypted.read_bytes(), [identity])
    subprocess.run(["tar", "xzf", "-", "-C", str(folder)], input=packed, timeout=60, check=True)
    encrypted.unlink()
    return {path.name: path.read_bytes() for path in folder.iterdir()}
