"""Many machines at once: limits, failures that stay with their node, and what is refused before the first is touched."""

from __future__ import annotations

import random
import socket
import threading
from pathlib import Path

import paramiko
import pytest

from rackwright.bmc.interface import Power
from rackwright.errors import BmcError, InstallError, SecretsError
from rackwright.install import needs
from rackwright.install import run as module
from rackwright.install.limits import Interrupted, Tempo
from rackwright.install.record import Journal, folder, read
from rackwright.install.run import Asked, Installation, Turns
from rackwright.install.states import State
from rackwright.model.install import DiskRule, Encryption
from tests.factories import make_node
from tests.unit.install.fake_machine import FakeMachine, until
from tests.unit.install.site import changed, make_image, make_site


def test_all_are_installed(site):
    found = site.run()
    assert {name: (one.state, one.refused) for name, one in found.items()} == {
        f"worker{number}": (State.READY, False) for number in (1, 2, 3)
    }
    assert all(one.calls[-1] == "close" for one in site.machines.values())
    assert {node for node, state, _ in site.notices if state is State.READY} == set(site.machines)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", site.network.port), 1)


def test_each_machine_gets_its_own_files_and_disk(site):
    site.run()
    configs = [one.agents[0].config for one in site.machines.values()]
    assert [one["node"] for one in configs] == ["worker1", "worker2", "worker3"]
    assert len({one["token"] for one in configs}) == 3
    assert [one["network"]["address"] for one in configs] == [
        f"10.9.0.{number}/24" for number in (11, 12, 13)
    ]


def test_one_that_fails_does_not_keep_the_others(site):
    def fail(agent):
        agent.say_hello()
        agent.head.post("/v1/failed", {"phase": "image", "error": "no memory"})

    site.machines["worker1"].agent = fail
    site.machines["worker2"].state = Power.ON
    found = site.run()
    assert [(one.state, one.refused) for one in found.values()] == [
        (State.FAILED, False),
        (State.DECLARED, True),
        (State.READY, False),
    ]
    assert found["worker1"].reason == "image: no memory"
    assert found["worker2"].reason == (
        "worker2 was not touched: its power is on, and a running machine is never reset."
    )
    assert (
        found["worker2"].hint
        == "once nothing on it is needed: rackwright bmc power FILE soft --limit worker2"
    )


@pytest.mark.parametrize("error", [BmcError("no BMC"), SecretsError("no password"), OSError(5, "I/O error"), ValueError("odd\x1b")])  # fmt: skip
def test_whatever_goes_wrong_stays_with_its_node(site, error, monkeypatch):
    real = FakeMachine.identity

    def identity(self):
        if self.number == 2:
            raise error
        return real(self)

    monkeypatch.setattr(FakeMachine, "identity", identity)
    found = site.run()
    assert [one.state for one in found.values()] == [State.READY, State.DECLARED, State.READY]
    assert found["worker2"].refused
    assert found["worker2"].reason.isprintable()
    assert site.machines["worker2"].calls[-1] == "close"


def test_one_that_was_begun_and_failed_was_not_left_alone(site):
    site.machines["worker1"].fails = {"insert_media": 1}
    found = site.run(nodes=site.nodes[:1])
    assert (found["worker1"].state, found["worker1"].refused) == (State.FAILED, False)
    assert "insert_media" in found["worker1"].reason


def test_a_node_that_another_process_installs(site):
    with Journal("test", "worker2").claim():
        found = site.run()
    assert [(one.state, one.refused) for one in found.values()] == [
        (State.READY, False),
        (State.DECLARED, True),
        (State.READY, False),
    ]
    assert "is installing worker2" in found["worker2"].reason
    assert "worker2" not in site.opened


def test_ready_nodes_are_left_alone_and_erased_with_their_serial_numbers_only(site):
    site.run()
    for one in site.machines.values():
        one.cut()
        one.answers_ssh = False
        one.signatures = []  # replaced disks: what is asked for here is the machine's serial number
    found = site.run(worker2="SN-2", worker3="SN-2")
    assert [(one.state, one.refused) for one in found.values()] == [
        (State.READY, True),
        (State.READY, False),
        (State.READY, True),
    ], found
    assert found["worker1"].hint == "to erase it, type its serial number: --reinstall worker1=SN-1"
    assert [one.calls.count("insert_media") for one in site.machines.values()] == [1, 2, 1]


