"""What the head answers to agents: whole conversations, and attempts to get around them."""

from __future__ import annotations

import secrets
import threading
import time

import pytest

from rackwright.errors import InstallError
from rackwright.install.desk import Case, Desk
from rackwright.install.record import Journal, read
from rackwright.install.run import confirm
from rackwright.install.states import State
from rackwright.install.tokens import digest, new_token
from rackwright.install.verdict import Verdict
from rackwright.model.install import DiskRule
from tests.unit.install.site import (
    EXT4,
    GPT,
    HOST_KEY,
    changed,
    disk,
    document,
    make_image,
    make_site,
    make_worker,
)


class Desk1:
    """A desk with the case of one node, whose machine is armed."""

    def __init__(self, image, number=1, mode="install", desk=None, node=None):
        self.node = node or make_worker(number, image.folder)
        self.number, self.mode, self.token = number, mode, new_token()
        self.desk = desk or Desk()
        self.journal = Journal("test", self.node.name)
        self.ordered: list[Verdict] = []
        self.case = Case(self.node, self.journal, self.orders, image, mode=mode)
        self.desk.open(self.case)
        self.arm()

    def orders(self, verdict):
        self.ordered.append(verdict)
        return {"run": self.journal.record.run, "disks": [one.serial for one in verdict.chosen]}

    def arm(self, run="r1", seconds=60.0):
        self.token = new_token()
        self.journal.move(State.PRECHECKED, "", run=run, mode=self.mode, serial=f"SN-{self.number}")
        until = time.time() + seconds
        self.journal.move(State.ARMED, "", token=digest(self.token), token_until=until)

    def hello(self, token=None, session=None):
        self.session = secrets.token_hex(24) if session is None else session
        body = {"version": 1, "serial": f"SN-{self.number}", "clock": 1, "session": self.session}
        return self.desk.answer("/v1/hello", self.token if token is None else token, body)

    def begin(self):
        assert self.hello()[0] == 200
        return self

    def post(self, path, body=None, session=None):
        return self.desk.answer(f"/v1/{path}", session or self.session, body or {})

    def show(self, *disks, **changes):
        return self.post("inventory", document(self.number, *disks, **changes))

    @property
    def state(self):
        return read("test", self.node.name).state


@pytest.fixture
def image(tmp_path):
    return make_image(tmp_path / "image")


@pytest.fixture
def desk(image):
    return Desk1(image)


def test_a_whole_conversation(desk, image):
    before = time.time()
    status, answer = desk.hello()
    assert (status, desk.state) == (200, State.DISCOVERED)
    assert before <= answer["clock"] <= time.time()
    assert desk.desk.image_of(desk.session) is None, "there is nothing to install yet"
    assert desk.show() == (200, {"action": "install", "install": {"run": "r1", "disks": ["DISK-1"]}})
    assert (desk.state, desk.journal.record.image) == (State.INSTALLING, image.sha256)
    assert desk.desk.image_of(desk.session) is image
    assert desk.post("progress", {"phase": "image", "percent": 40}) == (200, {})
    assert (desk.journal.record.phase, desk.journal.record.percent) == ("image", 40)
    done = {"run": "r1", "host_keys": {"ed25519": f"{HOST_KEY} root@worker1"}, "seconds": 90}
    assert desk.post("done", done) == (200, {})
    assert (desk.state, desk.journal.record.host_key) == (State.INSTALLED, HOST_KEY)
    assert desk.desk.image_of(desk.session) is None
    assert desk.post("progress", {"phase": "image", "percent": 1})[0] == 403, "the session has ended"


def test_a_token_is_taken_once(desk):
    session = desk.begin().session
    assert desk.journal.record.token == "", "spent in the line that lets it in"
    assert desk.hello() == (403, {"error": "the token is unknown, already used or expired"})
    assert desk.state is State.DISCOVERED
    assert desk.post("inventory", document(desk.number), session)[0] == 200


def test_an_answer_that_was_lost_is_given_again_to_the_same_agent(desk):
    desk.begin()
    began = desk.journal.record.since
    assert desk.hello(session=desk.session)[0] == 200
    assert desk.journal.record.since == began
    assert desk.hello("another token", session=desk.session)[0] == 200, "the session is the secret now"
    desk.show()
    assert desk.hello(session=desk.session)[0] == 403, "it has its answer: it went on"


