"""A declared cluster, and shells that answer for its nodes without a network."""

import subprocess
from datetime import date
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from rackwright.checks import CommandResult
from rackwright.errors import ConnectionFailed
from rackwright.model.cluster import Cluster, Network, Node, NodeAddress
from rackwright.model.settings import Burnin, Mirrors, Ssh
from rackwright.model.sku import Sku, Source
from rackwright.model.types import NetworkPurpose, NodeRole, OsRelease, Platform
from rackwright.options import RoleOptions

SKU = Sku(
    name="s",
    vendor="v",
    description="d",
    sockets=1,
    cores_per_socket=2,
    threads_per_core=1,
    memory_mib=2048,
    sources=(Source(text="made up for tests", read=date(2026, 11, 20)),),
)


class Options(RoleOptions):
    """Options of a made-up role."""

    value: int = 1


def node(name, number, *, roles=("alpha",), primary=False, platform=Platform.CONTAINER):
    return Node(
        name=name,
        fqdn=f"{name}.test",
        roles=frozenset({NodeRole.HEAD if primary else NodeRole.WORKER}),
        primary=primary,
        sku=SKU,
        platform=platform,
        os=OsRelease.DEBIAN_13,
        addresses=(NodeAddress(network="m", address=IPv4Address(f"10.0.0.{number}")),),
        options={role: Options(value=number) for role in roles},
    )


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def make_cluster():
    def make(*nodes):
        nodes = nodes or (
            node("head", 1, roles=("alpha", "beta"), primary=True),
            node("w1", 2),
            node("w2", 3),
        )
        network = Network(name="m", purpose=NetworkPurpose.MANAGEMENT, cidr=IPv4Network("10.0.0.0/24"))
        return Cluster(
            name="t",
            domain="test",
            path=Path("/somewhere/t.yaml"),
            sha256="0" * 64,
            networks={"m": network},
            ssh=Ssh(user="ops"),
            mirrors=Mirrors(),
            burnin=Burnin(),
            nodes=nodes,
        )

    return make


@pytest.fixture
def make_node():
    return node


class LocalShell:
    """Every node is this machine; `dead` nodes cannot be reached."""

    def __init__(self, dead=()):
        self.dead = set(dead)
        self.ran = []

    def run(self, node, command, *, stdin=None, timeout):
        if node in self.dead:
            raise ConnectionFailed(f"Cannot connect to {node}: no answer within 10 s.")
        self.ran.append((node, command))
        try:
            done = subprocess.run(
                ["sh", "-c", command],
                check=False,
                capture_output=True,
                input=stdin.encode() if isinstance(stdin, str) else stdin or b"",
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            return CommandResult(command, 124, "", "no end")
        return CommandResult(
            command,
            done.returncode,
            done.stdout.decode(errors="replace"),
            done.stderr.decode(errors="replace"),
        )


@pytest.fixture
def local_shell():
    return LocalShell
