"""A declared cluster, and shells that answer for its nodes without a network."""

import contextlib
import os
import signal
import subprocess

import pytest

from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed
from rackwright.model.options import RoleOptions
from rackwright.model.settings import Ssh
from rackwright.model.types import NodeRole, Platform
from tests import factories


class Options(RoleOptions):
    """Options of a made-up role."""

    value: int = 1


def node(name, number, *, roles=("alpha",), primary=False, platform=Platform.CONTAINER):
    role = NodeRole.HEAD if primary else NodeRole.WORKER
    options = {one: Options(value=number) for one in roles}
    return factories.make_node(name, number, role, platform=platform, options=options)


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
        return factories.make_cluster(*nodes, name="t", ssh=Ssh(user="ops"))

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
        given = stdin.encode() if isinstance(stdin, str) else stdin or b""
        pipe = subprocess.PIPE
        with subprocess.Popen(
            ["sh", "-c", command], stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        ) as process:
            try:
                out, err = process.communicate(given, timeout=timeout)
            except subprocess.TimeoutExpired:
                return CommandResult(command, 124, "", "no end")
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # and what it left behind
        return CommandResult(
            command, process.returncode, out.decode(errors="replace"), err.decode(errors="replace")
        )


@pytest.fixture
def local_shell():
    return LocalShell
