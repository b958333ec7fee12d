"""Detects other DHCP servers that would answer network-booting machines: they could boot something else.

Sends each machine's first request on its behalf, as a relay on this control node (RFC 2131, 4.1): answers come
back to the relay's address, and no lease is taken. A server that ignores exactly these MAC addresses is fine.
"""

from __future__ import annotations

import secrets
import socket
import struct
import time
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network

from rackwright.errors import InstallError

_SERVER_PORT = 67
_DISCOVER, _OFFER = 1, 2
_MESSAGE_TYPE, _SERVER_IDENTIFIER, _VENDOR_CLASS, _END, _PAD = 53, 54, 60, 255, 0
_COOKIE = b"\x63\x82\x53\x63"
_HEADER = struct.Struct("!BBBB4sHH4s4s4s4s16s192x")
_ASKED, _WAIT = 3, 4.0
"""Requests per machine, and seconds for all of them: servers may ping an address before they offer it."""


def answering(
    asking: socket.socket, server: IPv4Address, subnet: IPv4Network, macs: Iterable[str], wait: float = _WAIT
) -> dict[str, str]:
    """MAC address to the DHCP server that offered it an address; InstallError if the check fails.

    + asking: a UDP socket on the boot network; it is closed
    + server: this control node's address there
    """
    waiting = {secrets.token_bytes(4): mac for mac in macs}
    with asking:
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        try:
            asking.bind((str(server), _SERVER_PORT))
            return _ask(asking, server, str(subnet.broadcast_address), waiting, wait)
        except OSError as error:
            raise InstallError(
                f"Cannot check for other DHCP servers from {server}, port {_SERVER_PORT}: {error.strerror}.",
                hint="network boot needs root, and no other DHCP server on this control node",
            ) from error


def _ask(
    asking: socket.socket, relay: IPv4Address, to: str, waiting: Mapping[bytes, str], wait: float
) -> dict[str, str]:
    found: dict[str, str] = {}
    begun = time.monotonic()
    for turn in range(_ASKED):
        for transaction, mac in waiting.items():
            if mac not in found:
                asking.sendto(discover(transaction, mac, relay), (to, _SERVER_PORT))
        until = begun + wait * (turn + 1) / _ASKED
        while (left := until - time.monotonic()) > 0:
            asking.settimeout(left)
            try:
                packet, (source, _) = asking.recvfrom(4096)
            except TimeoutError:
                break
            offer = read_offer(packet)
            if offer is not None and offer[0] in waiting:
                found[waiting[offer[0]]] = offer[1] or source
    return found


def discover(transaction: bytes, mac: str, relay: IPv4Address) -> bytes:
    """DHCPDISCOVER of a network-booting machine, forwarded by a relay."""
    nothing = bytes(4)
    hardware = bytes.fromhex(mac.replace(":", "")).ljust(16, b"\0")
    header = _HEADER.pack(1, 1, 6, 1, transaction, 0, 0, nothing, nothing, nothing, relay.packed, hardware)
    vendor = b"PXEClient"
    options = bytes([_MESSAGE_TYPE, 1, _DISCOVER, _VENDOR_CLASS, len(vendor)]) + vendor + bytes([_END])
    return (header + _COOKIE + options).ljust(300, b"\0")  # BOOTP's least size


def read_offer(packet: bytes) -> tuple[bytes, str | None] | None:
    """Transaction and server of a DHCPOFFER; None for anything else."""
    start = _HEADER.size + len(_COOKIE)
    if len(packet) < start or packet[0] != 2 or packet[_HEADER.size : start] != _COOKIE:
        return None
    options = _options(packet[start:])
    if options.get(_MESSAGE_TYPE) != bytes([_OFFER]):
        return None
    server = options.get(_SERVER_IDENTIFIER, b"")
    return packet[4:8], str(IPv4Address(server)) if len(server) == 4 else None


def _options(text: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while at < len(text) and text[at] != _END:
        if text[at] == _PAD:
            at += 1
            continue
        length = text[at + 1] if at + 1 < len(text) else 0
        found[text[at]] = text[at + 2 : at + 2 + length]
        at += 2 + length
    return found
