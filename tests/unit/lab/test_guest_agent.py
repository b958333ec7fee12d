"""The guest agent of a virtual machine, with good and hostile answers."""

from __future__ import annotations

import base64
import socket
import threading

import pytest

from rackwright.command import CommandResult
from rackwright.errors import LabError
from rackwright.lab.qemu_socket import NotAnswering, StillRunning, agent, guest_exec
from tests.unit.lab.socket_server import Agent, Start, answer, line, sync

SHORT = 0.3
"""Seconds to wait for what does not come."""


@pytest.mark.parametrize(
    "before",
    [
        b'{"return": {"pid": 7}}\n',
        b'{"error": {"desc": "JSON parse error"}}\n{"return": 5}\n',
        b'\xff{"return": -1}\n',
        b"half an answ",
        b"\x00\xfe not JSON\n",
    ],
)
def test_what_an_earlier_client_left_in_the_agent_is_dropped(serving: Start, before: bytes):
    def serve(client: socket.socket) -> None:
        sync(client, before)
        line(client)
        answer(client, {"return": "fresh"})

    with agent(serving(serve), 20) as connection:
        assert connection.ask("guest-ping") == "fresh"


def text(content: bytes) -> str:
    return base64.b64encode(content).decode()


@pytest.mark.parametrize(
    ("state", "result"),
    [
        ({"exitcode": 0, "out-data": text(b"worker1\n")}, (0, "worker1\n", "")),
        ({"exitcode": 3, "err-data": text(b"no such thing\n")}, (3, "", "no such thing\n")),
        ({"signal": 9}, (137, "", "")),
        ({"exitcode": 0, "out-data": text(b"\xff\xfe")}, (0, "\ufffd\ufffd", "")),
    ],
)
def test_the_result_of_a_program(serving: Start, state: dict[str, object], result: tuple[int, str, str]):
    guest = Agent({"exited": False}, {"exited": False}, {"exited": True} | state)
    done = guest_exec(serving(guest), ["/bin/prog", "an argument"], ["LANG=C"], 20)
    assert done == CommandResult("/bin/prog an argument", *result)
    assert guest.asked[0]["arguments"] == {
        "path": "/bin/prog",
        "arg": ["an argument"],
        "env": ["LANG=C"],
        "capture-output": True,
    }
    assert [one["arguments"] for one in guest.asked[1:]] == [{"pid": 7}] * 3


def test_a_long_program_leaves_the_agent_to_others(serving: Start):
    """One that compiles for an hour must not make status call the machine not ready."""
    go_on = threading.Event()

    class Busy(Agent):
        def __call__(self, client: socket.socket) -> None:
            self._states = [{"exited": go_on.is_set(), "exitcode": 4}]
            super().__call__(client)

    path = serving(Busy())
    long: list[int] = []
    thread = threading.Thread(target=lambda: long.append(guest_exec(path, ["make"], [], 60).exit_status))
    thread.start()
    try:
        for _ in range(3):
            with agent(path, 20) as other:
                assert other.ask("guest-exec-status", pid=7)["exited"] is False
    finally:
        go_on.set()
        thread.join(60)
    assert long == [4]


def test_a_program_that_takes_too_long_is_ended(serving: Start):
    guest = Agent({"exited": False})
    with pytest.raises(StillRunning) as caught:
        guest_exec(serving(guest), ["sleep", "600"], [], SHORT)
    assert caught.value.message == "it took more than 0.3 s"
    kill = {"path": "/bin/kill", "arg": ["-KILL", "7"]}
    assert guest.asked[-1] == {"execute": "guest-exec", "arguments": kill}


def test_more_output_than_the_agent_keeps_is_not_taken_for_all_of_it(serving: Start):
    state = {"exited": True, "exitcode": 0, "out-data": text(b"begin"), "out-truncated": True}
    with pytest.raises(LabError) as caught:
        guest_exec(serving(Agent(state)), ["cat"], [], 20)
    assert caught.value.message == "it printed more than the 16 MiB that the guest agent keeps"


@pytest.mark.parametrize(
    ("pid", "state", "message"),
    [
        ("7", {}, "the guest agent answered without pid: {'pid': '7'}"),
        (7, {}, "the guest agent answered without exited: {}"),
        (7, {"exited": True}, "the guest agent answered without exitcode: {'exited': True}"),
        (7, "\x1b[2J", "the guest agent answered without exited: \\x1b[2J"),
        (7, {"exited": True, "exitcode": 0, "out-data": "***"}, "the guest agent's out-data is not base64"),
    ],
)
def test_a_hostile_agent_is_an_error_of_its_machine(serving: Start, pid: object, state: object, message: str):
    with pytest.raises(NotAnswering) as caught:
        guest_exec(serving(Agent(state, pid=pid)), ["true"], [], 20)
    assert caught.value.message == message
