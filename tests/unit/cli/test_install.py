"""install, discover and provision as people run them: what is typed, what is printed, how it ends."""

from __future__ import annotations

import io
import json

import pytest

from rackwright.cli import machines_view, provision
from rackwright.cli.machines_view import exit_code, show_outcomes
from rackwright.cli.terminal import Console
from rackwright.errors import ExitCode
from rackwright.install import run as run_module
from rackwright.install.record import Journal
from rackwright.install.run import Outcome
from rackwright.install.states import State
from tests.unit.clusterfile.machine_files import BMC, INSTALL, MACHINES, machines
from tests.unit.install.site import EXT4, GPT, disk, document, inventory

NODES = ("w1", "w2", "w3", "w4")
SIGNS = [EXT4, GPT]


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    path = tmp_path / "demo.yaml"
    path.write_text(MACHINES)
    return path


class Ran:
    """What an installation was asked, and the outcomes that it gives: all are wanted, unless said otherwise."""

    def __init__(self, monkeypatch):
        self.asked, self.prepared, self.ran = [], 0, 0
        self.states, self.refused = {}, set()
        monkeypatch.setattr("rackwright.bmc.open.opener", lambda cluster: None)
        ran = self

        class Installation:
            def __init__(self, cluster, asked, open_bmc, notice):
                self.asked = asked
                ran.asked.append(asked)

            def prepare(self, log):
                ran.prepared += 1

            def run(self):
                ran.ran += 1
                wanted = State.READY if self.asked.mode == "install" else State.SURVEYED
                return [
                    Outcome(
                        node.name,
                        ran.states.get(node.name, wanted),
                        "reason",
                        61.0,
                        "a hint" if node.name in ran.refused else None,
                        node.name in ran.refused,
                    )
                    for node in self.asked.nodes
                ]

        monkeypatch.setattr(run_module, "Installation", Installation)


@pytest.fixture
def ran(monkeypatch):
    return Ran(monkeypatch)


def test_the_nodes_are_shown_and_typed(rackwright, file, ran):
    found = rackwright("install", file, "--confirm", "w[1-4]")
    assert found.status == 0
    assert [node.name for node in ran.asked[0].nodes] == list(NODES)
    assert (ran.asked[0].mode, ran.asked[0].serials) == ("install", {})
    assert "to be installed: what is on the declared disks is lost" in found.err
    for text in ("10.9.0.11 redfish", "as its BMC reports", "02:00:00:00:00:01", "pci-0000:00:17.0-ata-1"):
        assert text in found.err
    assert "virtual-media, Secure Boot on" in found.err
    assert "ready" in found.out


@pytest.mark.parametrize("typed", ["w1", "yes", "w[1-5]", "", "demo", "w1,w2,w3,w4"])
def test_anything_else_does_nothing(rackwright, file, ran, typed):
    found = rackwright("install", file, "--confirm", typed)
    assert found.status == 1
    assert f"{typed!r} is not w[1-4]; nothing was changed." in found.err
    assert "hint: confirm these nodes with: --confirm 'w[1-4]'" in found.err
    assert ran.ran == ran.prepared == 0


def test_without_a_terminal_nothing_is_taken_for_granted(rackwright, file, ran):
    found = rackwright("install", file)
    assert found.status == 1
    assert "The nodes must be typed to confirm, and standard input is not a terminal." in found.err
    assert "run again with --confirm 'w[1-4]'" in found.err
    assert ran.ran == 0


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("typed", "ran_so_often"), [("w[2-3]\n", 1), ("w2\n", 0), ("\n", 0)])
def test_on_a_terminal_they_are_asked_for(rackwright, file, ran, monkeypatch, typed, ran_so_often):
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    found = rackwright("install", file, "--limit", "w[2-3]")
    assert "Type w[2-3] to confirm" in found.err
    assert (ran.ran, found.status) == (ran_so_often, 1 - ran_so_often)


@pytest.mark.parametrize(
    ("states", "refused", "status"),
    [
        ({}, (), 0),
        ({"w2": State.FAILED}, (), 1),
        ({"w2": State.DECLARED}, ("w2",), 3),
        ({}, ("w2",), 3),  # it is ready since an earlier run, and on
        ({"w2": State.FAILED}, ("w2",), 3),  # it failed in an earlier run
        ({"w2": State.FAILED, "w3": State.DECLARED}, ("w3",), 1),
        ({"w2": State.INSTALLED}, (), 1),
    ],
)
def test_how_it_ends(rackwright, file, ran, states, refused, status):
    ran.states, ran.refused = states, set(refused)
    found = rackwright("install", file, "--confirm", "w[1-4]")
    assert found.status == status
    assert found.out.count("left alone") == len(refused)
    assert found.out.count("hint: w2: a hint") == ("w2" in refused)