@pytest.mark.parametrize("session", ["", "x" * 48, "a" * 47, "a" * 49, 5, None, ["a" * 48]])
def test_a_session_that_is_none(desk, session):
    assert desk.desk.answer("/v1/hello", desk.token, {"session": session})[0] == 400
    assert desk.state is State.ARMED


def test_of_many_that_show_it_at_once_one_is_let_in(desk):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(desk.hello()[0])) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(20)
    assert sorted(answers) == [200] + [403] * 7


@pytest.mark.parametrize("token", ["", "invented", "A" * 32])
def test_an_invented_token(desk, token):
    assert desk.hello(token)[0] == 403
    assert desk.hello(desk.journal.record.token)[0] == 403, "nor its digest, which the journal has"
    assert desk.state is State.ARMED


def test_a_token_that_is_too_old(image):
    desk = Desk1(image)
    desk.arm("r2", seconds=-1)
    assert desk.hello()[0] == 403
    assert desk.state is State.ARMED


def test_a_token_of_an_earlier_run(desk):
    old = desk.token
    desk.journal.move(State.FAILED)
    assert desk.hello()[0] == 403
    desk.arm("r2")
    assert desk.hello(old)[0] == 403
    assert desk.hello()[0] == 200


def test_a_token_of_a_node_that_is_not_answered(desk):
    desk.desk.close("worker1")
    assert desk.hello()[0] == 403


@pytest.mark.parametrize("path", ["inventory", "progress", "done", "failed", "odd"])
def test_no_call_without_a_session(desk, path):
    for session in ("invented", desk.token, digest(desk.token)):
        assert desk.post(path, session=session) == (403, {"error": "no session of this run"})
    assert desk.desk.answer(f"/v1/{path}", "", {})[0] == 403
    assert desk.state is State.ARMED


def test_a_call_that_does_not_exist(desk):
    assert desk.begin().post("shell") == (404, {"error": "unknown call in this version"})


def test_the_session_of_another_node_speaks_for_that_node_only(desk, image):
    other = Desk1(image, 2, desk=desk.desk).begin()
    desk.begin().show()
    done = {"run": "r1", "host_keys": {"ed25519": HOST_KEY}}
    assert other.post("done", done) == (409, {"error": "the node is discovered, in run r1"})
    other.journal.move(State.FAILED)
    other.arm("r2")
    other.begin()
    assert other.show()[1]["action"] == "install"
    assert other.post("done", done) == (409, {"error": "the node is installing, in run r2"})
    assert other.post("failed", {"error": "odd"})[0] == 200
    assert (desk.state, other.state) == (State.INSTALLING, State.FAILED)


def test_the_machine_of_another_node_is_held(desk):
    """Its medium was put into another machine: the serial number tells."""
    desk.begin()
    status, answer = desk.post("inventory", document(2, disk(1)))
    assert (status, answer["action"]) == (200, "wait")
    assert answer["reasons"][0] == "its serial number is SN-2, but SN-1 is declared"
    assert desk.state is State.HELD


ODD = [
    {},
    {"version": 2},
    document(cpus="many"),
    document(nics=None),
    document(disks={}),
    document(1, disk(size_bytes=-1)),
    document(1, disk(size_bytes=10**400)),
    document(1, disk(signatures=["x" * 301])),
    document(1, disk(signatures=[f"/dev/sda{number}:ext4:" for number in range(2000)])),
    document(memory_kib=10**300),
    document(sockets=-1),
    document(dmi=None),
    document(efi="perhaps"),
]


@pytest.mark.parametrize("body", ODD, ids=range(len(ODD)))
def test_an_inventory_that_is_not_valid_ends_it(desk, body):
    status, answer = desk.begin().post("inventory", body)
    assert (status, answer["action"]) == (200, "off")
    assert answer["reasons"][0].startswith("its inventory is not valid: ")
    assert desk.state is State.FAILED
    assert desk.post("inventory", document())[0] == 403


def test_what_an_agent_says_cannot_move_the_cursor(desk):
    desk.begin().show(disk(signatures=["/dev/sda:ext4:\x1b[2Jgone\n"]))
    assert desk.journal.record.reason == "disk DISK-1 holds /dev/sda:ext4:\\x1b[2Jgone\\x0a"
    desk.post("failed", {"phase": "\x1b[1m", "error": "\x07" * 5000})
    assert desk.journal.record.reason.isprintable()
    assert len(desk.journal.record.reason) < 800


