"""One machine from its BMC's first answer to the first login, with everything that may come between."""

from __future__ import annotations

import threading

import pytest

from rackwright.bmc.interface import BootTarget, Power
from rackwright.errors import BmcError, ImageError, InstallError
from rackwright.install import medium
from rackwright.install.limits import Interrupted, Refused
from rackwright.install.record import folder, read
from rackwright.install.run import confirm
from rackwright.install.states import State
from rackwright.model.install import DiskRule
from tests.unit.install.fake_machine import Agent, FakeMachine, Head1, plain_media, until
from tests.unit.install.site import GPT, HOST_KEY, changed, mac, make_image, make_worker

GONE_ON = [
    State.PRECHECKED,
    State.ARMED,
    State.DISCOVERED,
    State.INVENTORIED,
    State.APPROVED,
    State.INSTALLING,
]
INSTALLED = [*GONE_ON, State.INSTALLED, State.FIRST_BOOT, State.READY]


@pytest.fixture
def machine():
    return FakeMachine()


@pytest.fixture
def head(machine, tmp_path, monkeypatch):
    """Makes the head's process; every one is ended with the test."""
    plain_media(monkeypatch)
    image, made = make_image(tmp_path / "image"), []

    def make(node=None, fake=machine, **more):
        made.append(Head1(node or make_worker(1, image.folder), fake, image, **more))
        return made[-1]

    yield make
    machine.cut()
    for one in made:
        one.machine.stop.set()
        one.end()
    for agent in machine.agents:
        agent.join(10)


def nothing_left(machine, head):
    """The medium is out of its drive and deleted, and no order to boot it is left; what booted cannot come back."""
    assert machine.medium is None
    assert not list((folder("test") / "media").glob("*"))
    assert machine.override.target is not BootTarget.CD
    assert head.journal.record.media == ""
    assert head.machine.medium.case.media == {}
    journal = (folder("test") / "worker1.jsonl").read_text()
    assert not any(token in journal for token in machine.tokens)


def test_from_off_to_ready(head, machine):
    one = head()
    assert one.run() is State.READY
    assert one.states == INSTALLED
    record = one.journal.record
    assert (record.serial, record.was_ready, record.stands, record.percent) == ("SN-1", True, True, 100)
    assert machine.override.target is BootTarget.DISK
    assert machine.calls.count("set_power on") == 2
    assert "set_power off" not in machine.calls
    assert machine.calls.index("eject_media") > machine.calls.index("set_power on")
    nothing_left(machine, one)
    assert [state for state, _ in one.notices][-3:] == [State.INSTALLED, State.FIRST_BOOT, State.READY]


def test_the_machine_is_looked_at_before_anything_is_done_to_it(head, machine):
    head().run()
    changes = [call for call in machine.calls if call.startswith(("set_", "trust", "insert", "eject"))]
    first = machine.calls.index(changes[0])
    assert set(machine.calls[:first]) == {"identity", "power", "secure_boot"}
    assert changes[:4] == ["trust_media", "insert_media", "set_boot cd", "set_power on"]


def left_alone(one, machine, message, typed=None, mode="install"):
    before = read("test", "worker1")
    with pytest.raises(Refused, match=message):
        one.run(mode, typed)
    assert read("test", "worker1") == before
    assert not [call for call in machine.calls if call.startswith(("set_", "trust", "insert", "eject"))]


@pytest.mark.parametrize("state", [Power.ON, Power.CHANGING, Power.UNKNOWN])
@pytest.mark.parametrize("mode", ["install", "discover"])
def test_a_machine_that_is_not_off(head, machine, state, mode):
    machine.state = state
    left_alone(head(), machine, f"its power is {state}", "SN-1", mode)


def test_a_machine_whose_address_answers(head, machine):
    machine.answers_ssh = True
    left_alone(head(), machine, "its address answers on the SSH port")


