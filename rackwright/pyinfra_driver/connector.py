"""The pyinfra connector `@rackwright/<cluster file>[::<nodeset>]`.

`pyinfra @rackwright/inventory/lab.yaml deploys/site.py` gets one host for every node, with groups
for its roles, rack, switch and SKU. It runs commands over rackwright.ssh: host keys are always
checked, TCP_NODELAY and keepalive are set, every command has a time limit, and a connection that
breaks fails its own node only (pyinfra's own connector lets an EOFError abort the run for all).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gevent
import paramiko
from pyinfra.api.arguments import ConnectorArguments
from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import ConnectError
from pyinfra.connectors.ssh import SSHConnector
from pyinfra.connectors.util import make_unix_command_for_host

from rackwright.clusterfile.load import load_cluster
from rackwright.command import CommandResult
from rackwright.data import Site, site_of
from rackwright.errors import ConnectionFailed
from rackwright.factcache.fetch import Opened
from rackwright.model.cluster import Node
from rackwright.model.selection import pick
from rackwright.pyinfra_driver.connector_state import APART, ConnectorState, as_bytes, text_of
from rackwright.ssh import NodeClient, connect, run

SEPARATOR = "::"


def host_data(site: Site) -> dict[str, Any]:
    """pyinfra host data of one node; every global argument of pyinfra may be set here."""
    ssh = site.cluster.ssh
    return {
        "rackwright": site,
        "_sudo": ssh.become == "sudo",
        "_timeout": ssh.command_timeout_seconds,
    }


def groups_of(node: Node) -> list[str]:
    """pyinfra groups of one node: its roles, and rack_, switch_, sku_ and platform_ groups.

    A node with a leaf switch for each rail is in the group of each and in that of the unit, `switch_leaf1-8`.
    """
    named = (
        ("rack", node.rack),
        *(("switch", name) for name in dict.fromkeys((*node.switches, node.switch))),
        ("sku", node.sku.name),
        ("platform", node.platform),
    )
    return sorted(role.value for role in node.roles) + [f"{kind}_{name}" for kind, name in named if name]


@dataclass(frozen=True)
class Another:
    """A further connection to a node, as root."""

    client: NodeClient
    sudo: bool

    def run(self, command: str, stdin: str, timeout: float) -> CommandResult:
        """Run one command; ConnectionFailed when the connection is lost."""
        return run(self.client, command, sudo=self.sudo, stdin=stdin, timeout=timeout)

    def close(self) -> None:
        """Close it."""
        self.client.close()


class RackwrightConnector(ConnectorState, SSHConnector):
    """Executes on the nodes of a cluster file."""

    handles_execution = True
    client: paramiko.SSHClient | None  # type: ignore[assignment] # pyinfra's is a subclass of it

    @staticmethod
    def make_names_data(name: str) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
        """One (name, data, groups) for every node of `path[::nodeset]`."""
        path, _, nodeset = name.partition(SEPARATOR)
        cluster = load_cluster(Path(path))
        for node in pick(cluster, nodeset or None):
            yield node.name, host_data(Site(cluster, node)), groups_of(node)

    def connect(self) -> None:
        """Connect, host key checked; ConnectError names the node, the address and the cause."""
        if self.client is not None:
            return
        site = site_of(self.host)
        try:
            self.client = connect(site.cluster, site.node)
        except ConnectionFailed as error:
            self.broke(error)
            hint = f" ({error.hint})" if error.hint else ""
            raise ConnectError(f"{error.message}{hint}") from error

    def disconnect(self) -> None:
        """Close the TCP connection too, which pyinfra's own leaves open."""
        if self.client is not None:
            self.client.close()
            self.client = None

    def broke(self, error: ConnectionFailed) -> ConnectionResetError:
        """Also closes what is left of the connection."""
        self.disconnect()
        return super().broke(error)

    def adopt(self, opened: Opened) -> None:
        """Take over a connection and the answers prefetched over it."""
        super().adopt(opened)
        self.client = opened.client

    def another(self, timeout: float) -> Another:
        """A new connection; ConnectionFailed where none is open within `timeout` seconds."""
        site = site_of(self.host)
        limit = max(1, min(site.cluster.ssh.connect_timeout_seconds, int(timeout)))
        ssh = site.cluster.ssh.model_copy(update={"connect_timeout_seconds": limit})
        cluster = site.cluster.model_copy(update={"ssh": ssh})
        late = ConnectionFailed(f"Cannot connect to {site.node.name} within {timeout:.0f} s.")
        with gevent.Timeout(max(timeout, 1), late):
            return Another(connect(cluster, site.node), sudo=ssh.become == "sudo")

    def go_on_with(self, connection: Another) -> None:
        """Use it from now on; answers prefetched over the one before are asked for one by one again."""
        self.disconnect()
        self.client, self.answers = connection.client, None

    def execute(self, command: StringCommand, arguments: ConnectorArguments) -> CommandResult:
        """Run one command. A lost connection is an OSError, as pyinfra expects."""
        arguments.pop("_get_pty", None)
        arguments.pop("_success_exit_codes", None)
        limit = arguments.pop("_timeout", None) or site_of(self.host).cluster.ssh.command_timeout_seconds
        stdin = as_bytes(arguments.pop("_stdin", None))
        if self.client is None:
            raise ConnectionResetError(self.lost or "not connected")
        line, sudo = text_of(command), bool(arguments.get("_sudo"))
        if any(arguments.get(name) for name in APART):  # another user, folder or environment
            line = make_unix_command_for_host(self.state, self.host, command, **arguments).get_raw_value()
            sudo = False
        try:
            return run(self.client, line, sudo=sudo, stdin=stdin, timeout=limit)
        except ConnectionFailed as error:
            raise self.broke(error) from error
