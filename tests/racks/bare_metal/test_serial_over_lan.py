"""MokManager answered over IPMI's Serial over LAN: ipmitool in front of OpenIPMI's simulator, behind it menus as shim draws them."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from rackwright.bmc.mok_manager import MokManager
from rackwright.bmc.serial_console import ProgramChannel
from rackwright.errors import BmcError
from rackwright.lab import names, network
from rackwright.secrets.secret import Secret
from tests.racks.bare_metal import ipmi_console
from tests.unit.bmc.mok_machine import SHA1, Machine

pytestmark = [pytest.mark.lab, pytest.mark.proof]


@pytest.fixture
def namespace() -> Iterator[str]:
    """An empty network for the BMC and ipmitool."""
    name = f"{names.namespace(f'sol{os.getpid()}')}"
    subprocess.run(["ip", "netns", "add", name], check=True, timeout=30)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True, timeout=30)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True, timeout=30)


def _run(machine: Machine, line: socket.socket) -> None:
    """Keys to the machine, and what it draws to the line."""
    line.settimeout(0.1)
    with suppress(OSError):
        while True:
            line.sendall(machine.read(0))
            with suppress(TimeoutError):
                keys = line.recv(4096)
                if not keys:
                    return
                while keys:  # the simulator may join what was typed one after the other
                    length = 3 if keys.startswith(b"\x1b[") else 1
                    machine.write(keys[:length])
                    keys = keys[length:]


@pytest.fixture
def machine(namespace: str, tmp_path: Path) -> Iterator[Machine]:
    """A machine that shows nothing yet, behind that BMC."""
    made = Machine(first="off")
    ours, theirs = socket.socketpair()
    threading.Thread(target=_run, args=(made, theirs), daemon=True).start()
    (tmp_path / "password").write_text(ipmi_console.PASSWORD)
    with ipmi_console.serving(namespace, tmp_path / "sol", lambda: ours):
        _ipmitool(namespace, tmp_path, "-R", "10", "mc", "info")
        yield made


def _argv(namespace: str, folder: Path, *command: str) -> list[str]:
    words = ["ipmitool", "-I", "lanplus", "-H", ipmi_console.ADDRESS, "-p", str(ipmi_console.PORT)]
    words += ["-U", ipmi_console.USER, "-f", str(folder / "password"), "-C", "3", *command]
    return network.inside(namespace, words)


def _ipmitool(namespace: str, folder: Path, *command: str) -> None:
    subprocess.run(_argv(namespace, folder, *command), check=True, capture_output=True, timeout=120)


def _program(namespace: str, folder: Path) -> ProgramChannel:
    return ProgramChannel("gpu1", _argv(namespace, folder, "sol", "activate"), dict(os.environ))


def _console(namespace: str, folder: Path) -> ProgramChannel:
    channel = _program(namespace, folder)
    channel.await_open()
    return channel


def test_the_menus_are_answered_and_the_session_is_ended(namespace: str, machine: Machine, tmp_path: Path):
    for password in ("secret12", "secret34"):  # a session that was left open would refuse the second one
        machine.__init__(password, first="off")  # type: ignore[misc]
        with closing(_console(namespace, tmp_path)) as channel:
            manager = MokManager("gpu1", channel)
            manager.forget()
            machine._show("countdown")
            manager.enrol(SHA1, Secret("of the enrolment", password), 60)
        assert machine.rebooted


def test_a_console_that_another_session_has_is_not_taken_from_it(
    namespace: str, machine: Machine, tmp_path: Path
):
    with closing(_console(namespace, tmp_path)) as first:
        refused = pytest.raises(BmcError, match="already active on another session")
        with closing(_program(namespace, tmp_path)) as second, refused:
            second.await_open()
        machine.say("still here")
        assert b"still here" in first.read(10) + first.read(1)
