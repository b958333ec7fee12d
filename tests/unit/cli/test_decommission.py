"""decommission as people run it: what is listed, what is typed, what is printed, how it ends."""

from __future__ import annotations

import io
import json
import os
import pty
import secrets

import pytest

from rackwright.cli.erasure_consent import Consent
from rackwright.cli.terminal import Console
from rackwright.install import erasure_certificate
from rackwright.install import run as run_module
from rackwright.install.desk import Case, Desk
from rackwright.install.erasure import MODE
from rackwright.install.record import Journal, folder
from rackwright.install.run import Outcome
from rackwright.install.states import State
from rackwright.install.tokens import digest, new_token
from tests.unit.clusterfile.machine_files import BMC, MACHINES
from tests.unit.install.site import EXT4, GPT, disk, document, make_site, make_worker

DISKS = (
    disk(1, signatures=[EXT4, GPT]),
    disk(2, path="/dev/nvme0n1", model="Fast \x1b[31m", read_only=True),
)


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    path = tmp_path / "demo.yaml"
    path.write_text(MACHINES)
    return path


class Ran:
    """What was asked for, and how it ends."""

    def __init__(self, monkeypatch):
        self.asked, self.states, self.refused, self.meanwhile = [], {}, set(), []
        monkeypatch.setattr("rackwright.bmc.open.opener", lambda cluster: None)
        ran = self

        class Installation:
            def __init__(self, cluster, asked, open_bmc, notice):
                self.asked = asked
                ran.asked.append(asked)

            def prepare(self, log):
                pass

            def run(self, meanwhile):
                meanwhile()
                ran.meanwhile.append(meanwhile)
                return [self.outcome(node.name) for node in self.asked.nodes]

            def outcome(self, name):
                state, refused = ran.states.get(name, State.ERASED), name in ran.refused
                if not refused:
                    Journal("demo", name).move(State.PRECHECKED, run="r1", mode=MODE, serial="SN")
                    result = "erased" if state is State.ERASED else "incomplete"
                    made = {"result": result, "node": name, "run": "r1", "disks": []}
                    erasure_certificate.write(folder("demo"), made)
                return Outcome(name, state, "reason", 61.0, None, refused)

        monkeypatch.setattr(run_module, "Installation", Installation)


@pytest.fixture
def ran(monkeypatch):
    return Ran(monkeypatch)


def test_named_nodes_are_erased_and_certified(rackwright, file, ran):
    found = rackwright("decommission", file, "--limit", "w[2-3]", "--serial", "w2=A", "--serial", "w3=B")
    assert found.status == 0
    (asked,) = ran.asked
    assert (asked.mode, [node.name for node in asked.nodes]) == ("erase", ["w2", "w3"])
    assert asked.serials == {"w2": "A", "w3": "B"}
    assert "to be decommissioned: ALL their disks are erased for good" in found.err
    assert f"w2: certificate (erased): {folder('demo')}/erased/w2-r1.json\n" in found.out


def test_the_serial_number_that_has_to_be_typed_is_not_printed(rackwright, file, ran):
    file.write_text(MACHINES.replace(BMC, f"{BMC}    serials: [QX71, QX72, QX73, QX74]\n"))
    found = rackwright("decommission", file, "--limit", "w[2-3]")
    assert "02:00:00:00:00:02" in found.err
    assert "QX7" not in found.err + found.out


def test_nodes_have_to_be_named(rackwright, file, ran):
    found = rackwright("decommission", file, "--serial", "w1=A")
    assert (found.status, ran.asked) == (1, [])
    assert "`decommission` erases only nodes that are named." in found.err
    assert "hint: e.g. --limit w4" in found.err


def test_a_serial_number_of_another_node(rackwright, file, ran):
    found = rackwright("decommission", file, "--limit", "w1", "--serial", "w2=A")
    assert (found.status, ran.asked) == (1, [])
    assert "--serial names w2, which is not among the nodes of this run." in found.err


