"""Lets only cluster nodes reach the receiver of the central journal. Runs on its server.

systemd-journal-remote checks certificates only if it was built with GnuTLS: Debian's, of 12 and of 13, accepts lines
from everyone ("Certificate checking disabled."), in the name of any node. So TLS ends here: a connection needs a
certificate of the site's CA whose subject is a declared node, and is forwarded from an address of the loopback network
that belongs to that node alone, since the receiver names files after the address that it sees. Its listening socket is
systemd's; both share a network namespace without other processes or routes.

Standard library, Python 3.9 or newer; runs as the receiver's user.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import os
import socket
import ssl
import sys
from typing import Any

from rackwright.logs.sources import Sources

SETTINGS = "/etc/rackwright/logs/gate.json"
FIRST_SOCKET = 3
"""SD_LISTEN_FDS_START (sd_listen_fds(3))."""
_HANDSHAKE_SECONDS = 20.0
_IDLE_SECONDS = 900.0
"""An idle sender closes its connection, or sends again within this time."""
_BLOCK = 1 << 16
_BACKLOG = 4096
"""After an outage all nodes connect at once."""


def subject(certificate: dict[str, Any] | None) -> str | None:
    """The common name of a certificate from `getpeercert`; None if it has none or several."""
    rows = (certificate or {}).get("subject", ())
    names = [value for row in rows for key, value in row if key == "commonName"]
    return names[0] if len(names) == 1 else None


def context(settings: dict[str, Any]) -> ssl.SSLContext:
    """TLS with the server's certificate; requires a client certificate of the site's CA."""
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    found.minimum_version = ssl.TLSVersion.TLSv1_2
    found.verify_mode = ssl.CERT_REQUIRED
    found.load_verify_locations(settings["ca"])
    found.load_cert_chain(settings["chain"], settings["key"])
    return found


class Gate:
    """Open connections, and where to forward them."""

    def __init__(self, settings: dict[str, Any], sources: Sources) -> None:
        self._nodes = frozenset(settings["nodes"])
        self._receiver = (settings["receiver"], int(settings["receiver_port"]))
        self._at_once = int(settings["at_once"])
        self._sources = sources
        self._connected: dict[str, int] = {}
        self._refused: set[str] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""
        try:
            node = subject(writer.get_extra_info("peercert"))
            if node not in self._nodes or node is None:
                self._note(
                    f"refused {node!r} from {writer.get_extra_info('peername')[0]}: not a node of the cluster"
                )
            elif self._connected.get(node, 0) >= self._at_once:
                self._note(f"refused {node}: it already has {self._at_once} connections")
            else:
                await self._pass_on(node, reader, writer)
        finally:
            writer.close()

    async def _pass_on(self, node: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connected[node] = self._connected.get(node, 0) + 1
        try:
            source = self._sources.address(node)
            there, onwards = await asyncio.open_connection(*self._receiver, local_addr=(source, 0))
        except OSError as error:
            print(f"{node}: the receiver does not accept its lines: {error}", flush=True)
            return
        else:
            try:
                ways = [asyncio.ensure_future(_copy(*way)) for way in ((reader, onwards), (there, writer))]
                _, open_ways = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                if not ways[1].done():  # the node has sent everything: the receiver's answer may still arrive
                    await asyncio.wait(open_ways, timeout=5)
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
            finally:
                onwards.close()
        finally:
            self._connected[node] -= 1

    def _note(self, text: str) -> None:
        """Log once, so that a refused client cannot fill the journal."""
        if text not in self._refused and len(self._refused) < 1000:
            self._refused.add(text)
            print(text, flush=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward until one side ends or is silent for too long."""
    with contextlib.suppress(OSError, ssl.SSLError, asyncio.TimeoutError):
        while block := await asyncio.wait_for(reader.read(_BLOCK), _IDLE_SECONDS):
            writer.write(block)
            await asyncio.wait_for(writer.drain(), _IDLE_SECONDS)


async def run(settings: dict[str, Any], listening: socket.socket) -> None:
    """Serve until the process is terminated."""
    gate = Gate(settings, Sources(settings["sources"]))
    server = await asyncio.start_server(
        gate.serve,
        sock=listening,
        backlog=_BACKLOG,
        ssl=context(settings),
        ssl_handshake_timeout=_HANDSHAKE_SECONDS,
    )
    async with server:
        await server.serve_forever()


def main() -> None:
    """Serve on the socket that systemd listens on."""
    os.umask(0o077)
    if os.environ.get("LISTEN_FDS") != "1":
        sys.exit("no socket from systemd: start it through its socket unit")
    with open(SETTINGS, encoding="utf-8") as file:
        settings = json.load(file)
    ipaddress.ip_address(settings["receiver"])
    asyncio.run(run(settings, socket.socket(fileno=FIRST_SOCKET)))


if __name__ == "__main__":
    main()