def test_serial_numbers_of_reinstallations_reach_their_nodes(rackwright, file, ran):
    rackwright("install", file, "--confirm", "w[1-4]", "--reinstall", "w1=SN-1", "--reinstall", "w3=A=B")
    assert ran.asked[0].serials == {"w1": "SN-1", "w3": "A=B"}


@pytest.mark.parametrize("pair", ["w1", "w1=", "w9=SN", "=SN", "", "w[1-4]=SN"])
def test_what_is_no_pair(rackwright, file, ran, pair):
    for option in ("--reinstall", "--erase"):
        found = rackwright("install", file, "--confirm", "w[1-4]", option, pair)
        assert found.status == 1
        assert f"{option} takes NODE=SERIAL" in found.err
        assert f"hint: e.g. {option} w4=CZJ0420G3K" in found.err
    assert ran.ran == 0


def test_a_reinstallation_of_a_node_that_is_not_among_them(rackwright, file, ran):
    found = rackwright("install", file, "--limit", "w1", "--confirm", "w1", "--reinstall", "w2=SN-2")
    assert (found.status, ran.ran) == (1, 0)
    assert "--reinstall names w2, which is not among the nodes of this run." in found.err
    found = rackwright("install", file, "--confirm", "w[1-4]", "--reinstall", "w2=A", "--reinstall", "w2=B")
    assert (found.status, ran.ran) == (1, 0)
    assert "--reinstall gives w2 two serial numbers." in found.err


def test_nodes_that_declare_no_installation(rackwright, file, ran):
    file.write_text(machines((BMC, ""), (INSTALL, "")))
    found = rackwright("install", file, "--confirm", "w[1-4]")
    assert (found.status, ran.ran) == (1, 0)
    assert "No node declares an installation." in found.err
    assert "hint: e.g. `install: {image: images/worker, ...}` in its group" in found.err


def hold(node="w1", **held):
    journal = Journal("demo", node)
    journal.move(State.PRECHECKED, "", run="r1", mode="install", serial="SN-1")
    for state in (State.ARMED, State.DISCOVERED, State.INVENTORIED):
        journal.move(state)
    journal.move(State.HELD, "", held=held or {"D1": SIGNS})
    return journal


def test_a_disk_is_confirmed_and_what_it_holds_is_printed(rackwright, file, ran):
    journal = hold()
    found = rackwright("install", file, "--erase", "w1=D1")
    assert (found.status, found.err) == (0, "")
    assert (
        found.out
        == "w1: disk D1 may be erased in this run; it holds /dev/sda1:ext4:data, /dev/sda:gpt:1f0c\n"
    )
    assert journal.record.confirmed == {"D1": (EXT4, GPT)}
    assert ran.asked == [], "it installs nothing itself"


def test_both_disks_of_a_mirror_are_confirmed(rackwright, file):
    journal = hold(D1=SIGNS, D2=[GPT])
    found = rackwright("install", file, "--erase", "w1=D1", "--erase", "w1=D2")
    assert found.status == 0
    assert journal.record.confirmed == {"D1": (EXT4, GPT), "D2": (GPT,)}


@pytest.mark.parametrize(
    ("serial", "message", "hint"),
    [
        ("D2", "w1 does not wait for a confirmation of disk D2.", "disks that wait: D1"),
        ("SN-1", "w1 does not wait for a confirmation of disk SN-1.", "disks that wait: D1"),
    ],
)
def test_another_disk_is_not_confirmed(rackwright, file, serial, message, hint):
    journal = hold()
    found = rackwright("install", file, "--erase", f"w1={serial}")
    assert (found.status, found.err) == (1, f"error: {message}\nhint: {hint}\n")
    assert journal.record.confirmed == {}


def test_a_node_that_is_not_held(rackwright, file):
    found = rackwright("install", file, "--erase", "w1=D1")
    assert (found.status, found.err) == (1, "error: w1 is not on hold: it is declared.\n")


