"""The erasure of a machine as its head sees it: who agrees to what, what is ordered, and what counts as erased."""

from __future__ import annotations

import json
import re
import threading

import pytest

from rackwright import __version__
from rackwright.bmc.interface import BmcIdentity, Power
from rackwright.errors import InstallError
from rackwright.install import erasure, erasure_certificate
from rackwright.install.erasure import MODE
from rackwright.install.interlocks import Seen, refusals
from rackwright.install.limits import Refused
from rackwright.install.record import Record, folder, read
from rackwright.install.run import confirm
from rackwright.install.states import State
from tests.unit.install.fake_machine import FakeMachine, Head1, plain_media, until
from tests.unit.install.site import EXT4, GPT, disk, make_image, make_site, make_worker
from tests.unit.install.test_desk import Desk1

SDA = disk(1, signatures=[EXT4, GPT])
SDB = disk(2, path="/dev/nvme0n1", model="Fast", size_bytes=4 * 10**12)
BOTH = (SDA, SDB)


def report(path="/dev/sda", **changes):
    return {
        "path": path,
        "method": "write-zeroes",
        "erased": True,
        "verified": True,
        "samples": 66,
        "held_data": 12,
        "seconds": 3.5,
        "error": None,
        "tried": ["secure-discard: not supported"],
        **changes,
    }


REPORTS = [report(), report("/dev/nvme0n1", method="nvme-format-user-data-erase", tried=[])]


class Bench(Desk1):
    """A machine that is to be erased, and whose agent has called."""

    def agree(self, serial="SN-1"):
        return confirm(make_site(self.node), self.node, serial, MODE)

    def erasing(self, *disks):
        self.show(*disks or BOTH)
        self.agree()
        status, answer = self.show(*disks or BOTH)
        assert (status, answer["action"]) == (200, "erase")
        return answer["erase"]

    def done(self, *reports, run="r1"):
        return self.post("done", {"run": run, "seconds": 9, "disks": list(reports or REPORTS)})

    @property
    def certificate(self):
        found = erasure_certificate.find("test", self.journal.record)
        return None if found is None else found[1]


@pytest.fixture
def image(tmp_path):
    return make_image(tmp_path / "image")


@pytest.fixture
def bench(image):
    return Bench(image, mode=MODE).begin()


# who agrees, and to what


def test_a_machine_is_held_with_everything_that_its_disks_hold(bench):
    status, answer = bench.show(*BOTH)
    assert (status, answer["action"], bench.state) == (200, "wait", State.HELD)
    assert answer["reasons"] == [
        "type its serial number to erase all its disks",
        "/dev/sda (serial DISK-1, Example 480) holds /dev/sda1:ext4:data, /dev/sda:gpt:1f0c",
        "/dev/nvme0n1 (serial DISK-2, Fast) holds nothing",
    ]
    assert bench.journal.record.held == {
        "SN-1": (
            "/dev/sda (serial DISK-1, Example 480), WWN unknown, 480000000000 bytes",
            EXT4,
            GPT,
            "/dev/nvme0n1 (serial DISK-2, Fast), WWN unknown, 4000000000000 bytes",
        )
    }


def test_even_a_machine_whose_disks_are_empty_is_held(bench):
    assert bench.show(disk(1))[1]["action"] == "wait"


def test_what_was_agreed_to_is_ordered_and_nothing_else(bench):
    ordered = bench.erasing()
    assert ordered == {
        "run": "r1",
        "left": [],
        "disks": [
            {key: one[key] for key in ("path", "serial", "model", "size_bytes", "wwn", "signatures")}
            for one in BOTH
        ],
    }
    assert bench.state is State.ERASING
    assert bench.journal.record.held == {}


@pytest.mark.parametrize("typed", ["SN-2", "DISK-1", "sn-1", "", "SN-1 "])
def test_another_serial_number_does_not_agree(bench, typed):
    bench.show(*BOTH)
    with pytest.raises(InstallError, match="is not the serial number of worker1's machine") as refused:
        bench.agree(typed)
    assert "SN-1" not in refused.value.message.replace(typed, "")
    assert bench.show(*BOTH)[1]["action"] == "wait"


