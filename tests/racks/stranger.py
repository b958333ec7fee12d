"""A foreign host on a network of the rack, with an address of its choice."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rackwright.lab import links, names, network
from rackwright.lab.process import run
from tests.racks.site import Site

_CABLE = "s-stranger"
_CONNECT = """\
import socket, sys
source, address, port = sys.argv[1:]
connection = socket.socket()
connection.settimeout(2)
connection.bind((source, 0))
try:
    connection.connect((address, int(port)))
    print("open")
except TimeoutError:
    print("silence")
except OSError as error:
    print("refused" if error.errno in (111, 113) else error)
"""
_SEND = """\
import socket, sys
source, address, port = sys.argv[1:]
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.bind((source, 0))
for _ in range(3):
    sender.sendto(b"hello", (address, int(port)))
"""


@dataclass(frozen=True)
class Stranger:
    """Its network namespace goes with the rack, as those of nodes do."""

    namespace: str
    address: str

    def connect(self, address: str, port: int) -> str:
        """`open`, `refused` or `silence`."""
        return self._python(_CONNECT, address, port).strip()

    def send(self, address: str, port: int) -> None:
        """A few datagrams."""
        self._python(_SEND, address, port)

    def _python(self, program: str, address: str, port: int) -> str:
        argv = [sys.executable, "-c", program, self.address, address, str(port)]
        return run(network.inside(self.namespace, argv), timeout=30).stdout


@contextmanager
def plugged_in(site: Site, cidr: str, *routes: str, bridge: str = names.BRIDGE) -> Iterator[Stranger]:
    """With this address, on a bridge of the rack; `routes` are what it reaches by that port."""
    rack, own = names.namespace(site.name), names.namespace(site.name, "stranger")
    run(["ip", "netns", "add", own], timeout=30)
    try:
        for line in (
            f"-n {rack} link add {_CABLE} type veth peer name eth0 netns {own}",
            f"-n {rack} link set {_CABLE} master {bridge} up",
            f"-n {own} link set lo up",
            f"-n {own} link set eth0 up",
            f"-n {own} address add {cidr} dev eth0",
            *(f"-n {own} route add {route} dev eth0" for route in routes),
        ):
            run(["ip", *line.split()], timeout=30)
        yield Stranger(own, cidr.partition("/")[0])
    finally:
        links.remove_link(site.name, _CABLE)
        run(["ip", "netns", "delete", own], timeout=30)