def test_the_bmc_of_another_machine(head, machine):
    machine.serial = "SN-2"
    left_alone(head(), machine, "its BMC belongs to machine SN-2, but serial SN-1 is declared")


def test_the_macs_of_another_machine(head, machine):
    machine.macs = (mac(2),)
    left_alone(head(), machine, f"has the MACs {mac(2)}, but {mac(1)} is declared")


def test_a_mac_alone(head, machine):
    machine.serial = None
    left_alone(head(nameless()), machine, "no serial number and no UUID")


UUID = "00000000-0000-4000-8000-000000000001"


def nameless():
    return make_worker().model_copy(update={"serial": None})


def test_a_machine_that_its_uuid_tells(head, machine):
    """The board's serial number was never set."""
    machine.serial, machine.uuid = None, UUID
    one = head(nameless())
    assert one.run() is State.READY
    assert (one.journal.record.serial, one.journal.record.uuid) == ("", UUID)


def test_another_machine_by_its_uuid_is_held(head, machine):
    other = "00000000-0000-4000-8000-000000000002"
    machine.serial, machine.uuid, machine.dmi_uuid = None, UUID, other
    one = head(nameless())
    object.__setattr__(one.machine.network, "hold_minutes", 0.0005)
    assert one.run() is State.FAILED
    reason = f"its UUID is {other}, but its BMC's machine has {UUID}"
    assert reason in one.journal.record.reason
    nothing_left(machine, one)


def test_a_node_that_was_ready_is_then_agreed_to_by_its_uuid(head, machine):
    machine.serial, machine.uuid = None, UUID
    head(nameless()).run()
    machine.cut()
    machine.answers_ssh, machine.signatures = False, []
    for typed in (None, "", "None", "SN-1", UUID[:-1]):
        machine.calls = []
        left_alone(head(nameless()), machine, "it is already installed|is not its UUID", typed)
    assert head(nameless()).run("install", UUID) is State.READY


def test_a_bmc_that_does_not_answer(head, machine):
    machine.silent(True)
    with pytest.raises(BmcError):
        head().run()
    assert read("test", "worker1").state is State.DECLARED


@pytest.mark.parametrize("typed", [None, "SN-2", "worker1", "sn-1"])
def test_a_node_that_was_ready_is_not_erased_without_its_serial_number(head, machine, typed):
    one = head()
    one.run()
    machine.cut()
    machine.answers_ssh, machine.calls = False, []
    left_alone(one, machine, "it is already installed|is not its serial number", typed)
    assert machine.holds == one.journal.record.run


def test_with_it_its_disk_still_has_to_be_confirmed(head, machine):
    one = head()
    one.run()
    first = one.journal.record.run
    machine.cut()
    machine.answers_ssh = False
    again = head()
    thread = threading.Thread(target=again.run, args=("install", "SN-1"))
    thread.start()
    until(lambda: again.journal.record.state is State.HELD)
    assert machine.holds == first, "nothing is written yet"
    assert again.journal.record.was_ready
    confirm(again.cluster, again.node, "DISK-1")
    thread.join(10)
    assert again.journal.record.state is State.READY
    assert machine.holds == again.journal.record.run != first
    nothing_left(machine, again)


def test_a_node_that_was_ready_stays_so_when_it_is_held_and_when_it_fails(head, machine):
    head().run()
    machine.cut()
    machine.answers_ssh = False
    again = head()
    object.__setattr__(again.machine.network, "hold_minutes", 0.0005)
    assert again.run("install", "SN-1") is State.FAILED
    assert again.states[len(INSTALLED) :] == [*GONE_ON[:4], State.HELD, State.FAILED]
    until(lambda: machine.state is Power.OFF)
    machine.calls = []
    left_alone(head(), machine, "it is already installed")


