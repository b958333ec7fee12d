"""A BMC that speaks IPMI in front of a racked machine: OpenIPMI's simulator, whose Serial over LAN is the machine's line.

It knows no cipher suite but 3. It runs inside a network namespace, where ipmitool has to run as well to reach it.
"""

from __future__ import annotations

import queue
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rackwright.lab import netns, network

ADDRESS, PORT, LINE_PORT = "10.82.0.60", 6230, 6231
USER, PASSWORD, SECRET = "admin", "sol-console-1", "ipmi_password"
_LAN = f"""\
name "sol"
set_working_mc 0x20
  startlan 1
    addr {ADDRESS} {PORT}
    priv_limit admin
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  sol "tcp:{ADDRESS}:{LINE_PORT}" 115200
  user 1 false "" "test" user 10 none md2 md5 straight
  user 2 true "{USER}" "{PASSWORD}" admin 10 none md2 md5 straight
"""
_EMULATION = "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable 0x20\n"
_CHASSIS = '#!/bin/sh\n[ "$1 $2" != "get power" ] || echo "power:1"\n'
_CHUNK = 1 << 16
Recording = list[tuple[str, bytes]]
"""`shows` or `typed`, and the bytes."""


def declaration() -> dict[str, Any]:
    """The node's `bmc`."""
    return {
        "address": ADDRESS,
        "port": PORT,
        "protocol": "ipmi",
        "cipher_suite": 3,
        "user": USER,
        "password": SECRET,
    }


@contextmanager
def serving(namespace: str, folder: Path, line: Callable[[], socket.socket]) -> Iterator[Recording]:
    """The BMC, while the block runs, and what its console carried; `line` opens the machine's serial line."""
    recording: Recording = []
    files = _files(folder)
    alias = ["ip", "-n", namespace, "addr"]
    subprocess.run([*alias, "add", f"{ADDRESS}/32", "dev", "lo"], check=True, timeout=30)
    listener = netns.socket_inside(namespace)
    assert listener is not None
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((ADDRESS, LINE_PORT))
    listener.listen()
    threading.Thread(target=_join, args=(listener, line, recording), daemon=True).start()
    simulator = subprocess.Popen(
        network.inside(namespace, ["ipmi_sim", "-n", *files]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield recording
    finally:
        simulator.terminate()
        simulator.wait(30)
        listener.close()
        subprocess.run([*alias, "del", f"{ADDRESS}/32", "dev", "lo"], check=False, timeout=30)


def _files(folder: Path) -> list[str]:
    folder.mkdir(mode=0o700)
    chassis = folder / "chassis"
    chassis.write_text(_CHASSIS)
    chassis.chmod(0o700)
    (folder / "lan.conf").write_text(f'{_LAN}  chassis_control "{chassis}"\n')
    (folder / "bmc.emu").write_text(_EMULATION)
    return [
        "-c",
        str(folder / "lan.conf"),
        "-f",
        str(folder / "bmc.emu"),
        "-s",
        str(folder / "state"),
    ]


def _join(listener: socket.socket, line: Callable[[], socket.socket], recording: Recording) -> None:
    """Carry bytes between the simulator's one connection and the machine's serial line, until either ends."""
    with suppress(OSError):
        ours, _ = listener.accept()
        theirs = line()
        for words in (("typed", ours, theirs), ("shows", theirs, ours)):
            threading.Thread(target=_copy, args=(*words, recording), daemon=True).start()


def _copy(what: str, source: socket.socket, sink: socket.socket, recording: Recording) -> None:
    """Until one ends. What arrives is taken at once, however slow the other side is: qemu drops what a late reader leaves."""
    arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    sender = threading.Thread(target=_send, args=(arrived, sink), daemon=True)
    sender.start()
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            recording.append((what, data))
            arrived.put(data)
    arrived.put(b"")
    sender.join(10)
    for one in (source, sink):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


def _send(arrived: queue.SimpleQueue[bytes], sink: socket.socket) -> None:
    with suppress(OSError):
        while data := arrived.get():
            sink.sendall(data)


def steps(recording: Recording) -> list[dict[str, str]]:
    """As the files of tests/unit/bmc/mok_recorded have them; what was typed at once is one step."""
    joined: list[tuple[str, bytes]] = []
    for what, data in recording:
        if joined and joined[-1][0] == what:
            joined[-1] = (what, joined[-1][1] + data)
        else:
            joined.append((what, data))
    return [{what: data.decode("latin-1")} for what, data in joined]
