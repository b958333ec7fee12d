"""Listens inside a rack's namespace and forwards each connection to a port outside.

Run as a program: relay.py NAMESPACE ADDRESS PORT TARGET_PORT. The listening socket is made inside the
namespace and stays there; the process itself lives outside, where the target is. Standard library only,
no imports of the package.
"""

import asyncio
import ctypes
import socket
import sys
from contextlib import suppress

_CLONE_NEWNET = 0x40000000
_CHUNK = 1 << 18
_BACKLOG = 256  # a hundred nodes ask at once, with several connections each


def listen(namespace: str, address: str, port: int) -> socket.socket:
    """A listening socket inside a namespace; the process comes back."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net", "rb") as home, open(namespace, "rb") as foreign:
        for target in (foreign, home):
            if libc.setns(target.fileno(), _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"cannot enter {target.name}")
            if target is foreign:
                listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    return listener


async def serve(listener: socket.socket, target_port: int) -> None:
    """Carry connections until ended."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target_port)
            await asyncio.gather(_carry(reader, far_writer), _carry(far_reader, writer))
        writer.close()

    server = await asyncio.start_server(connected, sock=listener, backlog=_BACKLOG)
    await server.serve_forever()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()
    except OSError:  # either side hung up; closing notifies the other
        writer.close()


def main(argv: list[str]) -> None:
    """Run with the arguments of the command line."""
    namespace, address, port, target_port = argv
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(listen(namespace, address, int(port)), int(target_port)))


if __name__ == "__main__":
    main(sys.argv[1:])