def survey(node, number, *disks, **changes):
    journal = Journal("demo", node)
    journal.move(State.PRECHECKED, "", run="r1", mode="discover", serial=f"SN-{number}")
    for state in (State.ARMED, State.DISCOVERED):
        journal.move(state)
    found = inventory(number, *disks, **changes).model_dump(mode="json", by_alias=True, exclude={"clock"})
    journal.move(State.INVENTORIED, "", inventory=found)
    journal.move(State.SURVEYED)


MINE = {"cpus": 32, "memory_kib": 65536 * 1024, "secure_boot": True}


def test_what_was_discovered_is_compared(rackwright, file, ran):
    rule = disk(1, by_path=["pci-0000:00:17.0-ata-1"])
    survey("w1", 1, rule, **MINE)
    survey("w2", 2, rule, **MINE)
    same = rackwright("discover", file, "--limit", "w[1-2]")
    assert same.status == 0
    assert (ran.asked[0].mode, ran.ran) == ("discover", 1)
    assert "SN-1" in same.out
    survey("w2", 2, rule, **{**MINE, "cpus": 8})
    differs = rackwright("discover", file, "--limit", "w[1-2]")
    assert (differs.status, differs.out.count("differs"), same.out.count("differs")) == (3, 1, 0)
    ran.states = {"w1": State.FAILED}
    assert rackwright("discover", file, "--limit", "w[1-2]").status == 1
    ran.states, ran.refused = {"w1": State.DECLARED}, {"w1"}
    assert rackwright("discover", file, "--limit", "w[1-2]").status == 3


def test_inventories_are_printed_as_json_and_nothing_beside_them(rackwright, file, ran):
    survey("w1", 1, disk(1, signatures=SIGNS), **MINE)
    found = rackwright("discover", file, "--limit", "w1", "--json")
    printed = json.loads(found.out)["machines"]
    assert list(printed) == ["w1"]
    assert printed["w1"]["disks"][0]["signatures"] == SIGNS
    assert printed["w1"]["pci"][0]["class"] == "0200"
    assert printed["w1"]["dmi"]["product_serial"] == document(1)["dmi"]["product_serial"]


def test_a_declaration_of_what_was_found_is_written(rackwright, file, ran, tmp_path):
    survey("w1", 1, disk(1), **MINE)
    ran.states = {"w2": State.FAILED}
    rackwright("discover", file, "--limit", "w[1-2]", "--adopt", tmp_path / "new")
    assert (tmp_path / "new/machines.csv").read_text() == (
        "node,mac,serial,disk,bmc\nw1,02:00:00:00:00:01,SN-1,DISK-1,10.9.0.11\n"
    )
    assert "nodes: w1\n" in (tmp_path / "new/cluster.yaml").read_text()


@pytest.mark.parametrize("there", [("machines.csv",), ("cluster.yaml",), ("machines.csv", "cluster.yaml")])
def test_what_is_declared_is_not_overwritten(rackwright, file, ran, tmp_path, there):
    """It is refused before the first connection."""
    survey("w1", 1, disk(1), **MINE)
    for name in there:
        (tmp_path / name).write_text("the site's own\n")
    found = rackwright("discover", file, "--limit", "w1", "--adopt", tmp_path)
    names = " and ".join(there)
    assert (found.status, ran.asked) == (1, [])
    assert found.err.startswith(
        f"error: {tmp_path} already has {names}, which --adopt would overwrite; nothing was done."
    )
    assert {(tmp_path / name).read_text() for name in there} == {"the site's own\n"}


def test_a_file_that_was_made_meanwhile_is_not_overwritten(rackwright, file, ran, tmp_path, monkeypatch):
    survey("w1", 1, disk(1), **MINE)
    adopt = tmp_path / "new"
    monkeypatch.setattr(
        "rackwright.install.survey.compare",
        lambda *_: adopt.mkdir() or (adopt / "machines.csv").touch() or [],
    )
    found = rackwright("discover", file, "--limit", "w1", "--adopt", adopt)
    assert (found.status, (adopt / "machines.csv").read_text()) == (1, "")
    assert f"{adopt / 'machines.csv'} was made in the meantime and is left as it is." in found.err


def test_nothing_is_written_of_no_machine(rackwright, file, ran, tmp_path):
    ran.refused = {"w1", "w2"}
    found = rackwright("discover", file, "--limit", "w[1-2]", "--adopt", tmp_path / "new")
    assert (found.status, (tmp_path / "new").exists()) == (3, False)
    assert f"no machine was discovered: nothing is written to {tmp_path / 'new'}" in found.err


