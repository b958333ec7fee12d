"""One drift of every kind that a plan can report, seeded alone on a node that was in sync.

A node whose facts have the digest of its last evaluation is not evaluated: no drift may hide behind that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from rackwright.plan.changes import Kind
from rackwright.roles.health.texts import modules_folder
from tests.racks.drifts import Drift
from tests.racks.site import Site, changed_by, operations


@dataclass(frozen=True)
class Seed:
    """A drift, a description of it, and the kind of change that must report it."""

    what: str
    kind: Kind
    drift: Drift


def _seed(
    node: str, kind: Kind, what: str, by_hand: str, role: str, name: str, target: str, *then: str
) -> Seed:
    return Seed(what, kind, Drift(node, by_hand, role, name, target, (), then))


_RECORDS = ("slurm", "Update accounts, users and QOS")
_CHRONY = "/etc/chrony/chrony.conf"
_SUDOERS = "/etc/sudoers.d/90-rackwright"
_LIMITS = "/etc/security/limits.d/90-rackwright.conf"
_MODULES = modules_folder()
_SYSTEM = "/etc/systemd/system.conf.d/90-rackwright.conf"

SEEDS = (
    # The head
    _seed("head1", "file", "content", "echo '10.9.9.9 x' >>/etc/hosts", "base", "Write /etc/hosts", "/etc/hosts"),
    _seed("head1", "slurm", "Slurm QOS", "sacctmgr -iQ modify qos where name=urgent set priority=5", *_RECORDS,
          "qos urgent"),
    _seed("head1", "file", "owner", f"chown daemon {_CHRONY}", "time", "Write chrony's configuration", _CHRONY),
    _seed("head1", "slurm", "Slurm account", "sacctmgr -iQ add account rogue", *_RECORDS, "account rogue"),
    _seed("head1", "package", "package removed", "apt-get -qq purge jq >/dev/null", "base",
          "Install the base packages", "jq"),
    _seed("head1", "slurm", "Slurm association", "sacctmgr -iQ remove user where name=ada account=research",
          *_RECORDS, "user ada in research"),
    _seed("head1", "unit", "unit stopped", "systemctl stop chrony", "time", "Start chronyd", "chrony.service"),
    _seed("head1", "database", "database rights", "mariadb -e 'GRANT SELECT ON mysql.* TO slurm@localhost'",
          "mariadb", "Create slurmdbd's database and user", "rights of database user slurm@localhost"),
    _seed("head1", "user", "user's shell", "usermod -s /bin/sh ada", "access", "Create user ada", "ada"),
    _seed("head1", "slurm", "Slurm fair share",
          "sacctmgr -iQ modify account where name=teaching set fairshare=7", *_RECORDS, "account teaching"),
    # The first worker
    _seed("worker1", "file", "mode", "chmod -x /etc/slurm/prolog.sh", "slurm", "Write the runner of prolog scripts",
          "/etc/slurm/prolog.sh"),
    _seed("worker1", "link", "link", "ln -sf /usr/share/zoneinfo/Asia/Tokyo /etc/localtime", "base",
          "Set the timezone", "/etc/localtime"),
    _seed("worker1", "unit", "unit disabled", "systemctl disable -q chrony", "time", "Start chronyd", "chrony.service"),
    _seed("worker1", "sysctl", "sysctl", "sysctl -qw net.ipv4.tcp_fastopen=1", "tuning", "Set the kernel values",
          "net.ipv4.tcp_fastopen"),
    _seed("worker1", "file", "limits", f"sed -i 's/nofile.*/nofile 1024/' {_LIMITS}", "tuning",
          "Write the limits for login sessions", _LIMITS),
    _seed("worker1", "group", "group", "groupmod -g 3999 ada", "access", "Create group ada", "ada"),
    _seed("worker1", "file", "authorized key", "echo 'ssh-ed25519 AAAA x' >>/etc/ssh/authorized_keys.d/bob", "access",
          "Write the keys of bob", "/etc/ssh/authorized_keys.d/bob"),
    _seed("worker1", "directory", "directory", "chmod 700 /etc/systemd/system.conf.d", "tuning",
          "Create the folder for systemd settings", "/etc/systemd/system.conf.d"),
    _seed("worker1", "directory", "module changed", f"echo x=1 >>{_MODULES}/rackwright/status.py", "health",
          "Write the modules of the health check", _MODULES),
    _seed("worker1", "file", "file removed", "rm /etc/timezone", "base", "Write /etc/timezone", "/etc/timezone"),
    _seed("worker1", "file", "link in place of a file", "cp -a /etc/hosts /etc/hosts.mine; ln -sf hosts.mine /etc/hosts",
          "base", "Write /etc/hosts", "/etc/hosts"),
    _seed("worker1", "unit", "file newer than its daemon", f"touch {_CHRONY}", "time", "Start chronyd",
          "chrony.service"),
    # The second worker
    _seed("worker2", "unit", "unit masked", "systemctl mask -q --now munge", "munge", "Start munged with its key",
          "munge.service"),
    _seed("worker2", "unit", "unit unmasked", "systemctl unmask -q apt-daily.timer", "base",
          "Mask apt's download timer", "apt-daily.timer"),
    _seed("worker2", "file", "sudo rights", f"echo 'ada ALL=(ALL) ALL' >>{_SUDOERS}", "access",
          "Write the sudo rules", _SUDOERS),
    _seed("worker2", "file", "secret", "head -c 1024 /dev/urandom >/etc/munge/munge.key", "munge",
          "Write the munge key", "/etc/munge/munge.key", "Start munged with its key"),
    _seed("worker2", "user", "user's home", "usermod -d /tmp bob", "access", "Create user bob", "bob"),
    _seed("worker2", "directory", "directory removed", "rm -r /etc/slurm/plugstack.conf.d", "slurm",
          "Create the folder for SPANK plugins", "/etc/slurm/plugstack.conf.d"),
    _seed("worker2", "directory", "module added", f"touch {_MODULES}/rackwright/json.py", "health",
          "Write the modules of the health check", _MODULES),
    _seed("worker2", "setting", "hostname", "hostname intruder", "base", "Set the hostname", "hostname"),
    _seed("worker2", "file", "file that should not be", "printf 'SwitchName=no\\n' >/etc/slurm/topology.conf", "slurm",
          "Remove /etc/slurm/topology.conf", "/etc/slurm/topology.conf", "Start slurmd with its settings"),
    _seed("worker2", "setting", "account closed", "usermod -e 1 ada", "access", "Unlock the account of ada",
          "account ada"),
    _seed("worker2", "file", "limits of services", f"sed -i s/^DefaultLimitMEMLOCK=.*/DefaultLimitMEMLOCK=8M/ {_SYSTEM}",
          "tuning", "Write the limits for services", _SYSTEM),
    _seed("worker2", "package", "package half-configured",
          "sed -i '/^Package: jq$/,/^$/s/^Status: .*/Status: install ok half-configured/' /var/lib/dpkg/status", "base",
          "Repair the package database", "jq"),
)  # fmt: skip


ELSEWHERE: frozenset[Kind] = frozenset({"certificate", "disk", "reboot"})
"""Kinds that no container of the Slurm rack can have: tests/racks/node seeds them."""


def rounds(seeds: Sequence[Seed], nodes: Sequence[str]) -> Iterator[list[Seed]]:
    """On each node one at a time, on all nodes at once."""
    by_node = ([seed for seed in seeds if seed.drift.node == node] for node in nodes)
    for together in zip_longest(*by_node):
        yield [seed for seed in together if seed is not None]


def one_each(site: Site, seeds: list[Seed]) -> list[str]:
    """Seed a drift on each of these nodes: what was not found, or not as it should be. All is repaired."""
    wrong = [f"{node}: no digest to hide behind" for node, digest in _digests(site).items() if digest is None]
    for seed in seeds:
        site.on(seed.drift.node, seed.drift.by_hand)
    applied = (
        site.converge()
    )  # its last plan evaluates every node that was changed, and remembers the digests
    found = applied.plan.to_json()
    for seed in seeds:
        planned = {operation for operation in operations(found) if operation[0] == seed.drift.node}
        if planned != seed.drift.operations:
            wrong.append(f"{seed.what}: found as {planned}, not {seed.drift.operations}")
        elif (seed.kind, seed.drift.target) not in _changed(found, seed.drift.node):
            wrong.append(f"{seed.what}: found as {_changed(found, seed.drift.node)}")
    if (changed := changed_by(site.runs()[-1])) != operations(found):
        wrong.append(
            f"{[seed.what for seed in seeds]}: {changed} was changed, {operations(found)} was planned"
        )
    return wrong


def in_sync(site: Site) -> None:
    """Every node is as declared, and known by its digest alone."""
    site.converge()
    assert {node["evaluated"] for node in site.plan(0)["nodes"]} == {0}, "the digests are not in memory"


def _digests(site: Site) -> dict[str, str | None]:
    """What the engine's memory holds, by node."""
    found = {}
    for path in (site.state / "rackwright" / site.name / "facts").glob("*.json"):
        found.update({node: entry["digest"] for node, entry in json.loads(path.read_text())["nodes"].items()})
    assert set(found) == set(site.nodes)
    return found


def _changed(document: dict[str, Any], name: str) -> set[tuple[str, str]]:
    (mine,) = (node["operations"] for node in document["nodes"] if node["node"] == name)
    return {(change["kind"], change["target"]) for operation in mine for change in operation["changes"]}