def test_a_disk_that_holds_anything_is_not_written(head, machine):
    machine.signatures = [GPT]
    one = head()
    thread = threading.Thread(target=one.run)
    thread.start()
    until(lambda: one.journal.record.state is State.HELD)
    assert one.journal.record.held == {"DISK-1": (GPT,)}
    until(lambda: len(machine.agents) == 1)
    assert machine.signatures == [GPT]
    # the other process of `rackwright install --erase`, which knows the state folder alone
    assert confirm(one.cluster, one.node, "DISK-1") == (GPT,)
    thread.join(10)
    assert one.states == [*GONE_ON[:4], State.HELD, *GONE_ON[3:], *INSTALLED[6:]]
    nothing_left(machine, one)


def test_held_and_not_confirmed_in_time(head, machine):
    machine.signatures = [GPT]
    one = head()
    object.__setattr__(one.machine.network, "hold_minutes", 0.0005)
    assert one.run() is State.FAILED
    record = one.journal.record
    assert record.reason == "not confirmed within 0.0005 min: disk DISK-1 holds /dev/sda:gpt:1f0c"
    nothing_left(machine, one)
    until(lambda: machine.state is Power.OFF)
    assert "403" in machine.agents[0].error, "its session has ended, and it powers itself off"
    assert machine.signatures == [GPT]


def test_a_confirmation_in_the_moment_in_which_the_time_is_up_counts(head, machine):
    """Held when the head looked, installing when it would have given up."""
    one = head()
    machine.agent = lambda agent: None
    hold(one, State.HELD)
    seen = one.journal.record
    assert seen.state is State.HELD
    one.journal.move(State.INVENTORIED)
    one.journal.move(State.APPROVED)
    one.journal.move(State.INSTALLING)
    object.__setattr__(one.machine.network, "hold_minutes", 0)
    assert not one.machine._ended(seen, None, True, 1.0)
    assert one.journal.record.state is State.INSTALLING


def hold(one, state):
    path = [State.ARMED, State.DISCOVERED, State.INVENTORIED]
    path += {State.HELD: [State.HELD], State.SURVEYED: [State.SURVEYED]}.get(
        state, [State.APPROVED, State.INSTALLING, State.INSTALLED]
    )
    one.journal.move(State.PRECHECKED, "", run="r1", mode="install", serial="SN-1")
    for each in path[: path.index(state) + 1]:
        data = {"token_until": 9e9, "media": "/media/x.iso"} if each is State.ARMED else {}
        one.journal.move(each, "", **data)


def test_done_at_the_moment_in_which_the_power_is_seen_off(head):
    """The head looked while it was installing; the agent reported in between and powered itself off."""
    one = head()
    hold(one, State.INSTALLING)
    seen = one.journal.record
    one.journal.move(State.INSTALLED, "", host_key="k")
    assert not one.machine._ended(seen, 100.0, True, 1.0)
    assert one.journal.record.state is State.INSTALLED
    assert one.machine._ended(one.journal.record, 0.0, True, 1.0)


def test_the_power_is_lost_at_40_percent(head, machine):
    def lose(agent):
        agent.reached = lambda step: machine.cut() if step == "image" else None
        agent.install()

    machine.agent = lose
    one = head()
    assert one.run() is State.FAILED
    assert one.journal.record.reason == "the machine lost power in installing, at 40 %"
    assert machine.holds is None
    nothing_left(machine, one)
    machine.agent = Agent.install
    again = head()
    assert again.run() is State.READY
    assert State.HELD not in again.states, "what is on the disk is our own half"


def test_the_agent_reports_a_failure(head, machine):
    def fail(agent):
        agent.say_hello()
        agent.decision()
        agent.head.post("/v1/failed", {"phase": "image", "error": "SHA-256 differs"})

    machine.agent = fail
    one = head()
    assert one.run() is State.FAILED
    assert one.journal.record.reason == "image: SHA-256 differs"
    nothing_left(machine, one)


