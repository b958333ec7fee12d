"""Packets of DHCP, as RFC 2131 lays them out; real servers are asked in tests/racks/agent."""

from __future__ import annotations

import random
from ipaddress import IPv4Address

from rackwright.install.strangers import discover, read_offer

_MAC, _RELAY = "02:00:5e:10:00:11", IPv4Address("10.77.0.1")


def _offer(*options: bytes, kind: int = 2) -> bytes:
    asked = discover(b"abcd", _MAC, _RELAY)
    return bytes([2]) + asked[1:240] + bytes([53, 1, kind]) + b"".join(options) + b"\xff"


def test_a_question_has_the_machines_mac_and_the_relays_address():
    packet = discover(b"abcd", _MAC, _RELAY)
    assert len(packet) >= 300
    assert packet[:8] == bytes([1, 1, 6, 1]) + b"abcd"
    assert packet[24:28] == _RELAY.packed
    assert packet[28:34].hex(":") == _MAC
    assert packet[236:243] == b"\x63\x82\x53\x63" + bytes([53, 1, 1])


def test_an_offer_names_its_server():
    server = bytes([54, 4, 10, 77, 0, 7])
    assert read_offer(_offer(b"\0\0", server)) == (b"abcd", "10.77.0.7")
    assert read_offer(_offer()) == (b"abcd", None)
    assert read_offer(_offer(bytes([54, 2, 10, 77]))) == (b"abcd", None)


def test_anything_else_is_no_offer():
    assert read_offer(_offer(kind=5)) is None
    assert read_offer(discover(b"abcd", _MAC, _RELAY)) is None
    whole = _offer(bytes([54, 4, 10, 77, 0, 7]))
    assert [read_offer(whole[:length]) for length in range(242)] == [None] * 242
    noise = random.Random(1)
    for _ in range(2000):
        read_offer(whole[:240] + noise.randbytes(noise.randrange(40)))
