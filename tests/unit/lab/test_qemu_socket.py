"""qemu's monitor, with good and hostile answers on its socket."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from rackwright.errors import LabError
from rackwright.lab import qemu_socket
from rackwright.lab.qemu_socket import NotAnswering, agent, monitor
from tests.unit.lab.socket_server import Serve, Start, answer, line

GREETING = b'{"QMP": {"version": {}, "capabilities": ["oob"]}}\r\n'
OPENED = b'{"return": {}}\r\n'
SHORT = 0.3
"""Seconds to wait for what does not come."""


def monitor_with(*after: bytes) -> Serve:
    """A monitor that answers each command after the first with the next of these."""

    def serve(client: socket.socket) -> None:
        client.sendall(GREETING)
        assert json.loads(line(client)) == {"execute": "qmp_capabilities", "arguments": {}}
        client.sendall(OPENED)
        for text in after:
            line(client)
            client.sendall(text)
        line(client)

    return serve


def test_a_command_of_the_monitor_after_its_greeting(serving: Start):
    asked: list[object] = []

    def serve(client: socket.socket) -> None:
        client.sendall(GREETING)
        line(client)
        client.sendall(OPENED)
        asked.append(json.loads(line(client)))
        answer(client, {"return": {"status": "running"}})

    with monitor(serving(serve)) as connection:
        assert connection.ask("set_link", name="nic0", up=False) == {"status": "running"}
    assert asked == [{"execute": "set_link", "arguments": {"name": "nic0", "up": False}}]


def test_events_between_answers_are_passed_over(serving: Start):
    events = b'{"event": "RESET", "data": {}}\r\n{"event": "STOP", "data": {}}\r\n'
    with monitor(serving(monitor_with(events + b'{"return": 1}\r\n', b'{"return": 2}\r\n'))) as connection:
        assert (connection.ask("one"), connection.ask("two")) == (1, 2)


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (
            b'{"error": {"class": "GenericError", "desc": "Device \'nic7\' not found"}}\r\n',
            "set_link: Device 'nic7' not found",
        ),
        (b'{"error": {"class": "\\u001b[2J"}}\r\n', "set_link: {'class': '\\x1b[2J'}"),
        (b'{"error": "\\u001b]0;title"}\r\n', "set_link: \\x1b]0;title"),
    ],
)
def test_an_error_has_qemus_own_text_in_one_printable_line(serving: Start, sent: bytes, message: str):
    with monitor(serving(monitor_with(sent))) as connection, pytest.raises(LabError) as caught:
        connection.ask("set_link", name="nic7")
    assert caught.value.message == message
    assert not isinstance(caught.value, NotAnswering)


def test_an_answer_in_many_pieces_and_one_that_brings_the_next(serving: Start):
    def serve(client: socket.socket) -> None:
        client.sendall(GREETING)
        line(client)
        client.sendall(OPENED)
        line(client)
        for byte in b'{"return": "slow"}\n{"return": "early"}\n{"ret':
            client.sendall(bytes([byte]))
        line(client)
        line(client)
        client.sendall(b'urn": "last"}\n')

    with monitor(serving(serve)) as connection:
        assert [connection.ask("x"), connection.ask("x"), connection.ask("x")] == ["slow", "early", "last"]


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (
            b"no json\n",
            "an answer was refused: it is not valid JSON: Expecting value: line 1 column 1 (char 0)",
        ),
        (b"[1]\n", "an answer was refused: it is not an object"),
        (
            b'{"return": ' + b"[" * 99 + b"]" * 99 + b"}\n",
            "an answer was refused: it is nested deeper than 32",
        ),
        (b'{"return": NaN}\n', "an answer was refused: it contains NaN, which is not a JSON number"),
    ],
)
def test_an_answer_that_is_none_is_an_error_of_this_machine(serving: Start, sent: bytes, message: str):
    path = serving(monitor_with(sent))
    with monitor(path) as connection, pytest.raises(NotAnswering) as caught:
        connection.ask("x")
    assert caught.value.message.startswith(f"{path}: {message}")


def test_a_socket_that_is_not_there(tmp_path: Path):
    with pytest.raises(NotAnswering) as caught:
        monitor(tmp_path / "socket")
    assert caught.value.message == f"{tmp_path}/socket does not answer: [Errno 2] No such file or directory"
    with pytest.raises(NotAnswering, match="No such file"):
        monitor(tmp_path / "gone" / "socket")


def test_a_server_that_never_answers(serving: Start):
    path = serving(lambda client: client.recv(1) and None)
    began = time.monotonic()
    with pytest.raises(NotAnswering, match=r"socket does not answer"):
        agent(path, SHORT)
    assert time.monotonic() - began < 20


def test_a_server_that_closes(serving: Start):
    path = serving(lambda client: client.sendall(GREETING))
    with pytest.raises(NotAnswering, match=r"does not answer|was closed"):
        monitor(path)


def test_a_line_without_end_takes_no_more_memory_than_its_limit(
    serving: Start, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(qemu_socket, "_ANSWER_MAX", 1 << 20)
    sent = [0]

    def serve(client: socket.socket) -> None:
        while True:
            sent[0] += client.send(b"x" * 65_536)

    path = serving(serve)
    with pytest.raises(NotAnswering) as caught:
        monitor(path)
    assert caught.value.message == f"{path}: an answer was refused: it is longer than 64 MiB"
    assert sent[0] < 8 << 20


def test_endless_lines_end_with_the_time_limit(serving: Start):
    def serve(client: socket.socket) -> None:
        while True:
            client.sendall(b'{"return": 0}\n' * 1000)

    began = time.monotonic()
    with pytest.raises(NotAnswering, match="does not answer"):
        agent(serving(serve), SHORT)
    assert time.monotonic() - began < 20


def test_a_failed_greeting_closes_the_connection(serving: Start):
    ended = threading.Event()

    def serve(client: socket.socket) -> None:
        client.sendall(b"garbage\n")
        assert client.recv(1) == b""
        ended.set()

    path = serving(serve)
    with pytest.raises(NotAnswering) as caught:
        monitor(path)
    assert ended.wait(10), caught.value  # else the next client would wait without end


def test_a_path_longer_than_a_sockets_address(tmp_path: Path, serving: Start):
    folder = tmp_path / ("n" * 120)
    folder.mkdir()
    with monitor(serving(monitor_with(b'{"return": "here"}\n'), folder / "monitor")) as connection:
        assert connection.ask("x") == "here"


def test_a_line_that_is_in_use_is_waited_for(tmp_path: Path):
    """qemu lets two clients wait; a third one is turned away by the kernel, and comes again."""
    path = tmp_path / "monitor"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        server.listen(1)
        waiting = []
        for _ in range(2):
            waiting.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            waiting[-1].connect(str(path))
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as third:
            third.setblocking(False)
            with pytest.raises(BlockingIOError):
                third.connect(str(path))
        with pytest.raises(NotAnswering, match="does not answer"):
            monitor(path, SHORT)

        def serve() -> None:
            for _ in waiting:
                server.accept()[0].close()
            with server.accept()[0] as client, suppress(BrokenPipeError):
                monitor_with(b'{"return": "at last"}\n')(client)

        thread = threading.Timer(SHORT, serve)
        thread.start()
        with monitor(path) as connection:
            assert connection.ask("x") == "at last"
        for one in waiting:
            one.close()