def test_the_agent_never_calls(head, machine):
    waits = threading.Event()
    machine.agent = lambda agent: waits.wait(10)
    one = head()
    object.__setattr__(one.machine.network, "token_minutes", 0.001)
    assert one.run() is State.FAILED
    assert one.journal.record.reason.startswith(
        "the agent did not call within 0.001 min: see rackwright bmc console"
    )
    nothing_left(machine, one)
    assert machine.state is Power.ON, "it is left on, for its console to be read"
    assert "set_power off" not in machine.calls
    waits.set()


def test_it_calls_too_late(head, machine):
    machine.agent = lambda agent: (until(lambda: one.journal.record.state is State.FAILED), agent.install())
    one = head()
    object.__setattr__(one.machine.network, "token_minutes", 0.0005)
    assert one.run() is State.FAILED
    machine.agents[0].join(10)
    assert machine.agents[0].error.endswith("for the medium") or "403" in machine.agents[0].error
    assert machine.signatures == []


def test_the_machine_does_not_come_on(head, machine):
    machine._boot = lambda: setattr(machine, "state", Power.OFF)
    one = head(power_on=0.05)
    assert one.run() is State.FAILED
    assert one.journal.record.reason == "the machine is still off 0 s after the power-on command"
    nothing_left(machine, one)


def test_the_medium_was_booted_by_another_machine(head, machine):
    """The BMC's serial number and that of the machine it is wired to are two: its agent does nothing."""
    machine.dmi_serial = "SN-7"
    one = head(power_on=0.2)
    assert one.run() is State.FAILED
    # so fast that its power may never have been seen on
    assert one.journal.record.reason.startswith(
        ("the machine lost power in armed", "the machine is still off")
    )
    nothing_left(machine, one)


@pytest.mark.parametrize("method", ["trust_media", "insert_media", "set_boot", "set_power"])
def test_the_bmc_fails_while_the_machine_is_armed(head, machine, method):
    machine.fails = {method: 1}
    one = head()
    with pytest.raises(BmcError, match=method):
        one.run()
    assert one.states == [State.PRECHECKED, State.ARMED, State.FAILED]
    assert one.journal.record.reason.startswith("The BMC of worker1 at 10.8.0.1 does not answer")
    nothing_left(machine, one)
    assert machine.state is Power.OFF
    assert head().run() is State.READY


def test_the_order_was_carried_out_and_reported_as_failed(head, machine, monkeypatch):
    """The machine comes on into an agent whose token is not taken any more."""
    real = FakeMachine.set_power

    def lost(self, action):
        real(self, action)
        raise BmcError("The BMC of worker1 timed out.")

    monkeypatch.setattr(FakeMachine, "set_power", lost)
    one = head()
    with pytest.raises(BmcError, match="timed out"):
        one.run()
    monkeypatch.setattr(FakeMachine, "set_power", real)
    assert one.journal.record.state is State.FAILED
    machine.agents[0].join(10)
    assert machine.state is Power.OFF
    assert machine.signatures == []
    nothing_left(machine, one)


@pytest.mark.parametrize("error", [ImageError("xorriso is missing"), OSError(28, "No space left on device")])
def test_the_medium_cannot_be_made(head, machine, monkeypatch, error):
    def fail(*_):
        raise error

    one = head()
    monkeypatch.setattr(medium, "make_iso", fail)
    with pytest.raises((ImageError, InstallError)):
        one.run()
    assert one.states == [State.PRECHECKED, State.FAILED]
    nothing_left(machine, one)
    assert machine.state is Power.OFF


def test_another_has_powered_it_on_meanwhile(head, machine, monkeypatch):
    """Between the first look and the order to boot: the medium takes seconds to make."""
    real = medium.make_iso

    def slow(*arguments):
        real(*arguments)
        machine.state = Power.ON

    monkeypatch.setattr(medium, "make_iso", slow)
    one = head()
    with pytest.raises(InstallError, match="worker1 was off, but its power is now on: it was not touched"):
        one.run()
    assert "insert_media" not in machine.calls
    assert not [call for call in machine.calls if call.startswith("set_power")]
    nothing_left(machine, one)