HELD = "disk DISK-1 holds /dev/sda1:ext4:data, /dev/sda:gpt:1f0c"
SIGNS = [EXT4, GPT]


def test_held_confirmed_and_approved(desk):
    full = disk(signatures=SIGNS)
    waiting = 200, {"action": "wait", "reasons": [HELD], "seconds": 5}
    assert desk.begin().show(full) == waiting
    assert (desk.state, desk.journal.record.reason) == (State.HELD, HELD)
    size = len(journal_lines())
    assert desk.show(full) == waiting
    assert len(journal_lines()) == size, "a machine that waits for hours fills no disk"
    assert confirm(make_site(desk.node), desk.node, "DISK-1") == (EXT4, GPT)
    assert desk.show(full)[1]["action"] == "install"
    assert desk.state is State.INSTALLING
    assert desk.ordered[0].chosen[0].disk.signatures == (EXT4, GPT), "the agent compares them once more"


def journal_lines():
    from rackwright.install.record import folder

    return (folder("test") / "worker1.jsonl").read_bytes().splitlines()


def test_a_disk_that_changes_after_its_confirmation_is_held_again(desk):
    desk.begin().show(disk(signatures=SIGNS))
    confirm(make_site(desk.node), desk.node, "DISK-1")
    status, answer = desk.show(disk(signatures=[*SIGNS, "/dev/sda2:xfs:new"]))
    assert (status, answer["action"]) == (200, "wait")
    assert desk.state is State.HELD
    assert desk.journal.record.held == {"DISK-1": (EXT4, GPT, "/dev/sda2:xfs:new")}
    assert not desk.ordered
    confirm(make_site(desk.node), desk.node, "DISK-1")
    assert desk.show(disk(signatures=[*SIGNS, "/dev/sda2:xfs:new"]))[1]["action"] == "install"


def test_another_disk_with_the_same_signatures_is_not_confirmed(image):
    node = changed(make_worker(1, image.folder), disk=DiskRule(by_path=("pci-0000:00:17.0-ata-1",)))
    desk = Desk1(image, node=node).begin()
    desk.show(disk(signatures=SIGNS))
    confirm(make_site(node), node, "DISK-1")
    assert desk.show(disk(7, signatures=SIGNS))[1]["action"] == "wait"
    assert set(desk.journal.record.held) == {"DISK-7"}


def test_a_confirmation_of_an_earlier_run_does_not_count(desk):
    desk.begin().show(disk(signatures=SIGNS))
    confirm(make_site(desk.node), desk.node, "DISK-1")
    desk.journal.move(State.FAILED, "no power")
    desk.arm("r2")
    assert desk.begin().show(disk(signatures=SIGNS))[1]["action"] == "wait"
    assert desk.state is State.HELD


def test_both_disks_of_a_mirror_are_confirmed(image):
    node = changed(make_worker(1, image.folder), mirror=True, disk=DiskRule(serials=("DISK-1", "DISK-2")))
    desk = Desk1(image, node=node).begin()
    disks = disk(signatures=SIGNS), disk(2, path="/dev/sdb", signatures=["/dev/sdb:gpt:2"])
    desk.show(*disks)
    confirm(make_site(node), node, "DISK-2")
    assert desk.show(*disks)[1]["reasons"] == [HELD]
    confirm(make_site(node), node, "DISK-1")
    assert desk.show(*disks)[1]["action"] == "install"


def test_a_contradiction_is_held_and_cannot_be_confirmed(desk):
    desk.begin().show(cpus=1)
    assert desk.state is State.HELD
    with pytest.raises(InstallError, match="does not wait for a confirmation of disk DISK-1") as refused:
        confirm(make_site(desk.node), desk.node, "DISK-1")
    assert refused.value.hint == "disks that wait: none: it differs from its declaration"
    assert desk.show(cpus=1)[1]["action"] == "wait"
    assert desk.show()[1]["action"] == "install", "a memory module was put in, say"