@pytest.mark.parametrize(
    "changed",
    [
        (disk(1, signatures=[EXT4]), SDB),
        (disk(1, signatures=[EXT4, GPT, "/dev/sda2:ext4:new"]), SDB),
        (SDA,),
        (SDA, SDB, disk(3, path="/dev/sdc")),
        (SDA, disk(9, path="/dev/nvme0n1", model="Fast", size_bytes=4 * 10**12)),
        (SDA, {**SDB, "model": "Other"}),
        (SDA, {**SDB, "size_bytes": 1}),
        (SDA, {**SDB, "wwn": "eui.1"}),
        (SDA, {**SDB, "read_only": True}),
        (SDA, {**SDB, "error": "cannot be read"}),
    ],
)
def test_an_agreement_is_to_exactly_what_was_listed(bench, changed):
    bench.show(*BOTH)
    bench.agree()
    assert bench.show(*changed)[1]["action"] == "wait"
    assert bench.state is State.HELD
    # what is there now has to be agreed to anew
    assert bench.show(*changed)[1]["action"] == "wait"
    bench.agree()
    assert bench.show(*changed)[1]["action"] == "erase"


def test_an_agreement_dies_with_its_run(bench):
    bench.show(*BOTH)
    bench.agree()
    bench.post("failed", {"error": "lost", "phase": "inventory"})
    with pytest.raises(InstallError, match="worker1 is not on hold: it is failed"):
        bench.agree()
    bench.arm("r2")
    assert bench.journal.record.confirmed == {}
    bench.begin()
    assert bench.show(*BOTH)[1]["action"] == "wait"


def test_an_agreement_that_comes_late_is_not_of_the_next_run(bench):
    bench.show(*BOTH)
    held = bench.journal.record.held
    bench.post("failed", {"error": "lost"})
    bench.arm("r2")
    bench.journal.note(confirm={name: list(signs) for name, signs in held.items()}, of="r1")
    bench.begin()
    assert bench.show(*BOTH)[1]["action"] == "wait"


def test_a_confirmation_of_an_installation_is_none_of_an_erasure(image):
    bench = Bench(image, mode="install").begin()
    bench.show(SDA)
    with pytest.raises(InstallError, match="Another command handles") as refused:
        bench.agree("DISK-1")
    assert refused.value.hint == "rackwright install FILE --erase NODE=SERIAL"
    assert bench.journal.record.confirmed == {}


def test_a_confirmation_of_an_erasure_is_none_of_an_installation(bench):
    bench.show(*BOTH)
    with pytest.raises(InstallError, match="Another command handles") as refused:
        confirm(make_site(bench.node), bench.node, "SN-1")
    assert refused.value.hint == "rackwright decommission FILE --erase NODE=SERIAL"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dmi": {"product_serial": "SN-2"}}, "its serial number is SN-2, but SN-1 is declared"),
        ({"nics": []}, "it has no port with the MAC 02:00:00:00:00:01: none at all"),
        ({"disks": []}, "it has no disks"),
        ({"disks": [{**SDA, "read_only": True}]}, "/dev/sda (serial DISK-1, Example 480): it is read-only"),
    ],
)
def test_a_machine_that_cannot_be_agreed_to(bench, changes, reason):
    _, answer = bench.show(*BOTH, **changes)
    assert answer["action"] == "wait"
    assert reason in answer["reasons"]
    assert bench.journal.record.held == {}
    with pytest.raises(InstallError, match="does not wait for a confirmation"):
        bench.agree()


def test_a_machine_may_have_lost_parts_before_it_goes(bench):
    bench.show(SDB, cpus=1, memory_kib=1, efi=False, gpus=7)
    assert set(bench.journal.record.held) == {"SN-1"}


