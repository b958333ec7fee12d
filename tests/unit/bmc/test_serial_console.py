"""Serial consoles as channels: programs on a terminal, the ssh of a BMC, a lab machine's line."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import paramiko
import pytest

from rackwright.bmc import serial_console
from rackwright.bmc.serial_console import ProgramChannel, SocketChannel, SshChannel, console_of
from rackwright.errors import BmcError
from rackwright.model.bmc import Bmc
from rackwright.model.types import NodeRole
from rackwright.secrets.secret import Secret
from tests.factories import make_cluster, make_node

PASSWORD = Secret("bmc_password", "calvin-7")
IPMITOOL = """\
#!/bin/sh
echo "$*" >>"{log}"
case "$*" in
*deactivate) exit 0 ;;
*) {activate} ;;
esac
"""


def until(channel, wanted, seconds=20):
    said, end = b"", time.monotonic() + seconds
    while wanted not in said and time.monotonic() < end:
        said += channel.read(0.2)
    return said


def program(*argv, **environment):
    return ProgramChannel("gpu1", argv, {"PATH": "/usr/bin:/bin"} | environment)


def test_a_program_is_read_and_typed_at_byte_by_byte():
    with closing(program("sh", "-c", "printf hello; head -c 3 | od -c; sleep 60")) as channel:
        assert b"hello" in until(channel, b"hello")
        channel.write(b"\x1b[B")
        assert b"033   [   B" in until(channel, b"0000003\n")
        assert channel.read(0.1) == b""


def test_a_program_that_ends_says_why():
    with (
        closing(program("sh", "-c", "echo 'Info: SOL payload already active on another session'")) as channel,
        pytest.raises(
            BmcError, match=r"of gpu1 ended: Info: SOL payload already active on another session\."
        ),
    ):
        until(channel, b"never")


def test_a_program_that_is_missing():
    with pytest.raises(BmcError, match="The program ipmitool-x is not installed"):
        program("ipmitool-x")


@pytest.fixture
def ipmitool(tmp_path, monkeypatch):
    """A BMC's serial console over LAN; what its program was asked is in the file."""

    def make(activate):
        path, log = tmp_path / "ipmitool", tmp_path / "log"
        path.write_text(IPMITOOL.format(log=log, activate=activate))
        path.chmod(0o700)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return log

    return make


class Client:
    """A BMC that offers this console."""

    def __init__(self, command):
        self.command, self.closed = command, False

    def console_command(self):
        return self.command

    def close(self):
        self.closed = True


def node(**given):
    return make_node(
        "gpu1", 11, NodeRole.WORKER, bmc=Bmc(address="10.20.0.11", user="admin", password="bmc_password")
    )


SOL = ["ipmitool", "-H", "10.20.0.11", "sol", "activate"]


def test_sol_is_waited_for_and_ended_on_the_bmc(ipmitool):
    log = ipmitool("sleep 0.3; echo '[SOL Session operational.  Use ~? for help]'; exec sleep 60")
    client = Client(SOL)
    with console_of(make_cluster(), node(), lambda node: client) as channel:
        assert channel.read(0.1) == b""
    assert log.read_text().splitlines() == [" ".join(SOL[1:]), "-H 10.20.0.11 sol deactivate"]
    assert client.closed


def test_sol_that_is_refused_ends_no_session_of_others(ipmitool):
    log = ipmitool("echo 'Error: Unable to establish IPMI v2 / RMCP+ session'; exit 1")
    opened = console_of(make_cluster(), node(), lambda node: Client(SOL))
    with pytest.raises(BmcError, match="Unable to establish IPMI v2"), opened:
        pytest.fail("it was opened")
    assert log.read_text().splitlines() == [" ".join(SOL[1:])]


def test_sol_that_does_not_come(ipmitool, monkeypatch):
    ipmitool("exec sleep 60")
    monkeypatch.setattr(serial_console, "_OPEN_SECONDS", 0.5)
    opened = console_of(make_cluster(), node(), lambda node: Client(SOL))
    with pytest.raises(BmcError, match=r"ipmitool did not open it within 0\.5 s"), opened:
        pytest.fail("it was opened")


