"""A DHCP client that only asks: what a firmware sends first, and what it is offered. Run inside a network namespace.

Arguments: MAC address, vendor class, processor architecture. Prints a JSON object; `null` where nothing answers.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys

PORT = "nic0"
_SECONDS = 1.0
_MAGIC = b"\x63\x82\x53\x63"
_DISCOVER = b"\x35\x01\x01"
_ASKED = b"\x37\x05\x01\x03\x36\x3c\x43"
"""Option 55: the options that are asked for."""


def offer(mac: str, vendor: str, architecture: int) -> dict[str, object] | None:
    """What a machine is offered."""
    number, hardware = os.urandom(4), bytes.fromhex(mac.replace(":", ""))
    fixed = struct.pack(
        "!4B4s2H16x16s192x", 1, 1, 6, 0, number, 0, 0x8000, hardware
    )  # 0x8000: answer by broadcast
    kind = bytes([60, len(vendor)]) + vendor.encode() + struct.pack("!BBH", 93, 2, architecture)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        asking.settimeout(_SECONDS)
        asking.setsockopt(
            socket.SOL_SOCKET, socket.SO_BINDTODEVICE, PORT.encode()
        )  # no route leads there yet
        asking.bind(("", 68))
        asking.sendto(fixed + _MAGIC + _DISCOVER + _ASKED + kind + b"\xff", ("255.255.255.255", 67))
        try:
            answer = asking.recv(4096)
        except TimeoutError:
            return None
    assert answer[4:8] == number
    options = _options(answer[240:])
    file = options[67] if 67 in options else answer[108:236]
    return {
        "address": socket.inet_ntoa(answer[16:20]),
        "vendor": options.get(60, b"").decode() or None,
        "file": file.rstrip(b"\0").decode() or None,
    }


def _options(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while data and data[0] != 255:
        if data[0] == 0:
            data = data[1:]
            continue
        found[data[0]], data = data[2 : 2 + data[1]], data[2 + data[1] :]
    return found


if __name__ == "__main__":
    print(json.dumps(offer(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
