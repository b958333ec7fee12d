"""A slow cable: carries frames between two interfaces, late and with losses in the direction of the node.

The kernel's own netem would do, but many kernels (cloud and container ones above all) are built without
it, and one way which works everywhere is better than two of which one is never tested. Run as a program
inside the rack's namespace: delay.py NODE_SIDE RACK_SIDE MS LOSS. Standard library only, no imports of
the package.
"""

import random
import select
import socket
import sys
import time
from collections import deque
from contextlib import suppress

_SOL_PACKET, _VNET_HDR, _IGNORE_OUTGOING = 263, 15, 23
_ETH_P_ALL = 3
_LARGEST = 1 << 17
READY = "carrying"
"""Printed by the program once no frame is lost any more."""

_QUEUE = 10_000  # frames; a longer queue would be a wrong kind of slow


def parse(milliseconds: str, loss: str) -> tuple[float, float]:
    """Delay in seconds and loss as a probability; ValueError with the reason if invalid."""
    delay, probability = float(milliseconds) / 1000, float(loss) / 100
    if not 0 <= delay <= 60:
        raise ValueError(f"a delay of {milliseconds} ms is not between 0 and 60000")
    if not 0 <= probability <= 1:
        raise ValueError(f"a loss of {loss} % is not between 0 and 100")
    return delay, probability


def carry(node_side: str, rack_side: str, delay: float, loss: float) -> None:
    """Carry frames until ended."""
    node, rack = _open(node_side), _open(rack_side)
    print(READY, flush=True)
    queue: deque[tuple[float, bytes]] = deque()
    while True:
        wait = max(0.0, queue[0][0] - time.monotonic()) if queue else None
        readable, _, _ = select.select([node, rack], [], [], wait)
        if node in readable and (frame := _receive(node)):
            _send(rack, frame)
        if rack in readable and (frame := _receive(rack)) and random.random() >= loss and len(queue) < _QUEUE:
            queue.append((time.monotonic() + delay, frame))
        while queue and queue[0][0] <= time.monotonic():
            _send(node, queue.popleft()[1])


def _open(interface: str) -> socket.socket:
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    # Frames on a virtual cable are large and their checksums unfinished; the header in front describes how to
    # hand them on as they are.
    raw.setsockopt(_SOL_PACKET, _VNET_HDR, 1)
    raw.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
    raw.bind((interface, _ETH_P_ALL))
    return raw


def _receive(raw: socket.socket) -> bytes:
    try:
        return raw.recv(_LARGEST)
    except OSError:  # reported once when the cable is pulled; it may be plugged in again
        return b""


def _send(raw: socket.socket, frame: bytes) -> None:
    with suppress(OSError):  # the cable is cut, or the frame does not fit: a wire reports nothing either
        raw.send(frame)


if __name__ == "__main__":
    carry(sys.argv[1], sys.argv[2], *parse(sys.argv[3], sys.argv[4]))
