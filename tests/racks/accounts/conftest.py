"""One rack for the set: the directory and Slurm on a head, two workers, and a node of an older release."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from rackwright.status import Status
from rackwright.verify import verify
from tests.racks.accounts import directory
from tests.racks.accounts.directory import BASE, READER, READER_PASSWORD, SERVER, Person
from tests.racks.site import Site

_DECLARED = """\
version: 1
cluster: {name: "", domain: lab.test}
defaults: {os: debian-13, platform: container, sku: lab-node, lab: {cpus: 2, memory_mib: 2048}}
networks:
  management: {purpose: management, cidr: 10.98.0.0/24, gateway: 10.98.0.1}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
mirrors: {apt_proxy: "http://10.98.0.1:3142"}
nodes:
  - {nodes: head1, roles: [head], addresses: {management: 10.98.0.10}}
  - {nodes: "worker[1-2]", roles: [worker], addresses: {management: 10.98.0.11}}
  - {nodes: old1, roles: [storage], os: debian-12, addresses: {management: 10.98.0.20}}
roles:
  base: {}
  access: {users: [{name: bob, uid: 3001, sudo: true}]}
  site_ca: {}
  integrity: {}
"""
DEADLINE_SECONDS = 6
LOGIN_SECONDS = 5
"""What sshd, PAM and the home take besides the lookups, on a machine with other load."""
_ROLES: dict[str, Any] = {
    "accounts": {
        "servers": [f"ldap://{SERVER}"],
        "base": BASE,
        "bind": {"dn": READER, "stored_as": "directory_reader"},
        "allowed_groups": ["research", "hpcadmins"],
        "sudo_groups": ["hpcadmins"],
        "min_id": 20000,
        "max_id": 29999,
        "make_home": True,
        "probe_user": "carol",
        "deadline_seconds": DEADLINE_SECONDS,
        "retry_seconds": 10,
    },
    "munge": {},
    "mariadb": {},
    "slurm": {"accounts": {"research": {}}, "users": {"carol": {"default_account": "research"}}},
}
ALL_ROLES = frozenset({"accounts", "access", "integrity"})
SETTLED = "the directory's probe user is found"
GROUPS = {
    "research": (21000, ("carol", "dave", "bob")),
    "hpcadmins": (21001, ("dave",)),
    "docker": (21002, ("erin",)),
}


class Login(NamedTuple):
    """What became of a login."""

    status: int
    said: str
    seconds: float


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied twice: bare nodes, then with the directory that is there by then."""
    folder = tmp_path_factory.mktemp("accounts")
    site = Site(folder, "acc", yaml.safe_load(_DECLARED))
    with site.booted():
        site.apply()
        directory.install(site, _people(folder), GROUPS)
        for name in ("carol", "bob"):
            directory.put(site, f"/root/{name}.key", (folder / name).read_text())
            site.on("head1", f"chmod 600 /root/{name}.key")
        site.declare(lambda declared: declared["roles"].update(_ROLES))
        site.cli("secrets", "put", "directory_reader", str(site.file), stdin=READER_PASSWORD)
        site.apply()
        yield site


@pytest.fixture
def site(rack: Site, put_right: Callable[[Site], None]) -> Site:
    """The rack as declared, with SSSD connected to the directory."""
    put_right(rack)
    online(rack)
    return rack


def _people(folder: Path) -> tuple[Person, ...]:
    """All have one key; two of them have a name or a number that the nodes refuse from a directory."""
    for name in ("carol", "bob"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
        subprocess.run(command, check=True, timeout=30)
    key = (folder / "carol.pub").read_text().strip()
    numbers = {"carol": 20001, "dave": 20002, "erin": 20003, "bob": 20004, "mallory": 999}
    return tuple(Person(name, uid, key) for name, uid in numbers.items())


def online(site: Site, user: str = "carol") -> None:
    """Until the directory answers and every node's SSSD asks it again."""
    site.on("head1", "systemctl kill -s CONT slapd; systemctl start slapd")
    for node in site.nodes:
        # SIGUSR2: go online at once (sssd(8))
        site.on(
            node,
            "systemctl reset-failed sssd || :; systemctl start sssd; systemctl kill --kill-whom=main -s USR2 sssd\n"
            f"for try in $(seq 60); do sss_cache -E; getent -s sss passwd {user} >/dev/null && exit; sleep 0.5; done; exit 1",
        )


def log_in(site: Site, user: str, node: str, command: str, *, key: str = "carol") -> Login:
    """With a key that the directory has of all its users, from the head."""
    ssh = (
        f"ssh -F none -i /root/{key}.key -o IdentitiesOnly=yes -o BatchMode=yes -o ConnectTimeout=60 "
        f"-o PreferredAuthentications=publickey -o UserKnownHostsFile=none {user}@{node} {shlex.quote(command)}"
    )
    return _timed(site, ssh)


def log_in_by_host(site: Site, user: str, node: str, command: str) -> Login:
    """Without a key: the head vouches for the user."""
    ssh = (
        "ssh -o BatchMode=yes -o ConnectTimeout=60 -o PreferredAuthentications=hostbased "
        f"-o UserKnownHostsFile=none {node} {shlex.quote(command)}"
    )
    return _timed(site, f"cd /; runuser -u {user} -- {ssh}")


def _timed(site: Site, command: str) -> Login:
    began = time.monotonic()
    *said, status = site.on("head1", f"({command}) 2>&1 </dev/null && echo 0 || echo $?").splitlines()
    return Login(int(status), "\n".join(said).strip(), time.monotonic() - began)


def verdicts(
    site: Site, *nodes: str, roles: frozenset[str] = frozenset({"accounts"})
) -> dict[tuple[str, str], tuple[Status, str]]:
    """(node, check) to status and evidence, of all that does not just pass."""
    with site.here():
        report = verify(site.cluster, roles=roles)
    fine = (Status.PASS, Status.OUT_OF_SCOPE)
    return {
        (one.node, one.check): (one.status, one.evidence)
        for one in report.results
        if one.status not in fine and (not nodes or one.node in nodes)
    }
