"""A real ssh server in this process: it runs commands with this machine's shell."""

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time

import paramiko
import pytest

from rackwright.model.settings import Ssh
from rackwright.model.types import NodeRole, Platform
from rackwright.ssh import connect
from tests.factories import make_cluster, make_network, make_node


class Server(paramiko.ServerInterface):
    """Lets one key in; runs commands, forwards TCP."""

    def __init__(self, allowed, gate):
        self.allowed = allowed
        self.gate = gate

    def check_auth_publickey(self, username, key):
        return paramiko.AUTH_SUCCESSFUL if username == "ops" and key == self.allowed else paramiko.AUTH_FAILED

    def get_allowed_auths(self, username):
        return "publickey"

    def check_channel_request(self, kind, chanid):
        return paramiko.OPEN_SUCCEEDED

    def check_channel_direct_tcpip_request(self, chanid, origin, destination):
        self.gate.destinations[chanid] = destination
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel, command):
        if self.gate.mute:
            self.gate.thawed.wait(600)  # a frozen node: the connection stands, nothing answers
            return False
        self.gate.commands.append(command.decode())
        channel.get_transport().accepted.append(
            threading.Thread(target=serve, args=(channel, command, self.gate.late), daemon=True)
        )
        return True


class Answering(paramiko.Transport):
    """Begins a command once its request was answered, as sshd does: a short one could end before that."""

    def __init__(self, sock):
        super().__init__(sock)
        self.accepted = []

    def _send_user_message(self, data):
        super()._send_user_message(data)
        if threading.current_thread() is self:
            while self.accepted:
                self.accepted.pop().start()


def serve(channel, command, late):
    """Run a command, its three streams joined to the channel; its output is `late` by so many seconds."""
    process = subprocess.Popen(
        ["sh", "-c", command.decode()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )

    def pump(source, send):
        with contextlib.suppress(OSError, EOFError):
            while chunk := os.read(source.fileno(), 65536):
                time.sleep(late)
                send(chunk)

    def feed():
        with contextlib.suppress(OSError, EOFError):
            while chunk := channel.recv(65536):
                process.stdin.write(chunk)
                process.stdin.flush()
        with contextlib.suppress(OSError, EOFError):
            process.stdin.close()

    pumps = [
        threading.Thread(target=pump, args=(process.stdout, channel.sendall), daemon=True),
        threading.Thread(target=pump, args=(process.stderr, channel.sendall_stderr), daemon=True),
    ]
    threading.Thread(target=feed, daemon=True).start()
    for thread in pumps:
        thread.start()
    while process.poll() is None and not channel.closed:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(OSError, EOFError):
        if process.wait(600) >= 0:
            channel.send_exit_status(process.returncode)
        for thread in pumps:
            thread.join(600)
        channel.close()


class Sshd:
    """The server, its address and what it saw."""

    def __init__(self, host_key, allowed):
        self.host_key, self.allowed = host_key, allowed
        self.mute = False
        self.late = 0.0
        self.thawed = threading.Event()
        self.commands, self.destinations, self.transports = [], {}, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError, EOFError):
            while True:
                client, _ = self.listener.accept()
                transport = Answering(client)
                transport.add_server_key(self.host_key)
                self.transports.append(transport)
                with contextlib.suppress(Exception):
                    transport.start_server(server=Server(self.allowed, self), event=threading.Event())
                threading.Thread(target=self.forward, args=(transport,), daemon=True).start()

    def forward(self, transport):
        kept = []  # paramiko closes a channel to which nothing refers, even one that waits for its command
        while True:
            channel = transport.accept(0.2)
            if channel is not None:
                kept.append(channel)
                self.join(channel)
            elif not transport.is_active():
                return

    def join(self, channel):
        """Forward TCP, if that is what the channel is for."""
        destination = self.destinations.pop(channel.get_id(), None)
        if destination is not None:
            inner = socket.create_connection(destination)
            for source, sink in ((channel, inner), (inner, channel)):
                threading.Thread(target=copy, args=(source, sink), daemon=True).start()

    def close(self):
        self.thawed.set()
        self.listener.close()
        for transport in self.transports:
            transport.close()


def copy(source, sink):
    """Copy bytes one way until either side ends."""
    with contextlib.suppress(OSError, EOFError):
        while chunk := source.recv(32768):
            sink.sendall(chunk)
    with contextlib.suppress(OSError, EOFError):
        sink.close()


@pytest.fixture(scope="session")
def user_key(tmp_path_factory):
    """Path of a private key."""
    path = tmp_path_factory.mktemp("key") / "id_ecdsa"
    paramiko.ECDSAKey.generate().write_private_key_file(str(path))
    return path


@pytest.fixture
def sshd(user_key):
    """A server with a host key of its own that lets user_key in."""
    server = Sshd(paramiko.ECDSAKey.generate(), paramiko.PKey.from_path(user_key))
    yield server
    server.close()


@pytest.fixture
def cluster_at(tmp_path, user_key):
    """Builds a one-node cluster whose node is a port of this machine."""

    def build(port, known=(), **ssh):
        known_hosts = tmp_path / "known_hosts"
        known_hosts.write_text(
            "".join(f"{name} {key.get_name()} {key.get_base64()}\n" for name, key in known)
        )
        settings = {"user": "ops", "port": port, "key": user_key, "known_hosts": known_hosts} | ssh
        return make_cluster(
            make_node("n1", "127.0.0.1", NodeRole.HEAD, platform=Platform.BARE_METAL),
            networks={"management": make_network("management", "127.0.0.0/8")},
            ssh=Ssh(connect_timeout_seconds=settings.pop("connect_timeout_seconds", 60), **settings),
        )

    return build


@pytest.fixture
def client(sshd, cluster_at):
    """Connected to that server."""
    cluster = cluster_at(sshd.port, [(f"[127.0.0.1]:{sshd.port}", sshd.host_key)])
    with connect(cluster, cluster.primary) as opened:
        yield opened