def test_what_is_adopted_to_is_a_folder(rackwright, file, ran):
    found = rackwright("discover", file, "--limit", "w1", "--adopt", file)
    assert (found.status, ran.asked) == (1, [])
    assert f"{file} is not a folder." in found.err


def test_nodes_without_bmcs_cannot_be_discovered(rackwright, file, ran):
    found = rackwright("discover", file, "--limit", "head1")
    assert (found.status, found.err) == (1, "error: No node has a BMC.\nhint: e.g. `bmc: {address: 10.20.0.11}` in its group\n")  # fmt: skip


@pytest.fixture
def accepted(monkeypatch):
    calls = []
    monkeypatch.setattr(provision, "accept_command", lambda file, report, yes: calls.append((file, yes)))
    monkeypatch.setattr(provision, "load_cluster", lambda file: _unlocked(file))
    return calls


def _unlocked(file):
    from rackwright.clusterfile.load import load_cluster

    return load_cluster(file, locked=False)


def ready(node, then=None):
    journal = hold(node)
    for state in (
        State.INVENTORIED,
        State.APPROVED,
        State.INSTALLING,
        State.INSTALLED,
        State.FIRST_BOOT,
        State.READY,
    ):
        journal.move(state)
    if then == "discover":
        survey(node, 1)
    elif then is not None:
        hold(node)
        journal.move(State.INVENTORIED)
        journal.move(State.APPROVED)
        journal.move(State.INSTALLING)
        journal.move(State.FAILED)


def test_provision_installs_what_is_not_ready_and_accepts_the_whole(rackwright, file, ran, accepted):
    ready("w1")
    ready("w2", then="discover")
    ready("w3", then="a failed reinstallation")
    found = rackwright("provision", file, "--confirm", "w[3-4]", "--yes")
    assert found.status == 0
    assert [node.name for node in ran.asked[0].nodes] == ["w3", "w4"]
    assert accepted == [(file, True)]


def test_provision_again_installs_nothing(rackwright, file, ran, accepted):
    for node in NODES:
        ready(node)
    found = rackwright("provision", file, "--yes")
    assert (found.status, ran.asked, accepted) == (0, [], [(file, True)])
    assert "every node that declares an installation is ready" in found.err


def test_provision_reinstalls_what_is_agreed_to(rackwright, file, ran, accepted):
    for node in NODES:
        ready(node)
    rackwright("provision", file, "--yes", "--confirm", "w2", "--reinstall", "w2=SN-2")
    assert [node.name for node in ran.asked[0].nodes] == ["w2"]
    assert ran.asked[0].serials == {"w2": "SN-2"}


@pytest.mark.parametrize(("states", "refused", "status"), [({"w1": State.FAILED}, (), 1), ({}, ("w1",), 3)])
def test_provision_ends_where_a_node_is_not_ready(rackwright, file, ran, accepted, states, refused, status):
    ran.states, ran.refused = states, set(refused)
    assert rackwright("provision", file, "--confirm", "w[1-4]", "--yes").status == status
    assert accepted == []


def test_provision_asks_as_install_does(rackwright, file, ran, accepted):
    found = rackwright("provision", file, "--yes")
    assert (found.status, ran.ran, accepted) == (1, 0, [])
    assert "--confirm 'w[1-4]'" in found.err


def test_each_change_of_state_is_a_line():
    text = io.StringIO()
    steps = machines_view.Steps(Console(file=text, width=80))
    steps("worker1", State.HELD, "disk D holds [bold]x[/bold]")
    steps("worker2", State.READY, "")
    assert (
        text.getvalue() == "     0 s  worker1: held  disk D holds [bold]x[/bold]\n     0 s  worker2: ready\n"
    )


def test_reasons_are_shown_as_they_are():
    text = io.StringIO()
    show_outcomes(
        Console(file=text, width=120), [Outcome("w1", State.FAILED, "[red]odd[/red]", 3.4, "see [x]")]
    )
    assert "[red]odd[/red]" in text.getvalue()
    assert "hint: w1: see [x]\n" in text.getvalue()


def test_no_outcome_is_clean():
    assert exit_code([], State.READY) is ExitCode.CLEAN