def test_a_bmc_that_cannot_eject_still_loses_its_order_to_boot(head, machine):
    machine.fails = {"eject_media": 1}
    one = head()
    assert one.run() is State.READY
    nothing_left(machine, one)  # it is tried again at the end
    assert any("the boot medium is still in its drive" in reason for _, reason in one.notices)


def test_and_the_next_run_takes_out_what_is_left(head, machine):
    machine.fails = {"eject_media": -1}
    one = head()
    assert one.run() is State.READY
    assert machine.medium is not None
    assert one.journal.record.media
    machine.fails = {}
    with pytest.raises(Refused):
        head().run()
    nothing_left(machine, head())


def test_but_not_out_of_another_machine(head, machine):
    machine.fails = {"eject_media": -1}
    head().run()
    machine.fails, machine.serial, machine.calls = {}, "SN-9", []
    with pytest.raises(Refused):
        head().run()
    assert "eject_media" not in machine.calls


def test_a_bmc_that_is_silent_for_a_while(head, machine):
    def work(agent):
        agent.say_hello()
        machine.silent(True)
        until(lambda: machine.calls[-5:] == ["power"] * 5)
        machine.silent(False)
        orders = agent.decision()["install"]
        agent.write(orders)
        agent.done(orders)

    machine.agent = work
    one = head()
    assert one.run() is State.READY
    assert one.states == INSTALLED


def test_a_bmc_that_stays_silent(head, machine):
    def work(agent):
        agent.say_hello()
        machine.silent(True)
        agent.dead.wait(10)

    machine.agent = work
    one = head(bmc_silent=0.05)
    assert one.run() is State.FAILED
    assert one.journal.record.reason == "The BMC of worker1 at 10.8.0.1 does not answer power."
    assert not list((folder("test") / "media").glob("*")), "what can be taken away is"
    assert one.journal.record.media, "the next run ejects it"


def test_a_bmc_that_is_silent_when_all_is_written_loses_nothing(head, machine):
    def work(agent):
        agent.install()
        machine.silent(True)

    machine.agent = work
    one = head(bmc_silent=0.05)
    with pytest.raises(BmcError):
        one.run()
    assert one.journal.record.state is State.INSTALLED
    machine.silent(False)
    assert head().run() is State.READY


@pytest.mark.parametrize("method", ["set_boot", "set_power"])
def test_a_bmc_that_fails_at_the_first_boot_is_asked_again(head, machine, method):
    def work(agent):
        agent.install()
        machine.fails = {method: 2}

    machine.agent = work
    one = head()
    assert one.run() is State.READY
    assert machine.holds == one.journal.record.run


def test_an_unknown_power_is_no_loss_of_power(head, machine):
    def work(agent):
        agent.say_hello()
        machine.state = Power.UNKNOWN
        until(lambda: machine.calls[-6:] == ["power"] * 6)
        machine.state = Power.CHANGING
        until(lambda: machine.calls.count("power") > 20)
        machine.state = Power.ON
        orders = agent.decision()["install"]
        agent.write(orders)
        agent.done(orders)

    machine.agent = work
    assert head().run() is State.READY


def test_an_agent_that_cannot_power_off_is_helped(head, machine):
    machine.agent = lambda agent: (agent.install(), agent.dead.wait(10))
    one = head(power_off=0.05)
    assert one.run() is State.READY
    assert machine.calls.count("set_power off") == 1
    nothing_left(machine, one)


def test_but_not_where_something_answers(head, machine):
    """Another one powered it off and on into what was just installed: it is not cut off."""

    def work(agent):
        agent.install()
        machine.system, machine.answers_ssh = machine.holds, True
        agent.dead.set()

    machine.agent = work
    one = head(power_off=1.0)
    assert one.run() is State.READY
    assert "set_power off" not in machine.calls
    assert machine.calls.count("set_power on") == 1