def test_disks_that_cannot_be_erased_are_listed_and_left(bench):
    worn, dead = {**SDB, "read_only": True}, disk(3, path="/dev/sdc", error="Input/output error")
    _, answer = bench.show(SDA, worn, dead)
    assert answer["reasons"][2:] == [
        "/dev/nvme0n1 (serial DISK-2, Fast) cannot be erased: it is read-only",
        "/dev/sdc (serial DISK-3, Example 480) cannot be erased: it is unreadable: Input/output error",
    ]
    ordered = bench.erasing(SDA, worn, dead)
    assert [one["path"] for one in ordered["disks"]] == ["/dev/sda"]
    assert ordered["left"] == ["/dev/nvme0n1", "/dev/sdc"]
    bench.done(report())
    assert bench.state is State.FAILED
    reason = bench.journal.record.reason
    assert "/dev/nvme0n1 (serial DISK-2): it is read-only" in reason
    assert "/dev/sdc (serial DISK-3): it is unreadable: Input/output error" in reason
    assert "DISK-1" not in reason
    assert bench.certificate["result"] == "incomplete"
    assert [one["erased"] for one in bench.certificate["disks"]] == [True, False, False]


# what the machine is before it is switched on


def seen(serial="SN-1", uuid=None, power=Power.OFF, answers=False):
    identity = BmcIdentity(maker="E", model="X", serial=serial, uuid=uuid, macs=("02:00:00:00:00:01",))
    return Seen(identity, power, False, answers)


def reasons(typed, seen_=None, node=None, **record):
    found = refusals(node or make_worker(), seen_ or seen(), Record("worker1", **record), typed, MODE)
    return [(one.message, one.hint) for one in found]


def test_the_serial_number_is_always_typed():
    ((message, hint),) = reasons(None)
    assert message == "its serial number was not given"
    assert hint == ("to erase all its disks: --serial worker1=SERIAL; read it off the machine's label"), (
        "it is not printed"
    )
    assert reasons("SN-1") == []
    assert reasons("SN-1", was_ready=True) == []
    assert reasons("SN-2")[0][0] == "SN-2 is not its serial number"
    uuid = "11111111-2222-4333-8444-555555555555"
    nameless = make_worker().model_copy(update={"serial": None})
    assert reasons(uuid, seen(None, uuid), nameless) == []
    assert reasons("SN-1", seen(None, uuid), nameless)[0][0] == "SN-1 is not its UUID"


def test_a_machine_that_runs_or_is_another_is_left_alone():
    assert reasons("SN-1", seen(power=Power.ON))[0][0].startswith("its power is on")
    assert reasons("SN-1", seen(answers=True))[0][0] == "its address answers on the SSH port"
    assert "its BMC belongs to machine SN-2" in reasons("SN-1", seen("SN-2"))[0][0]


# what counts as erased


def test_an_erased_machine_has_a_certificate_and_nothing_to_protect(bench):
    bench.journal.move(State.PRECHECKED, run="r0", mode="install", serial="SN-1")
    for state in [
        "armed",
        "discovered",
        "inventoried",
        "approved",
        "installing",
        "installed",
        "first-boot",
        "ready",
    ]:
        bench.journal.move(State(state))
    assert (bench.journal.record.was_ready, bench.journal.record.stands) == (True, True)
    bench.arm()
    bench.begin()
    bench.erasing()
    assert (bench.journal.record.was_ready, bench.journal.record.stands) == (True, False)
    assert bench.done() == (200, {})
    record = read("test", "worker1")
    assert (record.state, record.reason) == (State.ERASED, "2 disks erased and verified")
    assert (record.was_ready, record.stands, record.session, record.confirmed) == (False, False, "", {})
    path, found = erasure_certificate.find("test", record)
    assert path == folder("test") / "erased" / "worker1-r1.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", found.pop("time"))
    first, second = found.pop("disks")
    assert found == {
        "schema": 1,
        "result": "erased",
        "rackwright": __version__,
        "node": "worker1",
        "run": "r1",
        "machine": {"serial": "SN-1", "uuid": "uuid-1", "vendor": "Example", "product": None},
    }
    assert first == {
        "path": "/dev/sda",
        "serial": "DISK-1",
        "wwn": None,
        "model": "Example 480",
        "size_bytes": 480 * 10**9,
        "held": [EXT4, GPT],
        "method": "write-zeroes",
        "level": "clear",
        "erased": True,
        "verified": True,
        "samples": 66,
        "samples_with_data_before": 12,
        "seconds": 3.5,
        "not_used": ["secure-discard: not supported"],
        "error": None,
    }
    assert (second["serial"], second["method"], second["level"]) == (
        "DISK-2",
        "nvme-format-user-data-erase",
        "clear",
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"verified": False, "error": "still has data at byte 4096"},
            "still has data at byte 4096",
        ),
        ({"erased": False, "verified": False, "error": "Input/output error"}, "Input/output error"),
        ({"verified": False}, "erased: True, verified: False, by write-zeroes"),
        ({"erased": False}, "erased: False, verified: True, by write-zeroes"),
        ({"method": None}, "by no method"),
        ({"method": "prayer"}, "by prayer"),
        ({"error": "namespaces stay"}, "namespaces stay"),
    ],
)
def test_one_disk_that_is_not_erased_and_verified_fails_the_node(bench, changes, reason):
    bench.erasing()
    status, answer = bench.done(report(**changes), REPORTS[1])
    assert (status, answer["action"], bench.state) == (200, "off", State.FAILED)
    assert bench.journal.record.reason.startswith("not erased: /dev/sda (serial DISK-1): ")
    assert reason in bench.journal.record.reason
    assert "DISK-2" not in bench.journal.record.reason
    assert bench.certificate["result"] == "incomplete"
    assert [one["level"] for one in bench.certificate["disks"]] == [None, "clear"]
    assert bench.journal.record.stands is False