def test_what_cannot_be_confirmed(desk):
    cluster = make_site(desk.node)
    with pytest.raises(InstallError, match=r"worker1 is not on hold: it is armed\."):
        confirm(cluster, desk.node, "DISK-1")
    desk.begin().show(disk(signatures=SIGNS))
    for other in ("DISK-2", "disk-1", "", "/dev/sda"):
        with pytest.raises(InstallError, match="does not wait for a confirmation") as refused:
            confirm(cluster, desk.node, other)
        assert refused.value.hint == "disks that wait: DISK-1"
    assert desk.journal.record.confirmed == {}


def test_a_confirmation_that_the_next_run_overtakes_is_refused(desk, monkeypatch):
    """Read as held in run r1, written when r2 has begun: it counts for neither."""
    desk.begin().show(disk(signatures=SIGNS))
    real = Journal.note

    def late(journal, **data):
        desk.journal.move(State.FAILED)
        desk.arm("r2")
        real(journal, **data)

    monkeypatch.setattr(Journal, "note", late)
    with pytest.raises(InstallError, match=r"worker1 is no longer on hold: it is armed\."):
        confirm(make_site(desk.node), desk.node, "DISK-1")
    monkeypatch.setattr(Journal, "note", real)
    assert desk.begin().show(disk(signatures=SIGNS))[1]["action"] == "wait"


def test_an_answer_that_was_lost_is_asked_for_again(desk):
    desk.begin()
    first, second = desk.show(), desk.show()
    assert first == second
    assert (desk.state, len(desk.ordered)) == (State.INSTALLING, 2)
    assert desk.desk.image_of(desk.session) is not None


def test_also_that_to_a_confirmed_disk_which_must_still_be_the_same(desk):
    full = disk(signatures=SIGNS)
    desk.begin().show(full)
    confirm(make_site(desk.node), desk.node, "DISK-1")
    assert desk.show(full) == desk.show(full)
    assert desk.show(disk(signatures=["/dev/sda:gpt:other"]))[1]["action"] == "wait"
    assert desk.state is State.HELD
    assert desk.desk.image_of(desk.session) is None


def test_the_head_was_killed_in_the_middle_of_an_answer(desk):
    """`approved` was written and no answer sent: the agent asks again."""
    desk.begin()
    desk.journal.move(State.INVENTORIED, "", inventory={})
    desk.journal.move(State.APPROVED, "", held={})
    assert desk.show()[1]["action"] == "install"
    assert desk.state is State.INSTALLING


def test_orders_that_cannot_be_made_end_it(desk):
    def no_orders(verdict):
        raise InstallError("worker1 has no recovery key.")

    desk.desk.open(Case(desk.node, desk.journal, no_orders, desk.case.image))
    answer = desk.begin().show()
    assert answer == (200, {"action": "off", "reasons": ["worker1 has no recovery key."]})
    assert (desk.state, desk.journal.record.reason) == (State.FAILED, "worker1 has no recovery key.")


@pytest.mark.parametrize("percent", [-1, 101, 1.5, "5", None, True])
def test_progress_is_a_percentage(desk, percent):
    desk.begin().show()
    assert desk.post("progress", {"phase": "image", "percent": percent})[0] == 400
    assert desk.journal.record.phase == "partition"


def test_progress_is_of_what_is_being_installed_and_repeats_fill_no_disk(desk):
    desk.begin()
    assert desk.post("progress", {"phase": "image", "percent": 1}) == (
        409,
        {"error": "the node is discovered"},
    )
    desk.show()
    size = len(journal_lines())
    for _ in range(5):
        assert desk.post("progress", {"phase": "image", "percent": 1}) == (200, {})
    assert len(journal_lines()) == size + 1


@pytest.mark.parametrize("run", ["r2", "", None, 7])
def test_done_is_of_this_run(desk, run):
    desk.begin().show()
    done = {"run": run, "host_keys": {"ed25519": HOST_KEY}}
    assert desk.post("done", done) == (409, {"error": "the node is installing, in run r1"})
    assert desk.state is State.INSTALLING


def test_nothing_is_done_that_was_not_approved(desk):
    desk.begin().show(disk(signatures=SIGNS))
    assert desk.post("done", {"run": "r1", "host_keys": {"ed25519": HOST_KEY}})[0] == 409
    assert desk.state is State.HELD