def test_nor_where_this_process_did_not_see_the_agent_at_work(head, machine):
    """The journal is of yesterday: what runs there now is not known."""
    one = head(power_off=0.05)
    hold(one, State.INSTALLED)
    machine.state = Power.ON
    with pytest.raises(
        InstallError, match="worker1 is installed and not off; it is unknown what runs on it"
    ) as left:
        one.run()
    assert left.value.hint == "run rackwright bmc power FILE off --limit worker1, then repeat the command"
    assert not [call for call in machine.calls if call.startswith("set_power")]
    assert one.journal.record.state is State.INSTALLED
    machine.cut()
    machine.holds = "r1"
    one.journal.note(host_key=HOST_KEY)
    assert head().run() is State.READY


def test_a_machine_that_ignores_the_order_off_is_not_waited_for_without_end(head, machine):
    machine.agent = lambda agent: (agent.install(), agent.dead.wait(10))
    machine.cut = lambda: None
    one = head(power_off=0.05)
    with pytest.raises(InstallError, match="is installed and not off"):
        one.run()
    nothing_left(machine, one)
    assert one.journal.record.state is State.INSTALLED
    del machine.cut


@pytest.mark.parametrize("booted", ["r0", ""])
def test_it_boots_another_installation(head, machine, booted):
    def work(agent):
        agent.install()
        machine.holds = booted

    machine.agent = work
    one = head()
    assert one.run() is State.FAILED
    assert one.journal.record.reason.startswith("it booted another installation than the one just written")
    assert not one.journal.record.was_ready
    nothing_left(machine, one)


def test_it_does_not_boot(head, machine):
    def work(agent):
        agent.install()
        machine.holds = None

    machine.agent = work
    one = head(first_boot=0.06)
    assert one.run() is State.FAILED
    assert one.journal.record.reason.startswith("no login within 0.001 min")
    nothing_left(machine, one)


def test_two_installations_of_one_node_at_once(head):
    one, two = head(), head()
    with (
        one.journal.claim(),
        pytest.raises(InstallError, match="is installing worker1"),
        two.journal.claim(),
    ):
        two.run()


def kill_at(one, step):
    """Have the head's process end when the agent has got there; the agent waits for the next one."""

    def work(agent):
        def reached(now):
            if now == step and not one.machine.stop.is_set():
                one.machine.stop.set()
                until(lambda: one.ended)

        agent.reached = reached
        agent.install()

    one.fake.agent, one.ended = work, False


@pytest.mark.parametrize("step", ["discovered", "installing", "partitioned", "image", "done"])
def test_the_head_is_killed_and_the_next_one_goes_on(head, machine, step):
    one = head()
    kill_at(one, step)
    with pytest.raises(Interrupted, match="worker1 was left in the state"):
        one.run()
    one.end()
    run, path = one.journal.record.run, one.states
    assert machine.medium is not None, "nothing more was done to the machine"
    again = head(port=one.port)
    one.ended = True
    assert again.run() is State.READY
    assert again.journal.record.run == run
    assert again.states[: len(path)] == path
    assert again.states == INSTALLED
    assert machine.calls.count("insert_media") == 1
    nothing_left(machine, again)


def test_it_is_killed_while_the_machine_is_held(head, machine):
    machine.signatures = [GPT]
    one = head()
    kill_at(one, "held")
    with pytest.raises(Interrupted):
        one.run()
    one.end()
    confirm(one.cluster, one.node, "DISK-1")  # also while no head runs
    again = head(port=one.port)
    one.ended = True
    assert again.run() is State.READY
    nothing_left(machine, again)


class Killed(BaseException):
    """The process ends here, with nothing cleaned up."""