def test_a_disk_without_a_report_is_not_erased(bench):
    bench.erasing()
    bench.done(REPORTS[1], report("/dev/sdz"))
    assert "/dev/sda (serial DISK-1): the agent did not report on it" in bench.journal.record.reason


@pytest.mark.parametrize(
    "disks",
    [
        None,
        "all",
        [{"path": "/dev/sda"}],
        [report(erased=1)],
        [report(verified="true")],
        [report(seconds=-1)],
        [report(samples=-1)],
        [report(error="x" * 3000)],
        [report(), report()],
    ],
)
def test_reports_that_are_not_valid_fail_the_node(bench, disks):
    bench.erasing()
    bench.post("done", {"run": "r1", "disks": disks})
    assert bench.state is State.FAILED
    assert bench.journal.record.reason.startswith("its report ")
    assert bench.certificate is None


def test_what_an_agent_says_is_made_printable(bench):
    bench.erasing()
    bench.done(report(error="\x1b[2Jfine"), REPORTS[1])
    assert "\x1b" not in bench.journal.record.reason
    path, _ = erasure_certificate.find("test", bench.journal.record)
    assert "\\u001b" not in path.read_text()


def test_an_erasure_of_another_run_or_time_is_refused(bench):
    assert bench.done()[0] == 409
    bench.erasing()
    assert bench.done(run="r0")[0] == 409
    assert bench.state is State.ERASING
    bench.done()
    assert bench.done()[0] == 403  # its session has ended
    assert bench.state is State.ERASED


def test_an_answer_that_was_lost_is_given_again(bench):
    first = bench.erasing()
    assert bench.show(*BOTH) == (200, {"action": "erase", "erase": first})
    assert bench.show(SDA)[1]["action"] == "wait"


def test_progress(bench):
    bench.erasing()
    assert bench.post("progress", {"phase": "erase: 1 of 2 disks", "percent": 40})[0] == 200
    record = bench.journal.record
    assert (record.state, record.phase, record.percent) == (State.ERASING, "erase: 1 of 2 disks", 40)


def test_no_image_is_given_to_a_machine_that_is_erased(bench):
    bench.erasing()
    assert bench.desk.image_of(bench.session) is None


def test_the_largest_disk_sets_the_time(bench):
    assert erasure.time_limit(Record("worker1", mode="install")) == 0
    bench.show(*BOTH)
    assert erasure.time_limit(bench.journal.record) == 1800 + 4 * 10**12 / 25e6 + 3600


# with its machine


