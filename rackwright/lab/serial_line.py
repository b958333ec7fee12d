"""A machine's serial line on this terminal."""

import os
import select
import sys
import termios
import tty
from pathlib import Path

from rackwright.lab.qemu_socket import console

LEAVE = b"\x1d"
"""Ctrl and ], as in virsh console and telnet."""
_SILENCE_SECONDS = 5.0


def attach_to(path: Path) -> int:
    """Carry bytes between the terminal and the line until the user leaves or the machine ends."""
    with console(path) as line:
        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal) if os.isatty(terminal) else None
        os.write(2, b"connected to the serial line; Ctrl-] leaves it\r\n")
        if before is not None:
            tty.setraw(terminal)
        try:
            return _carry(terminal, line.fileno())
        finally:
            if before is not None:
                termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _carry(terminal: int, line: int) -> int:
    readers = [terminal, line]
    while True:
        readable, _, _ = select.select(readers, [], [], None if terminal in readers else _SILENCE_SECONDS)
        if not readable:
            return 0
        if line in readable:
            if not (text := _read(line)):
                return 0
            _write(1, text)
        if terminal in readable:
            if not (typed := _read(terminal)):
                readers = [line]  # the end of a script's input: what it caused is still shown
                continue
            before, left, _ = typed.partition(LEAVE)
            if not _write(line, before) or left:
                return 0


def _read(descriptor: int) -> bytes:
    """What there is; nothing at the end, also where a machine or a terminal ends without a word."""
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        return b""


def _write(descriptor: int, text: bytes) -> bool:
    """Write all of it; False where the other side has ended."""
    while text:
        try:
            text = text[os.write(descriptor, text) :]
        except OSError:
            return False
    return True
