"""MokManager at a serial console: it is answered where it shows what is known, and nowhere else."""

from __future__ import annotations

import pytest

from rackwright.bmc.mok_manager import MokManager, NotEnrolled, Timing, UnknownScreen
from rackwright.errors import BmcError
from rackwright.secrets.secret import Secret
from tests.unit.bmc.mok_machine import SHA1, Machine

PASSWORD = Secret("of the enrolment", "secret12")


class Clock:
    """Each look at it is a second."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1
        return self.now


def enrol(machine, *, sha1=SHA1, appears=30, stopped=lambda: False):
    manager = MokManager(
        "gpu1", machine, Timing(step=20), stopped=stopped, clock=Clock(), sleep=lambda seconds: None
    )
    manager.enrol(sha1, PASSWORD, appears)


def test_the_key_is_enrolled():
    machine = Machine()
    enrol(machine)
    assert machine.rebooted
    assert machine.typed == b" \x1b[B\r\r \x1b[B\r\x1b[B\rsecret12\r\r"


def test_a_menu_that_is_there_without_a_countdown():
    machine = Machine(first="menu")
    enrol(machine)
    assert machine.rebooted


def test_a_long_certificate_leaves_one_line_of_its_fingerprint():
    machine = Machine(keys=(SHA1[:10],))
    enrol(machine)
    assert machine.rebooted


def test_another_key_is_not_enrolled():
    """Root on the node can change the request, which the password does not cover."""
    machine = Machine()
    with pytest.raises(NotEnrolled, match="would enrol another key, with SHA-1 10 11 12"):
        enrol(machine, sha1=bytes(20))
    assert (machine.at, machine.typed) == ("view", b" \x1b[B\r\r")


def test_a_second_key_in_the_request():
    machine = Machine(keys=(SHA1, bytes(20)))
    with pytest.raises(NotEnrolled, match="lists 2 keys"):
        enrol(machine)
    assert machine.at == "keys"


def test_a_password_that_is_refused():
    machine = Machine(password="other123")
    with pytest.raises(NotEnrolled, match="Password doesn't match"):
        enrol(machine)
    assert not machine.rebooted


@pytest.mark.parametrize("at", ["menu", "keys", "view", "sure", "password", "done"])
def test_a_screen_that_does_not_come_is_waited_for_and_nothing_is_typed_at_it(at):
    machine = Machine(silent_after=at)
    with pytest.raises(UnknownScreen) as error:
        enrol(machine)
    assert error.value.message.startswith("UNKNOWN: the serial console of gpu1 does not show ")
    assert "secret12" not in error.value.message
    assert machine.at == at


def test_what_is_not_mokmanager_is_shown_and_not_answered():
    machine = Machine(first="off")
    machine.say("Enter passphrase for \x07disk secret12: ")
    with pytest.raises(UnknownScreen) as error:
        enrol(machine)
    assert "    Enter passphrase for disk (the password):" in error.value.message
    assert machine.typed == b""


def test_linux_without_mokmanager_is_not_waited_for():
    machine = Machine(first="off")
    machine.say("[    0.000000] Linux version 6.12.94+deb13-amd64")
    with pytest.raises(UnknownScreen, match="booted Linux without showing MokManager on its serial console"):
        enrol(machine, appears=10**6)


def test_an_interrupted_run_stops_waiting():
    with pytest.raises(BmcError, match="interrupted"):
        enrol(Machine(first="off"), appears=10**6, stopped=lambda: True)


def test_what_a_console_replays_is_not_taken_for_this_boot():
    machine = Machine(first="off")
    machine.say("[    0.000000] Linux version 6.12.94+deb13-amd64")
    manager = MokManager("gpu1", machine, clock=Clock())
    manager.forget()
    machine._show("countdown")
    manager.enrol(SHA1, PASSWORD, 30)
    assert machine.rebooted