def test_a_bmc_without_a_console():
    opened = console_of(make_cluster(), node(), lambda node: Client(None))
    with pytest.raises(BmcError, match="offers no serial console over SSH"), opened:
        pytest.fail("it was opened")


def test_the_line_of_a_lab_machine():
    ours, theirs = socket.socketpair()
    with closing(SocketChannel("gpu1", ours)) as channel:
        assert channel.read(0.05) == b""
        theirs.sendall(b"Press any key")
        assert channel.read(5) == b"Press any key"
        channel.write(b" ")
        assert theirs.recv(9) == b" "
        theirs.close()
        with pytest.raises(BmcError, match="the machine was powered off"):
            channel.read(5)


class Shell(paramiko.ServerInterface):
    """A BMC's ssh: a password, a terminal, one command that opens the console."""

    def __init__(self, seen):
        self.seen = seen

    def get_allowed_auths(self, username):
        return "publickey,password"

    def check_auth_password(self, username, password):
        self.seen.append((username, password))
        return paramiko.AUTH_SUCCESSFUL if password == PASSWORD.reveal() else paramiko.AUTH_FAILED

    def check_channel_request(self, kind, chanid):
        return paramiko.OPEN_SUCCEEDED

    def check_channel_pty_request(self, *_):
        return True

    def check_channel_exec_request(self, channel, command):
        self.seen.append(command.decode())
        threading.Thread(target=self.echo, args=(channel,), daemon=True).start()
        return True

    @staticmethod
    def echo(channel):
        with suppress(OSError):
            channel.sendall(b"console open\r\n")
            while data := channel.recv(99):
                channel.sendall(b"<" + data + b">")


@pytest.fixture
def bmc_ssh():
    """(port, host key, what it saw) of such a server."""
    seen, host_key, kept = [], paramiko.ECDSAKey.generate(), []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept():
            with suppress(OSError):
                while True:
                    transport = paramiko.Transport(listener.accept()[0])
                    transport.add_server_key(host_key)
                    kept.append(transport)
                    transport.start_server(server=Shell(seen), event=threading.Event())
                    threading.Thread(
                        target=lambda t=transport: kept.append(t.accept(20)), daemon=True
                    ).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1], host_key, seen
        for one in kept:
            if one is not None:
                one.close()


def ssh_to(port, known, password=PASSWORD):
    words = [
        "-o",
        f"UserKnownHostsFile={known}",
        "-t",
        "-p",
        str(port),
        "-l",
        "admin",
        "127.0.0.1",
        "console com2",
    ]
    return SshChannel("gpu1", ["ssh", *words], password)


def test_the_ssh_of_a_bmc_gets_the_password_out_of_a_private_file(bmc_ssh, tmp_path):
    port, key, seen = bmc_ssh
    known = tmp_path / "known_hosts"
    known.write_text(f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n")
    channel = ssh_to(port, known)
    folder = channel._folder.name
    with closing(channel):
        assert b"console open" in until(channel, b"open")
        channel.write(b"\r~.")
        assert b"<\r~.>" in until(channel, b">").replace(b"><", b"")
    assert seen == [("admin", "calvin-7"), "console com2"]
    assert PASSWORD.reveal() not in " ".join([*channel._argv, *channel._environment.values()])
    assert not Path(folder).exists()


def test_an_ssh_whose_host_key_is_not_known_never_sees_the_password(bmc_ssh, tmp_path):
    port, _, seen = bmc_ssh
    with (
        closing(ssh_to(port, tmp_path / "none")) as channel,
        pytest.raises(BmcError, match="verification failed"),
    ):
        until(channel, b"never")
    assert seen == []


def test_an_ssh_that_refuses_the_password_is_asked_once(bmc_ssh, tmp_path):
    port, key, seen = bmc_ssh
    known = tmp_path / "known_hosts"
    known.write_text(f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n")
    with (
        closing(ssh_to(port, known, Secret("x", "wrong"))) as channel,
        pytest.raises(BmcError, match="denied"),
    ):
        until(channel, b"never")
    assert seen == [("admin", "wrong")]