def test_discoveries_need_neither_an_image_nor_a_key(site):
    site.key = Path("/nowhere/key")
    site.nodes = [node.model_copy(update={"install": None}) for node in site.nodes]
    found = site.run("discover")
    assert {one.state for one in found.values()} == {State.SURVEYED}, found
    assert read("test", "worker1").inventory["cpus"] == 2


LIMITS = [(1, 100), (2, 100), (8, 50), (3, 34), (8, 1)]


@pytest.mark.parametrize(("at_once", "percent"), LIMITS)
def test_so_many_at_once_and_so_many_of_a_rack(at_once, percent):
    """Random nodes, each with a turn of random length: the limits hold at all times, and all get their turn."""
    racks = ["r1"] * 6 + ["r2"] * 4 + ["r3"] + [None] * 3
    nodes = [make_node(f"n{number}", number + 1, rack=rack) for number, rack in enumerate(racks)]
    turns = Turns(make_site(*nodes), at_once, percent)
    lock, running, most, done = threading.Lock(), [], {}, []
    chance = random.Random(at_once * percent)

    def work(node, seconds):
        with turns.turn(node):
            with lock:
                running.append(node.rack)
                for rack in ("r1", "r2", "r3"):
                    most[rack] = max(most.get(rack, 0), running.count(rack))
                most["all"] = max(most.get("all", 0), len(running))
            threading.Event().wait(seconds)
            with lock:
                running.remove(node.rack)
                done.append(node.name)

    threads = [
        threading.Thread(target=work, args=(node, chance.random() * 0.004), daemon=True) for node in nodes
    ]
    chance.shuffle(threads)
    for one in threads:
        one.start()
    for one in threads:
        one.join(20)
    assert sorted(done) == sorted(node.name for node in nodes)
    assert most["all"] <= at_once
    for rack, size in (("r1", 6), ("r2", 4), ("r3", 1)):
        assert 1 <= most[rack] <= max(1, size * percent // 100)


def test_a_turn_ends_also_with_an_error():
    node = make_node("n1", 1, rack="r1")
    turns = Turns(make_site(node), 1, 1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), turns.turn(node):
            raise ZeroDivisionError


def test_the_limits_hold_for_installations(sites, monkeypatch):
    site = sites(5, at_once=2)
    on, most, lock = [0], [0], threading.Lock()
    real = FakeMachine._boot

    def boot(self):
        with lock:
            on[0] += 1
            most[0] = max(most[0], on[0])
        real(self)

    def closed(self):
        with lock:
            on[0] -= 2  # the agent's boot and the first one of its system

    monkeypatch.setattr(FakeMachine, "_boot", boot)
    monkeypatch.setattr(FakeMachine, "close", closed)
    assert {one.state for one in site.run().values()} == {State.READY}
    assert most[0] <= 4


def test_ctrl_c_begins_no_other_node_and_leaves_those_that_are_under_way(sites, monkeypatch):
    site = sites(at_once=1)
    for one in site.machines.values():
        one.agent = lambda agent: (agent.say_hello(), agent.dead.wait(20))
    made = site.installation()
    made.prepare(lambda _: None)
    before = threading.active_count()
    monkeypatch.setattr(module, "all", lambda _: any_interrupted(site), raising=False)
    with pytest.raises(KeyboardInterrupt):
        made.run()
    # no thread keeps the program from ending, but that of our agent
    until(lambda: threading.active_count() <= before + 1)
    states = sorted(read("test", name).state for name in site.machines)
    assert states == [State.DECLARED, State.DECLARED, State.DISCOVERED]
    assert sum(one.calls.count("set_power on") for one in site.machines.values()) == 1


def any_interrupted(site):
    until(lambda: any(read("test", name).state is State.DISCOVERED for name in site.machines))
    raise KeyboardInterrupt


def under_way(site, name, monkeypatch):
    """A run over one node is killed while its agent waits to go on; `go` lets it."""
    go = threading.Event()

    def work(agent):
        agent.say_hello()
        until(lambda: go.is_set() or agent.dead.is_set(), 30)
        orders = agent.decision()["install"]
        agent.write(orders)
        agent.done(orders)

    site.machines[name].agent = work
    made = site.installation(nodes=[one for one in site.nodes if one.name == name])
    made.prepare(lambda _: None)
    with monkeypatch.context() as patched:
        patched.setattr(module, "_WAIT", 0)
        patched.setattr(module, "all", lambda _: interrupted(name), raising=False)
        with pytest.raises(KeyboardInterrupt):
            made.run()
    return go


def interrupted(name):
    until(lambda: read("test", name).state is State.DISCOVERED)
    raise KeyboardInterrupt


def test_agents_of_nodes_that_wait_for_their_turn_are_answered(sites, monkeypatch):
    """Of those that a killed run left under way: one that was refused would power its machine off."""
    site = sites(at_once=1)
    go = under_way(site, "worker3", monkeypatch)
    go.set()
    found = site.run()
    assert {one.state for one in found.values()} == {State.READY}
    assert list(found) == ["worker1", "worker2", "worker3"]
    assert site.opened[:2] == ["worker3", "worker3"], "it goes on first"
    assert site.machines["worker3"].calls.count("insert_media") == 1


def test_and_those_of_nodes_that_are_not_in_this_run_wait(site, monkeypatch):
    go = under_way(site, "worker3", monkeypatch)
    go.set()
    assert site.run(nodes=site.nodes[:2])["worker1"].state is State.READY
    assert site.machines["worker3"].agents[0].is_alive()
    assert read("test", "worker3").state is State.DISCOVERED
    assert site.run(nodes=site.nodes[2:])["worker3"].state is State.READY
    assert site.machines["worker3"].calls.count("insert_media") == 1


def test_an_agent_whose_bmc_is_silent_when_its_run_goes_on_is_answered(site, monkeypatch):
    go = under_way(site, "worker3", monkeypatch)
    site.machines["worker3"].silent(True)
    threading.Timer(0.05, lambda: (go.set(), site.machines["worker3"].silent(False))).start()
    assert site.run()["worker3"].state is State.READY


def test_an_agent_whose_node_failed_to_open_is_answered_to_the_end(site, monkeypatch):
    """Its password is missing, say: the agent works on for as long as others are installed."""
    go = under_way(site, "worker3", monkeypatch)
    real = site.open

    def fail(node):
        if node.name == "worker3":
            raise SecretsError("no password")
        until(lambda: read("test", "worker3").state is State.INSTALLED)
        return real(node)

    site.open = fail
    go.set()
    found = site.run()
    assert (found["worker3"].reason, found["worker1"].state) == ("no password", State.READY)
    assert read("test", "worker3").state is State.INSTALLED


def test_a_turn_that_is_waited_for_ends_when_the_run_does():
    nodes = [make_node(f"n{number}", number + 1) for number in range(2)]
    turns = Turns(make_site(*nodes), 1, 100)
    with turns.turn(nodes[0]):
        threading.Timer(0.01, turns.stop).start()
        with pytest.raises(Interrupted, match=r"n1 was not started\."), turns.turn(nodes[1]):
            pass


def refused(site, nodes=None, mode="install"):
    with pytest.raises(InstallError) as error:
        site.installation(mode, nodes).prepare(lambda _: None)
    assert site.untouched()
    assert not list(folder("test").glob("*.jsonl"))
    return error.value.message


def test_everything_is_refused_before_the_first_machine_is_touched_and_all_at_once(site):
    first, second, third = site.nodes
    site.nodes = [
        first.model_copy(update={"bmc": None}),
        second.model_copy(update={"install": None}),
        third,
    ]
    assert refused(site) == (
        "worker1: no BMC is declared; worker2: no installation is declared (`install:`)."
    )
    assert refused(site, mode="discover") == "worker1: no BMC is declared."


@pytest.mark.parametrize("mode", ["install", "discover", "erase"])
def test_what_nodes_need_here_is_looked_for_before_the_first_is_touched(site, monkeypatch, mode):
    asked = []
    monkeypatch.setattr(
        needs, "problems", lambda cluster, nodes: [asked.append(nodes) or "xorriso is missing."]
    )
    if mode == "install":
        site.nodes[2] = site.nodes[2].model_copy(update={"install": None})
    unfit = "worker3: no installation is declared (`install:`); " if mode == "install" else ""
    assert refused(site, mode=mode) == f"{unfit}xorriso is missing."
    assert asked == [tuple(site.nodes)]


def test_images_that_are_missing_damaged_or_of_another_system(site, tmp_path):
    other = make_image(tmp_path / "other", os="debian-12").folder
    damaged = make_image(tmp_path / "damaged").folder
    (damaged / "root.tar.zst").write_bytes(b"x")
    folders = [tmp_path / "none", other, damaged]
    site.nodes = [changed(node, image=folder) for node, folder in zip(site.nodes, folders, strict=True)]
    message = refused(site)
    assert (
        f"{tmp_path / 'none'} does not contain a root image (build it: rackwright image build"
        in message.replace("image. (", "image (")
    )
    assert f"worker2 is declared with debian-13, and {other} has debian-12" in message
    assert f"{damaged / 'root.tar.zst'} does not match its manifest" in message


def test_a_recovery_key_that_is_missing(site, monkeypatch):
    site.nodes = [changed(node, encryption=Encryption.TPM2) for node in site.nodes]

    def no_store(cluster):
        raise SecretsError("There is no secrets store.")

    monkeypatch.setattr("rackwright.install.recovery.store_of", no_store)
    message = refused(site)
    for name in ("worker1", "worker2", "worker3"):
        assert f"The disks of {name} must be encrypted, but the recovery key is missing" in message


def test_an_image_of_many_nodes_is_read_once(site, monkeypatch):
    real, reads = module.read_image, []
    monkeypatch.setattr(module, "read_image", lambda folder: (reads.append(folder), real(folder))[1])
    site.installation().prepare(lambda _: None)
    assert reads == [site.image.folder]


def test_a_key_that_is_missing(site):
    site.key = Path("/nowhere/key")
    with pytest.raises(InstallError, match="Cannot read the SSH key /nowhere/key") as error:
        site.installation()
    assert error.value.hint == "check ssh.key in the cluster file"


def test_the_public_key_is_what_new_nodes_take(site):
    name, base64, comment = site.installation()._key.split()
    key = paramiko.Ed25519Key.from_private_key_file(str(site.key))
    assert (name, base64, comment) == ("ssh-ed25519", key.get_base64(), "rackwright")


def test_a_boot_network_that_is_not_declared(site):
    cluster = site.cluster.model_copy(update={"boot_network": None})
    with pytest.raises(InstallError, match="has no `boot_network`: machines") as error:
        Installation(cluster, Asked("install", tuple(site.nodes)), site.open, print)
    assert error.value.hint == "e.g. `boot_network: {server: 10.1.0.5}`"


def test_a_port_that_is_taken(site):
    with socket.socket() as other:
        other.bind(("127.0.0.1", site.network.port))
        other.listen()
        with pytest.raises(
            InstallError, match=f"Agents cannot be served at 127.0.0.1, port {site.network.port}"
        ):
            site.run()
    assert site.untouched()


def test_a_diskless_node_is_prepared_too(site):
    site.nodes = [changed(site.nodes[0], diskless=True, disk=DiskRule())]
    site.installation().prepare(lambda _: None)


def test_the_limits_of_a_real_site():
    """Minutes, not seconds: firmware of big machines takes ten."""
    tempo = Tempo()
    assert tempo.power_on >= 60 <= tempo.power_off
    assert tempo.first_boot >= 15 * 60
    assert tempo.installing >= 3600
