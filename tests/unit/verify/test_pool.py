"""One connection per node: kept, reopened, bounded, and honest about sudo."""

import threading

import pytest

from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed
from rackwright.ssh import Pool, pool
from tests.crowd import Crowd


class Client:
    """Stands in for a paramiko client."""

    def __init__(self):
        self.alive = True

    def get_transport(self):
        return self

    def is_active(self):
        return self.alive

    def close(self):
        self.alive = False


@pytest.fixture
def world(monkeypatch, make_cluster):
    """A pool over made-up clients; `world.answer` is what commands do."""

    class World:
        dialled, commands, refuse = [], [], None

        @staticmethod
        def answer(command):
            return CommandResult(command, 0, "", "")

    def dial(cluster, node):
        World.dialled.append(node.name)
        if World.refuse:
            raise World.refuse
        return Client()

    def run(client, command, *, sudo, stdin, timeout):
        World.commands.append((command, sudo))
        return World.answer(command)

    monkeypatch.setattr(pool, "run", run)
    World.dialled, World.commands, World.refuse = [], [], None
    World.pool = Pool(make_cluster(), dial=dial)
    return World


def test_one_connection_for_many_commands_and_nothing_else_is_run(world):
    for _ in range(3):
        world.pool.run("w1", "id", timeout=240)
    assert world.dialled == ["w1"]
    assert world.commands == [("id", True)] * 3


def test_a_command_that_fails_first_is_told_from_a_sudo_that_does(world):
    world.answer = staticmethod(lambda c: CommandResult(c, int(c != "true"), "", ""))
    for _ in range(2):
        assert world.pool.run("w1", "false", timeout=240).exit_status == 1
    assert world.commands == [("false", True), ("true", True), ("false", True)]


def test_no_sudo_is_a_refusal_with_its_reason(world):
    world.answer = staticmethod(lambda c: CommandResult(c, 1, "", "sudo: a password is required\n"))
    with pytest.raises(ConnectionFailed, match="ops cannot become root on w1: sudo: a password is required"):
        world.pool.run("w1", "id", timeout=240)


def test_a_dead_node_is_not_dialled_for_every_command(world):
    world.refuse = ConnectionFailed("gone")
    for _ in range(5):
        with pytest.raises(ConnectionFailed, match="gone"):
            world.pool.run("w1", "id", timeout=240)
    assert world.dialled == ["w1"]


def test_it_is_dialled_again_after_a_pause(world, monkeypatch):
    monkeypatch.setattr(pool, "PAUSE_SECONDS", 0)
    world.refuse = ConnectionFailed("gone")
    with pytest.raises(ConnectionFailed):
        world.pool.run("w1", "id", timeout=240)
    world.refuse = None
    assert world.pool.run("w1", "id", timeout=240).exit_status == 0


def test_a_lost_connection_is_opened_anew_for_the_next_command(world):
    def lost(command):
        raise ConnectionFailed("lost")

    world.pool.run("w1", "id", timeout=240)
    good, world.answer = world.answer, staticmethod(lost)
    with pytest.raises(ConnectionFailed, match="lost"):
        world.pool.run("w1", "id", timeout=240)
    world.answer = staticmethod(good)
    assert world.pool.run("w1", "id", timeout=240).exit_status == 0
    assert world.dialled == ["w1", "w1"]


def test_threads_share_one_connection_and_six_channels(world):
    crowd = Crowd(lambda crowd: crowd.most_of_all >= 6)

    def slow(command):
        crowd.enter(command)
        return CommandResult(command, 0, "", "")

    world.answer = staticmethod(slow)
    threads = [
        threading.Thread(target=world.pool.run, args=("w1", "id"), kwargs={"timeout": 240}) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert world.dialled == ["w1"]
    assert crowd.most_of_all == 6


def test_closing_refuses_new_connections(world):
    world.pool.close()
    with pytest.raises(ConnectionFailed, match="the run has ended"):
        world.pool.run("w1", "id", timeout=240)
