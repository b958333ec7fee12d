"""Answers and reports, with the programs of Debian's installer: its netcfg, preseeding, shell, wget and TLS library."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.install.authority import credentials
from rackwright.install.desk import Case, Desk
from rackwright.install.handover.files import InstallerFiles, find
from rackwright.install.handover.node import Handover
from rackwright.install.handover.requests import Site
from rackwright.install.handover.server import AnswerServer
from rackwright.install.record import Journal, Record, folder
from rackwright.install.server import Server
from rackwright.install.states import State
from rackwright.lab.netns import socket_inside
from tests.racks.installers.initrd import Initrd, cable
from tests.racks.installers.netboot import Unpacked

pytestmark = [pytest.mark.lab, pytest.mark.proof]

HEAD, MAC = "10.88.0.1", "02:00:5e:10:00:12"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPk5tZOUybMSrPOOTAVmWKNCUykzK2rjVMXdGZJkJNRP admin"
_RACK = "initrd"
_DECLARED = f"""\
version: 1
cluster: {{name: {_RACK}, domain: installers.test}}
defaults: {{os: debian-12, platform: vm, sku: lab-node, lab: {{cpus: 2, memory_mib: 2048}}}}
networks:
  management: {{purpose: management, cidr: 10.88.0.0/24, gateway: 10.88.0.1}}
  out-of-band: {{purpose: bmc, cidr: 10.89.0.0/24}}
boot_network: {{server: {HEAD}}}
ssh: {{user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}}
nodes:
  - nodes: node1
    roles: [head]
    addresses: {{management: 10.88.0.12}}
    macs: ["{MAC}"]
    bmc: {{address: 10.89.0.12}}
    install: {{installer: preseed, installer_files: NETBOOT, disk: {{serials: [DISK-1]}}}}
roles: {{}}
"""


class _NoMedium:
    """Keeps the kernel arguments, with which the steps are run."""

    arguments = ""

    def put(self, files: InstallerFiles, arguments: str, record: Record) -> str:
        self.arguments = arguments
        return "none"

    def put_again(self, files: InstallerFiles, arguments: str, record: Record) -> None:
        """Nothing boots."""


class Head:
    """The head's servers in a namespace, and a node whose installer is to boot."""

    def __init__(self, place: Path, netboot: Path, namespace: str) -> None:
        (place / "cluster.yaml").write_text(_DECLARED.replace("NETBOOT", str(netboot)))
        cluster = load_cluster(place / "cluster.yaml")
        assert cluster.boot_network is not None
        (self.node,) = cluster.nodes
        keys = credentials(cluster.name, frozenset((cluster.boot_network.server,)))
        self.journal, self.medium = Journal(cluster.name, self.node.name), _NoMedium()
        site = Site(cluster, cluster.boot_network, KEY, keys.ca.decode())
        self.handover = Handover(site, self.node, self.journal, find(self.node), self.medium)
        desk = Desk()
        desk.open(Case(self.node, self.journal, lambda _: {}, None))
        listeners = [self._listener(namespace, port) for port in (8443, 8480)]
        self.servers = [
            Server(desk, listeners[:1], keys.chain),
            AnswerServer(listeners[1], self.handover.file),
        ]
        self._approve()

    def _approve(self) -> None:
        disks = [{"path": "/dev/vda", "serial": "DISK-1", "signatures": [], "by_path": None}]
        self.journal.move(State.PRECHECKED, "", run="k3x9ab12", mode="install", serial="SN-1")
        for state in (State.ARMED, State.DISCOVERED, State.INVENTORIED, State.APPROVED):
            self.journal.move(state)
        self.journal.move(State.HANDED_OVER, "", disks=disks)
        made = self.handover.make(self.journal.record)
        self.journal.move(State.INSTALLER, "", token_until=time.time() + 600, **made)

    def lines(self) -> list[dict[str, Any]]:
        """The journal."""
        text = (folder(_RACK) / "node1.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    @staticmethod
    def _listener(namespace: str, port: int) -> Any:
        opened = socket_inside(namespace)
        assert opened is not None
        opened.bind((HEAD, port))
        opened.listen(16)
        return opened


@pytest.fixture
def head(
    tmp_path: Path, unpacked: Unpacked, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Head, Initrd]]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with cable(_RACK, f"{_RACK}-node", HEAD, MAC) as (first, second):
        made = Head(tmp_path, unpacked.netboot, first)
        yield made, Initrd(tmp_path / "root", unpacked.netboot / "initrd.gz", second)
        for server in made.servers:
            server.close()


@pytest.mark.smoke
def test_the_answers_are_fetched_the_session_is_spent_and_a_failed_check_is_reported(
    head: tuple[Head, Initrd],
):
    """The approved disk is not there, which is what the check on the node is for."""
    site, initrd = head
    said = initrd.boot(site.medium.arguments)
    assert "inet 10.88.0.12/24" in said, said
    assert "METHOD regular" in said, said
    lines = site.lines()
    phases = [line["phase"] for line in lines if str(line.get("phase", "")).startswith("fetched")]
    assert phases == ["fetched preseed.cfg", "fetched guard.sh", "fetched finish.sh"], said
    assert [line["state"] for line in lines if "state" in line][-3:] == [
        "installer",
        "installing",
        "failed",
    ], said
    reason = "check: 0 disks have the serial number DISK-1, and one was approved; nothing was written"
    assert site.journal.record.reason == reason
    session = (initrd.folder / "run/rackwright/once").exists()
    assert not session, "what could report is gone from the machine"


def test_a_second_boot_with_the_same_arguments_gets_nothing(head: tuple[Head, Initrd]):
    """As of a machine that another has copied the command line of."""
    site, initrd = head
    first = initrd.boot(site.medium.arguments)
    assert site.journal.record.state is State.FAILED, first
    before = site.lines()
    said = initrd.boot(site.medium.arguments)
    assert "404" in said, said
    assert "METHOD regular" not in said, said
    assert "rackwright:" not in said, "the check is one of the answers"
    assert site.lines() == before