KEYS = [
    None,
    [],
    "ssh-ed25519",
    {},
    {"ed25519": None},
    {"ed25519": 7},
    {"ed25519": ""},
    {"ed25519": "ssh-ed25519"},
    {"ed25519": "ssh-ed25519 AAAA"},
    {"ed25519": HOST_KEY.replace("ssh-ed25519", "ssh-rsa")},
    {"ed25519": f"{HOST_KEY[:-8]}"},
    {"ed25519": f"{HOST_KEY[:-4]}@@@@"},
    {"ed25519": f"*\n{HOST_KEY}"},
    {"rsa": HOST_KEY},
]


@pytest.mark.parametrize("keys", KEYS, ids=range(len(KEYS)))
def test_a_host_key_that_is_not_one(desk, keys):
    desk.begin().show()
    answer = desk.post("done", {"run": "r1", "host_keys": keys})
    assert answer[1] == {"action": "off", "reasons": ["its new host key is not an ed25519 key"]}
    assert (desk.state, desk.journal.record.host_key) == (State.FAILED, "")


def test_a_failure_is_written_down_and_ends_the_session(desk):
    desk.begin().show()
    assert desk.post("failed", {"phase": "image", "error": "SHA-256 differs"})[1]["action"] == "off"
    assert (desk.state, desk.journal.record.reason) == (State.FAILED, "image: SHA-256 differs")
    assert desk.post("failed", {"error": "again"})[0] == 403
    assert desk.journal.record.reason == "image: SHA-256 differs"


def test_an_agent_fails_when_the_head_has_given_it_up_already(desk):
    """In the moment between finding its session and writing down its words."""
    desk.begin().show()
    record = desk.journal.record
    desk.journal.move(State.FAILED, "no power")
    assert desk.desk._stop(desk.case, "x") == (409, {"error": "the node is failed"})
    assert (desk.journal.record.reason, record.state) == ("no power", State.INSTALLING)


def test_an_inventory_that_comes_when_all_is_over(desk):
    desk.begin().show()
    desk.journal.move(State.INSTALLED, "", session="")
    assert desk.desk._inventory(desk.case, document()) == (409, {"error": "the node is installed"})
    assert desk.state is State.INSTALLED


def test_agents_of_nodes_that_are_in_no_case_of_this_run_are_put_off(desk):
    """503, which they ask again after; 403 would have them power their machines off."""
    desk.desk.close("worker1")
    desk.desk.of_other_runs = frozenset((digest(desk.token), digest("a session")))
    assert desk.hello()[0] == desk.post("inventory", session="a session")[0] == 503
    assert desk.post("inventory", session="another")[0] == 403


def test_a_discovery_ends_with_the_inventory_whatever_it_is(image):
    desk = Desk1(image, mode="discover").begin()
    answer = desk.show(disk(signatures=SIGNS), cpus=96)
    assert answer == (200, {"action": "off", "reasons": ["discovered"]})
    record = desk.journal.record
    assert (record.state, record.inventory["cpus"], desk.ordered) == (State.SURVEYED, 96, [])
    assert "clock" not in record.inventory
    assert desk.show()[0] == 403


def test_a_diskless_node_is_ordered_into_memory(image):
    desk = Desk1(image, node=changed(make_worker(1, image.folder), diskless=True, disk=DiskRule())).begin()
    answer = desk.show(disk(signatures=SIGNS))
    assert answer == (200, {"action": "ramdisk", "install": {"run": "r1", "disks": []}})
    assert desk.journal.record.reason == "on memory"


def test_an_image_that_was_built_since_is_not_served(desk, tmp_path):
    """The head was killed, the image built again: the agent has the digest of the old one."""
    desk.begin().show()
    desk.desk.open(Case(desk.node, desk.journal, desk.orders, make_image(tmp_path / "new", b"other")))
    assert desk.desk.image_of(desk.session) is None


def test_media_are_found_by_their_whole_path_while_the_node_is_answered(desk, tmp_path):
    desk.case.media["/media/abc.iso"] = tmp_path / "worker1.iso"
    assert desk.desk.media("/media/abc.iso") == tmp_path / "worker1.iso"
    for path in ("/media/", "/media/abc", "/media/abc.iso/", "/media/../media/abc.iso", "", "worker1.iso"):
        assert desk.desk.media(path) is None
    desk.desk.close("worker1")
    assert desk.desk.media("/media/abc.iso") is None