@pytest.mark.parametrize(
    ("states", "refused", "status"),
    [
        ({}, (), 0),
        ({"w2": State.FAILED}, (), 1),
        ({"w2": State.DECLARED}, ("w2",), 3),
        ({"w2": State.ERASED}, ("w2",), 3),  # in an earlier run
        ({"w2": State.READY}, ("w2",), 3),
    ],
)
def test_how_it_ends(rackwright, file, ran, states, refused, status):
    ran.states, ran.refused = states, set(refused)
    found = rackwright("decommission", file, "--limit", "w[1-2]", "--json")
    assert found.status == status
    certificates = json.loads(found.out)["certificates"]
    assert set(certificates) == {"w1", "w2"} - set(refused)
    assert certificates["w1"]["result"] == "erased"
    if states.get("w2") is State.FAILED:
        assert certificates["w2"]["result"] == "incomplete"
        assert "w2: certificate (incomplete):" in found.err


class Held:
    """worker1, held for an erasure by its head."""

    def __init__(self, cluster="demo"):
        self.node = make_worker()
        self.cluster = make_site(self.node).model_copy(update={"name": cluster})
        self.journal, token = Journal(cluster, "worker1"), new_token()
        self.journal.move(State.PRECHECKED, run="r1", mode=MODE, serial="SN-1")
        self.journal.move(State.ARMED, token=digest(token), token_until=2e9)
        self.desk = Desk()
        self.desk.open(Case(self.node, self.journal, lambda verdict: {}, None, mode=MODE))
        self.session = secrets.token_hex(24)  # as agents make it
        assert self.desk.answer("/v1/hello", token, {"session": self.session})[0] == 200
        self.show()

    def show(self, *disks):
        return self.desk.answer("/v1/inventory", self.session, document(1, *(disks or DISKS)))[1]["action"]

    @property
    def agreed(self):
        return bool(self.journal.record.confirmed)


def test_another_terminal_agrees(rackwright, file):
    file.write_text(MACHINES.replace("w[1-4]", "worker[1-4]"))
    held = Held()
    found = rackwright("decommission", file, "--erase", "worker1=SN-2")
    assert (found.status, held.agreed) == (1, False)
    assert "error: SN-2 is not the serial number of worker1's machine." in found.err
    found = rackwright("decommission", file, "--erase", "worker1=SN-1")
    assert (found.status, found.err) == (0, "")
    assert found.out.startswith("worker1: all its disks are erased in this run: /dev/sda (serial DISK-1, ")
    assert held.show() == "erase"


def console(text):
    return Console(file=text, width=200)


def test_without_a_terminal_the_list_is_printed_once_with_what_to_do(file):
    held, text = Held(), io.StringIO()
    consent = Consent(held.cluster, [held.node], console(text))
    consent()
    consent()
    said = text.getvalue()
    assert said.count("worker1: ALL of this is erased") == 1
    assert "/dev/sda1:ext4:data, /dev/sda:gpt:1f0c" in said
    assert "CANNOT BE ERASED: it is read-only" in said
    assert "rackwright decommission FILE --erase worker1=SERIAL" in said
    assert "SN-1" not in said
    assert "\x1b[31m" not in said
    held.show(disk(1))
    consent()
    assert text.getvalue().count("worker1: ALL of this is erased") == 2, "another list is shown anew"
    assert not held.agreed


@pytest.fixture
def terminal(monkeypatch):
    """Standard input at a terminal; what is typed at its other end."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        yield lambda text: os.write(ours, text.encode())
    os.close(ours)


def test_the_serial_number_is_typed_at_the_terminal(file, terminal):
    held, text = Held(), io.StringIO()
    consent = Consent(held.cluster, [held.node], console(text))
    terminal("SN-1\n")  # before the list was shown: it cannot agree to it
    consent()
    assert "Type the serial number of worker1's machine to erase ALL these disks for good:" in text.getvalue()
    consent()
    assert not held.agreed
    terminal("yes\n")
    consent()
    assert "'yes' is not the serial number of a machine that waits (worker1)" in text.getvalue()
    assert not held.agreed
    terminal("SN-1\n")
    consent()
    assert held.agreed
    terminal("SN-1\n")
    consent()  # nothing waits any more
    assert held.show() == "erase"


def test_a_terminal_that_is_closed_is_not_read_again(file, terminal):
    held, text = Held(), io.StringIO()
    consent = Consent(held.cluster, [held.node], console(text))
    consent()
    terminal("\x04")
    consent()
    consent()
    assert not held.agreed
