"""A network namespace with one cable: the head's end has an address, the machine's end is a tap of qemu's."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rackwright.lab import names

HEAD, NODE, PREFIX = "10.77.0.1", "10.77.0.11", 24
TAP = "tap0"


@contextmanager
def wire(name: str) -> Iterator[str]:
    """The namespace of a rack with this name, for as long as the block runs."""
    namespace = names.namespace(name)
    _ip("netns", "add", namespace)
    try:
        _ip("-n", namespace, "link", "set", "lo", "up")
        _ip("-n", namespace, "tuntap", "add", "dev", TAP, "mode", "tap")
        _ip("-n", namespace, "addr", "add", f"{HEAD}/{PREFIX}", "dev", TAP)
        _ip("-n", namespace, "link", "set", TAP, "up")
        yield namespace
    finally:
        _ip("netns", "delete", namespace)


def exists(name: str) -> bool:
    """Whether the namespace is there."""
    return Path("/run/netns", names.namespace(name)).exists()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=30)
