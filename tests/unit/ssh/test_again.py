"""A busy sshd closes connections before login: they are tried again, and a jump host is asked once for all nodes."""

import logging
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import paramiko
import pytest

from rackwright.errors import ConnectionFailed
from rackwright.ssh import again, connect, run

HOW = {
    "silently": lambda client: client.close(),
    "with a sentence": lambda client: (client.sendall(b"Exceeded MaxStartups\r\n"), client.close()),
    "with a reset": lambda client: (
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"),
        client.close(),
    ),
}


class Door:
    """Passes connections on to a server, after it has dropped the first ones as sshd does."""

    def __init__(self, port, drops, drop):
        self.port, self.drops, self.drop, self.came = port, drops, drop, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.at = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.came += 1
            if self.came <= self.drops:
                client.recv(1)
                self.drop(client)
                continue
            inner = socket.create_connection(("127.0.0.1", self.port))
            for source, sink in ((client, inner), (inner, client)):
                threading.Thread(target=copy, args=(source, sink), daemon=True).start()


def copy(source, sink):
    try:
        while chunk := source.recv(32768):
            sink.sendall(chunk)
    except OSError:
        pass
    sink.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(again, "PAUSES_SECONDS", (0.01, 0.02, 0.03))


@pytest.fixture
def door(sshd):
    """Builds a door before the server."""
    doors = []

    def build(drops, drop=HOW["silently"]):
        doors.append(Door(sshd.port, drops, drop))
        return doors[-1]

    yield build
    for one in doors:
        one.listener.close()


@pytest.mark.parametrize("how", HOW)
def test_a_connection_dropped_before_login_is_tried_again(sshd, cluster_at, door, how):
    busy = door(3, HOW[how])
    cluster = cluster_at(busy.at, [(f"[127.0.0.1]:{busy.at}", sshd.host_key)])
    with connect(cluster, cluster.primary) as client:
        assert run(client, "echo in", sudo=False, stdin=None, timeout=60).stdout == "in\n"
    assert busy.came == 4


def test_one_that_is_always_dropped_is_reported_with_what_sshd_wrote(sshd, cluster_at, door):
    busy = door(99, HOW["with a sentence"])
    cluster = cluster_at(busy.at, [(f"[127.0.0.1]:{busy.at}", sshd.host_key)])
    with pytest.raises(ConnectionFailed) as caught:
        connect(cluster, cluster.primary)
    assert busy.came == 4
    assert caught.value.message == (
        f"The SSH session with n1 (127.0.0.1, port {busy.at}) could not be opened: the server closes every connection before login, and wrote 'Exceeded MaxStartups'."
    )
    assert "MaxStartups" in caught.value.hint


def test_one_that_is_dropped_prints_nothing_besides_the_error(sshd, cluster_at, door, monkeypatch, capfd):
    """paramiko logs the traceback, which Python prints where no handler is set."""
    busy = door(99)
    cluster = cluster_at(busy.at, [(f"[127.0.0.1]:{busy.at}", sshd.host_key)])
    with monkeypatch.context() as without_pytest_s:
        without_pytest_s.setattr(logging.getLogger(), "handlers", [])
        with pytest.raises(ConnectionFailed, match="closes every connection before login"):
            connect(cluster, cluster.primary)
    assert capfd.readouterr() == ("", "")


def test_a_refused_login_is_not_tried_again(sshd, cluster_at, door):
    sshd.allowed = paramiko.ECDSAKey.generate()
    open_door = door(0)
    cluster = cluster_at(open_door.at, [(f"[127.0.0.1]:{open_door.at}", sshd.host_key)])
    with pytest.raises(ConnectionFailed, match="refused user ops"):
        connect(cluster, cluster.primary)
    assert open_door.came == 1


def test_a_changed_host_key_is_not_tried_again(sshd, cluster_at, door):
    open_door = door(0)
    cluster = cluster_at(open_door.at, [(f"[127.0.0.1]:{open_door.at}", paramiko.ECDSAKey.generate())])
    with pytest.raises(ConnectionFailed, match="has changed"):
        connect(cluster, cluster.primary)
    assert open_door.came == 1


def test_a_busy_jump_host_is_tried_again_and_used_by_all(sshd, cluster_at, door):
    busy = door(2)
    known = [(f"[127.0.0.1]:{port}", sshd.host_key) for port in (busy.at, sshd.port)]
    cluster = cluster_at(sshd.port, known, jump_host=f"ops@127.0.0.1:{busy.at}")
    with ThreadPoolExecutor(8) as pool:
        clients = list(pool.map(lambda _: connect(cluster, cluster.primary), range(8)))
    for client in clients:
        client.close()
    assert busy.came == 3


def test_a_jump_host_that_is_out_is_asked_once_for_all_nodes(sshd, cluster_at, door):
    out = door(999)
    known = [(f"[127.0.0.1]:{port}", sshd.host_key) for port in (out.at, sshd.port)]
    cluster = cluster_at(sshd.port, known, jump_host=f"ops@127.0.0.1:{out.at}")

    def refused(_):
        with pytest.raises(ConnectionFailed) as caught:
            connect(cluster, cluster.primary)
        return caught.value.message

    with ThreadPoolExecutor(8) as pool:
        messages = set(pool.map(refused, range(32)))
    assert out.came == 4, "each node has tried the jump host again"
    (message,) = messages
    assert f"jump host 127.0.0.1 (port {out.at})" in message
    assert message.endswith("the server closes every connection before login.")