@pytest.mark.parametrize("state", [State.PRECHECKED, State.ARMED, State.FIRST_BOOT])
def test_it_is_killed_right_after_a_line_of_its_own(head, machine, state):
    one = head()

    def die(now, _):
        if now is state:
            raise Killed

    one.machine.notice = die
    with pytest.raises(Killed):
        one.run()
    one.end()
    assert one.journal.record.state is state
    first = one.journal.record.run
    again = head(port=one.port)
    assert again.run() is State.READY
    assert (again.journal.record.run == first) is (state is State.FIRST_BOOT)
    assert machine.calls.count("insert_media") == 1
    nothing_left(machine, again)


def test_it_is_killed_with_the_medium_in_its_drive_and_the_machine_still_off(head, machine, monkeypatch):
    def die(self, action):
        raise Killed

    one = head()
    real = FakeMachine.set_power
    monkeypatch.setattr(FakeMachine, "set_power", die)
    with pytest.raises(Killed):
        one.run()
    monkeypatch.setattr(FakeMachine, "set_power", real)
    one.end()
    assert machine.medium is not None
    again = head(port=one.port)
    assert again.run() is State.READY
    assert again.states == [State.PRECHECKED, State.ARMED, State.FAILED, *INSTALLED]
    assert machine.calls.count("eject_media") == 2, "the first one's medium, with its token, is out too"
    nothing_left(machine, again)


def test_it_is_killed_before_it_could_take_the_medium_away(head, machine):
    def fail(agent):
        agent.say_hello()
        agent.head.post("/v1/failed", {"error": "odd"})

    machine.agent = fail
    one = head()
    one.machine.medium.remove = lambda bmc: (_ for _ in ()).throw(Killed)
    with pytest.raises(Killed):
        one.run()
    one.end()
    machine.agents[0].join(10)
    machine.state = Power.ON  # another one powers it on: it is left alone, but for the medium
    again = head()
    with pytest.raises(Refused):
        again.run()
    nothing_left(machine, again)


@pytest.mark.parametrize("state", [State.DISCOVERED, State.HELD, State.INSTALLING])
def test_the_power_was_lost_while_no_head_ran(head, machine, state):
    one = head()
    hold(one, state) if state is not State.DISCOVERED else hold_at_discovered(one)
    one.journal.note(confirm={"DISK-1": [GPT]}, of="r1", percent=40)
    machine.signatures, machine.medium = [], "https://127.0.0.1/media/x.iso"
    assert one.run() is State.READY
    assert State.FAILED in one.states
    assert one.journal.record.run != "r1"
    nothing_left(machine, one)


def hold_at_discovered(one):
    one.journal.move(State.PRECHECKED, "", run="r1", mode="install", serial="SN-1")
    one.journal.move(State.ARMED, "", token_until=9e9, media="/media/x.iso")
    one.journal.move(State.DISCOVERED)


def test_a_confirmation_does_not_outlive_a_loss_of_power(head, machine):
    one = head()
    hold(one, State.HELD)
    one.journal.note(confirm={"DISK-1": [GPT]}, of="r1")
    machine.signatures = [GPT]
    threading.Thread(
        target=lambda: (
            until(lambda: one.journal.record.run != "r1" and one.journal.record.state is State.HELD),
            one.machine.stop.set(),
        )
    ).start()
    with pytest.raises(Interrupted):
        one.run()
    assert one.journal.record.confirmed == {}
    assert machine.signatures == [GPT]


def test_a_run_that_ends_leaves_the_machine_to_its_agent(head, machine):
    waits = threading.Event()
    machine.agent = lambda agent: (agent.say_hello(), waits.wait(10))
    one = head()
    threading.Thread(
        target=lambda: (until(lambda: one.journal.record.state is State.DISCOVERED), one.machine.stop.set())
    ).start()
    with pytest.raises(Interrupted):
        one.run()
    assert one.journal.record.state is State.DISCOVERED
    assert machine.medium is not None
    assert machine.calls.count("set_power on") == 1
    waits.set()


