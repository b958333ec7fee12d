"""A network namespace with a switch: the head is on it, a tap of qemu's leads to the machine, and strangers may come."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rackwright.lab import names

HEAD, NODE, STRANGER, PREFIX = "10.77.0.1", "10.77.0.11", "10.77.0.7", 24
TAPS = ("tap0", "tap1")
"""Ports of the switch for the machine's ports."""
_SWITCH = "switch0"


@contextmanager
def wire(name: str) -> Iterator[str]:
    """The namespace of a rack with this name, for as long as the block runs."""
    namespace = names.namespace(name)
    _ip("netns", "add", namespace)
    try:
        inside = ("-n", namespace)
        _ip(*inside, "link", "set", "lo", "up")
        _ip(*inside, "link", "add", _SWITCH, "type", "bridge")
        _ip(*inside, "link", "set", _SWITCH, "up")
        _ip(*inside, "addr", "add", f"{HEAD}/{PREFIX}", "dev", _SWITCH)
        for tap in TAPS:
            _ip(*inside, "tuntap", "add", "dev", tap, "mode", "tap")
            _ip(*inside, "link", "set", tap, "master", _SWITCH)
            _ip(*inside, "link", "set", tap, "up")
        yield namespace
    finally:
        _ip("netns", "delete", namespace)


@contextmanager
def stranger(namespace: str) -> Iterator[str]:
    """Another machine's namespace on the same switch."""
    other = f"{namespace}-other"
    _ip("netns", "add", other)
    try:
        _ip("-n", other, "link", "add", "eth0", "type", "veth", "peer", "name", "other0", "netns", namespace)
        _ip("-n", other, "addr", "add", f"{STRANGER}/{PREFIX}", "dev", "eth0")
        _ip("-n", other, "link", "set", "eth0", "up")
        _ip("-n", namespace, "link", "set", "other0", "master", _SWITCH, "up")
        yield other
        _ip("-n", namespace, "link", "delete", "other0")  # its namespace would take it along, some time later
    finally:
        _ip("netns", "delete", other)


def exists(name: str) -> bool:
    """Whether the namespace is there."""
    return Path("/run/netns", names.namespace(name)).exists()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=30)