class Eraser(FakeMachine):
    """Its agent erases; `cut_in` it loses its power in the middle."""

    def __init__(self):
        super().__init__()
        self.signatures = [EXT4, GPT]
        self.agent = self.erase
        self.cut_in = 0
        self.says = {}

    def erase(self, agent):
        agent.say_hello()
        answer = agent.decision()
        if answer["action"] == "off":
            return
        ordered = answer["erase"]
        assert ordered["disks"][0]["signatures"] == [EXT4, GPT]
        agent.head.post("/v1/progress", {"phase": "erase", "percent": 50})
        if self.cut_in:
            self.cut_in -= 1
            self.cut()
            return
        self.signatures = []
        agent.head.post("/v1/done", {"run": ordered["run"], "disks": [report(**self.says)]})


@pytest.fixture
def eraser():
    return Eraser()


@pytest.fixture
def head(eraser, image, monkeypatch):
    plain_media(monkeypatch)
    made = []

    def make(**more):
        made.append(Head1(make_worker(1, image.folder), eraser, image, **more))
        return made[-1]

    yield make
    eraser.cut()
    for one in made:
        one.machine.stop.set()
        one.end()
    for agent in eraser.agents:
        agent.join(10)


def agreeing(one, threads):
    """Types the serial number once the machine is held."""

    def type_it():
        until(lambda: one.journal.record.state is State.HELD)
        confirm(one.cluster, one.node, "SN-1", MODE)

    thread = threading.Thread(target=type_it)
    threads.append(thread)
    thread.start()


@pytest.fixture
def threads():
    made = []
    yield made
    for one in made:
        one.join(15)


def test_from_off_to_erased(head, eraser, threads):
    one = head()
    agreeing(one, threads)
    assert one.run(MODE, "SN-1") is State.ERASED
    assert one.states == [
        State(name)
        for name in [
            "prechecked",
            "armed",
            "discovered",
            "inventoried",
            "held",
            "inventoried",
            "approved",
            "erasing",
            "erased",
        ]
    ]
    assert eraser.state is Power.OFF
    assert eraser.medium is None
    assert "set_power off" not in eraser.calls
    assert eraser.calls.count("set_power on") == 1
    assert eraser.agents[0].config["mode"] == MODE
    assert eraser.agents[0].config["serial"] == "SN-1"
    assert one.journal.record.media == ""


def test_nothing_is_done_to_a_machine_whose_serial_number_was_not_typed(head, eraser):
    one = head()
    with pytest.raises(Refused, match="worker1 was not touched: its serial number was not given"):
        one.run(MODE)
    assert one.journal.record.state is State.DECLARED
    assert not [call for call in eraser.calls if call.startswith(("set_", "insert", "eject"))]


def test_a_hold_that_is_not_ended_in_time_fails(head, eraser, monkeypatch):
    one = head()
    one.machine.network = one.machine.network.model_copy(update={"hold_minutes": 0})
    assert one.run(MODE, "SN-1") is State.FAILED
    assert one.journal.record.reason.startswith("not confirmed within 0 min")
    assert eraser.signatures == [EXT4, GPT]


def test_a_power_cut_fails_and_the_next_run_asks_again(head, eraser, threads):
    eraser.cut_in = 1
    one = head()
    agreeing(one, threads)
    assert one.run(MODE, "SN-1") is State.FAILED
    assert one.journal.record.reason == "the machine lost power in erasing, at 50 %"
    assert one.journal.record.confirmed == {}
    assert erasure_certificate.find("test", one.journal.record) is None
    threads.pop().join(15)
    agreeing(one, threads)
    assert one.run(MODE, "SN-1") is State.ERASED
    assert one.states.count(State.HELD) == 2


def test_a_disk_that_was_not_verified_fails_the_machine(head, eraser, threads):
    eraser.says = {"verified": False, "error": "still has data at byte 0"}
    one = head()
    agreeing(one, threads)
    assert one.run(MODE, "SN-1") is State.FAILED
    found = json.loads((folder("test") / "erased" / f"worker1-{one.journal.record.run}.json").read_text())
    assert found["result"] == "incomplete"
    assert eraser.medium is None


def test_an_erasure_takes_as_long_as_its_disks_need(head, eraser, threads):
    """The limit of an installation does not end it."""
    one = head(installing=0.0)
    agreeing(one, threads)
    assert one.run(MODE, "SN-1") is State.ERASED
