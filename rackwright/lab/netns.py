"""Sockets inside a rack: how this process reaches its nodes, to which the machine has no route."""

import ctypes
import os
import socket

from rackwright.lab import names

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def rack_is_up(name: str) -> bool:
    """Whether a rack of that name has its network on this machine; costs one stat."""
    return (names.NETNS / names.namespace(name)).exists()


def open_socket(rack: str, address: str, port: int, timeout: float) -> socket.socket | None:
    """A TCP socket connected from inside the rack, None if the rack is not up; errors are OSError."""
    connection = socket_inside(names.namespace(rack))
    if connection is None:
        return None
    try:
        connection.settimeout(timeout)
        connection.connect((address, port))
    except BaseException:
        connection.close()
        raise
    return connection


def ssh_answers(rack: str, address: str, port: int, seconds: float = 2.0) -> bool:
    """Whether an SSH server greets a caller from inside the rack, each of its steps within this time."""
    try:
        connection = open_socket(rack, address, port, seconds)
        if connection is None:
            return False
        with connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def socket_inside(namespace: str, kind: int = socket.SOCK_STREAM) -> socket.socket | None:
    """A socket of a namespace, to listen or to connect with; None where the namespace does not exist."""
    # A socket stays in the namespace it was created in, so the thread is abroad for two system calls
    # only. Nothing in between does I/O: under gevent no other greenlet runs until the thread is back.
    try:
        foreign = os.open(names.NETNS / namespace, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _setns(foreign)
            try:
                return socket.socket(socket.AF_INET, kind)
            finally:
                _setns(home)
        finally:
            os.close(home)
    finally:
        os.close(foreign)


def _setns(descriptor: int) -> None:
    if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot enter the rack's network: {os.strerror(number)}")