def test_a_discovery_writes_nothing_and_ends_with_the_power_off(head, machine):
    machine.signatures = [GPT]
    one = head()
    assert one.run("discover") is State.SURVEYED
    assert machine.state is Power.OFF
    assert one.journal.record.inventory["disks"][0]["signatures"] == [GPT]
    assert machine.signatures == [GPT]
    nothing_left(machine, one)


def test_a_discovery_of_a_machine_whose_port_is_not_declared(head, machine):
    """The agent gets one that the BMC reports."""
    one = head(make_worker().model_copy(update={"mac": None, "serial": None}))
    assert one.run("discover") is State.SURVEYED
    assert machine.agents[0].config["network"]["mac"] == mac(1)
    assert machine.agents[0].config["serial"] == "SN-1"


def test_a_surveyed_machine_that_stays_on(head, machine):
    machine.agent = lambda agent: (agent.install(), agent.dead.wait(10))
    one = head(power_off=0.05)
    assert one.run("discover") is State.SURVEYED
    assert machine.calls.count("set_power off") == 1
    machine.cut = lambda: None
    again = head(power_off=0.05)
    with pytest.raises(InstallError, match="worker1 is surveyed and not off"):
        again.run("discover")
    nothing_left(machine, again)
    del machine.cut


def test_a_bmc_that_falls_silent_after_a_survey(head, machine):
    def work(agent):
        agent.install()
        machine.silent(True)

    machine.agent = work
    one = head(bmc_silent=0.05)
    with pytest.raises(BmcError):
        one.run("discover")
    assert one.journal.record.state is State.SURVEYED


def test_a_discovery_does_not_go_on_with_an_installation(head, machine):
    one = head()
    hold(one, State.INSTALLING)
    machine.state = Power.ON
    left_alone(one, machine, "its power is on", mode="discover")
    assert one.journal.record.state is State.INSTALLING


def test_a_diskless_node_goes_on_from_memory(head, machine, tmp_path):
    machine.agent, machine.signatures = Agent.into_memory, [GPT]
    one = head(changed(make_worker(1, tmp_path / "image"), diskless=True, disk=DiskRule()))
    assert one.run() is State.READY
    assert machine.signatures == [GPT]
    assert machine.calls.count("set_power on") == 1
    assert "set_power off" not in machine.calls
    assert "set_boot disk" not in machine.calls
    nothing_left(machine, one)


def test_and_has_lost_everything_when_it_is_found_off(head, machine, tmp_path):
    one = head(changed(make_worker(1, tmp_path / "image"), diskless=True, disk=DiskRule()))
    hold(one, State.INSTALLED)
    one.journal.move(State.FIRST_BOOT)
    assert one.run() is State.FAILED
    assert "set_power on" not in machine.calls


def test_the_agent_is_given_its_token_and_no_one_else(head, machine):
    """Not the kernel's command line, not the journal, not a path that can be guessed."""
    seen = {}

    def look(agent):
        media = list((folder("test") / "media").glob("*"))
        seen.update(mode=media[0].stat().st_mode & 0o777, names=[one.name for one in media], url=agent.url)
        agent.install()

    machine.agent = look
    one = head()
    one.run()
    path = seen["url"].removeprefix(f"https://127.0.0.1:{one.port}/media/")
    assert len(path) == 32 + len(".iso")
    assert "worker1" not in path
    config = machine.agents[0].config
    assert config["token"] not in seen["url"]
    assert (
        config["network"]
        == {"mac": mac(1), "address": None, "gateway": None, "vlan": None} | config["network"]
    )
    assert (config["node"], config["run"], config["mode"]) == ("worker1", one.journal.record.run, "install")


def test_an_agent_without_a_serial_number_of_its_own_does_nothing(head, machine):
    machine.dmi_serial = None
    one = head(power_on=0.2)
    assert one.run() is State.FAILED
    assert machine.agents[0].error == "this is another machine"
