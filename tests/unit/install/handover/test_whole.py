"""From armed to ready by the distribution's installer: both boots, and attempts to get around the order of things."""

from __future__ import annotations

import contextlib
import json
import threading
import time

import pytest

from rackwright.bmc.interface import BootTarget, Power
from rackwright.errors import InstallError
from rackwright.install.handover import requests
from rackwright.install.handover import run as handover_run
from rackwright.install.limits import Interrupted
from rackwright.install.machine import Machine
from rackwright.install.record import Journal, folder
from rackwright.install.run import confirm
from rackwright.install.states import State
from rackwright.install.tokens import digest
from rackwright.model.install import DiskRule
from tests.unit.install.fake_machine import until
from tests.unit.install.handover.installer import (
    ELSEWHERE,
    HERE,
    InstallerSite,
    Installing,
    get,
    installed_by,
)
from tests.unit.install.site import EXT4, HOST_KEY, document

STATES = "prechecked armed discovered inventoried approved handed-over installer installing installed first-boot ready"


@pytest.fixture
def site_kind():
    return InstallerSite, 1


def states(node="worker1"):
    lines = (folder("test") / f"{node}.jsonl").read_text().splitlines()
    return [one["state"] for one in map(json.loads, lines) if "state" in one]


def nothing_left(site):
    """No medium, nothing served, no secret in the journal."""
    assert site.machine.medium is None
    assert site.machine.override.target is not BootTarget.CD
    assert not list((folder("test") / "media").glob("*"))
    assert (site.record.media, site.record.session, site.record.token) == ("", "", "")
    journal = (folder("test") / "worker1.jsonl").read_text()
    for one in site.machine.installers:
        session = one.files.get("once", (0, ""))[1].splitlines()[:1]
        assert not session or session[0] == "not here" or session[0] not in journal
        with pytest.raises(OSError, match="refused"):
            get(one.folder + "preseed.cfg")


def test_from_off_to_ready_with_two_boots(site):
    outcome = site.run()["worker1"]
    assert (outcome.state, outcome.refused) == (State.READY, False)
    assert states() == STATES.split()
    machine, installer = site.machine, site.machine.installers[0]
    assert machine.calls.count("set_power on") == 3
    assert "set_power off" not in machine.calls
    assert machine.override.target is BootTarget.DISK
    assert installer.posts == {"progress": (200, {}), "done": (200, {})}
    assert site.record.host_key == HOST_KEY
    assert {name: status for name, (status, _) in installer.files.items()} == dict.fromkeys(
        ("preseed.cfg", "guard.sh", "finish.sh", "once"), 200
    )
    assert "DISK-1" in installer.files["guard.sh"][1]
    nothing_left(site)


def test_the_installers_kernel_gets_what_the_nodes_kernel_needs_to_start(site):
    site.nodes = [installed_by(site.files, kernel_arguments=("no_timer_check",))]
    assert site.run()["worker1"].state is State.READY
    assert "no_timer_check" in site.machine.installers[0].arguments.split()


def test_the_agents_medium_is_out_before_the_installers_is_in(site):
    site.run()
    calls = [call for call in site.machine.calls if call in ("insert_media", "eject_media", "set_power on")]
    assert calls[:5] == ["insert_media", "set_power on", "eject_media", "insert_media", "set_power on"]
    first, second = site.machine.agents
    assert first.url.endswith(".iso")
    assert isinstance(second, Installing)


def test_nothing_is_written_to_by_the_agent(site):
    site.machine.signatures = [EXT4]
    thread = threading.Thread(target=site.run)
    thread.start()
    until(lambda: site.record.state is State.HELD)
    assert site.record.answers == ""
    assert confirm(site.cluster, site.nodes[0], "DISK-1") == (EXT4,)
    thread.join(20)
    assert site.record.state is State.READY
    assert site.machine.signatures == [EXT4], "what the machine's own check compares is what was confirmed"
    assert "1:ext4:data" in site.machine.installers[0].files["guard.sh"][1]


def test_the_session_is_given_out_once_to_the_nodes_address_alone(site):
    seen = {}

    def try_all(one):
        names = ("preseed.cfg", "once", "guard.sh")
        seen["elsewhere"] = [get(one.folder + name, ELSEWHERE)[0] for name in names]
        seen["no once"] = site.record.state
        wrong = one.folder.rstrip("/")[:-1] + ("A/" if not one.folder.endswith("A/") else "B/")
        seen["folder"] = [get(wrong + name)[0] for name in names]
        port = one.folder.split("/")[2]
        odd = ("", "/", "/once", "//once", "/../once", f"/{'x' * 32}/once", "/v1/hello", "/media/x.iso")
        seen["odd"] = {get(f"http://{port}{path}")[0] for path in odd}
        seen["names"] = {
            get(one.folder + name)[0] for name in ("", "../once", "once/", "Once", "once?x=1", "%6fnce")
        }
        seen["head"] = get(one.folder + "once", method="HEAD")[0]
        seen["post"] = get(one.folder + "once", method="POST")[0]
        seen["still"] = site.record.state
        for name in ("preseed.cfg", "guard.sh", "finish.sh", "once"):
            one.fetch(name)
        seen["after"] = site.record.state
        seen["again"] = [get(one.folder + "once", address)[0] for address in (HERE, HERE, ELSEWHERE)]
        one.check()
        one.finish()

    site.machine.installer = try_all
    assert site.run()["worker1"].state is State.READY
    assert seen == {
        "elsewhere": [404, 404, 404],
        "no once": State.INSTALLER,
        "folder": [404, 404, 404],
        "odd": {404},
        "names": {404},
        "head": 501,
        "post": 501,
        "still": State.INSTALLER,
        "after": State.INSTALLING,
        "again": [404, 404, 404],
    }
    nothing_left(site)


def test_many_ask_for_the_session_at_once_and_one_gets_it(site):
    got = []

    def race(one):
        for name in ("preseed.cfg", "guard.sh", "finish.sh"):
            one.fetch(name)
        threads = [threading.Thread(target=lambda: got.append(get(one.folder + "once"))) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        one.files["once"] = next(answer for answer in got if answer[0] == 200)
        one.finish()

    site.machine.installer = race
    assert site.run()["worker1"].state is State.READY
    assert sorted(status for status, _ in got) == [200] + [404] * 15


def test_nothing_is_served_before_the_approval(site):
    """The folder does not exist yet: its name is in no medium and no journal."""
    site.machine.signatures = [EXT4]
    thread = threading.Thread(target=site.run)
    thread.start()
    until(lambda: site.record.state is State.HELD)
    base = f"http://127.0.0.1:{site.network.answers_port}"
    assert {get(f"{base}/{folder_}/once")[0] for folder_ in ("sample-of-random-text", "x" * 32)} == {404}
    confirm(site.cluster, site.nodes[0], "DISK-1")
    thread.join(20)
    assert site.record.state is State.READY


def test_another_installer_cannot_have_this_ones_files(sites):
    site, seen = sites(2), {}
    barrier = threading.Barrier(2, timeout=20)

    def cross(number):
        def work(one):
            barrier.wait()
            other = f"127.0.0.{4 - number}"
            seen[number] = {get(one.folder + name, other)[0] for name in ("once", "preseed.cfg")}
            barrier.wait()
            for name in ("preseed.cfg", "guard.sh", "finish.sh", "once"):
                one.fetch(name, f"127.0.0.{number + 1}")
            one.check()
            one.finish()

        return work

    for number in (1, 2):
        site.machines[f"worker{number}"].installer = cross(number)
    assert {one.state for one in site.run().values()} == {State.READY}
    assert seen == {1: {404}, 2: {404}}


def test_the_session_opens_what_the_installer_needs_and_nothing_else(site):
    seen = {}

    def work(one):
        for name in ("preseed.cfg", "guard.sh", "finish.sh", "once"):
            one.fetch(name)
        seen["inventory"] = one.post("inventory", document())[0]
        seen["hello"] = one.post("hello", {"session": "a" * 48})[0]
        seen["another"] = one.post("progress", {"phase": "x", "percent": 1}, session="x" * 32)[0]
        seen["run"] = one.post("done", {"run": "another1", "host_keys": {"ed25519": HOST_KEY}})[0]
        seen["state"] = site.record.state
        one.check()
        one.finish()
        seen["spent"] = one.post("failed", {"error": "x"})[0]

    site.machine.installer = work
    assert site.run()["worker1"].state is State.READY
    assert seen == {
        "inventory": 409,
        "hello": 403,
        "another": 403,
        "run": 409,
        "state": State.INSTALLING,
        "spent": 403,
    }


def test_the_agents_session_ends_with_the_second_boot(site):
    seen = []

    def work(one):
        session = site.machine.agents[0].head._secret
        one.files["guard.sh"] = get(one.folder + "guard.sh")
        seen.append(one.post("failed", {"error": "x"}, session=session)[0])
        one.install()

    site.machine.installer = work
    assert site.run()["worker1"].state is State.READY
    assert seen == [403]


def test_an_answer_to_the_agent_that_was_lost_is_given_again(site):
    def work(agent):
        agent.say_hello()
        first, again = agent.decision(), agent.decision()
        assert first == again
        assert first["action"] == "off"

    site.machine.agent = work
    assert site.run()["worker1"].state is State.READY
    assert states() == STATES.split()


def test_the_check_on_the_machine_fails(site):
    def refuse(one):
        for name in ("preseed.cfg", "guard.sh", "finish.sh", "once"):
            one.fetch(name)
        text = "the disk DISK-1 (/dev/sda) has 1:xfs:new, which was not confirmed; nothing was written"
        one.post("failed", {"phase": "check", "error": text})

    site.machine.installer = refuse
    outcome = site.run()["worker1"]
    assert outcome.state is State.FAILED
    assert outcome.reason.startswith(
        "check: the disk DISK-1 (/dev/sda) has 1:xfs:new, which was not confirmed"
    )
    nothing_left(site)
    site.machine.installer = Installing.install
    assert site.run()["worker1"].state is State.READY


def test_an_installer_that_never_fetches_its_session(site):
    """As one that waits at a question."""
    waits = threading.Event()

    def ask(one):
        one.fetch("preseed.cfg")
        object.__setattr__(site.network, "token_minutes", 0)
        journal = Journal("test", "worker1")
        journal.note(token_until=time.time())
        until(lambda: site.record.state is State.FAILED)
        one.files["late"] = (404, "")
        with contextlib.suppress(OSError):  # the run may have ended, and its server
            one.files["late"] = get(one.folder + "once")
        waits.wait(10)

    site.machine.installer = ask
    outcome = site.run()["worker1"]
    assert outcome.state is State.FAILED
    assert "the installer did not fetch its session within" in outcome.reason
    assert "(last: fetched preseed.cfg)" in outcome.reason
    assert site.machine.state is Power.ON, "it is left as it is"
    assert "set_power off" not in site.machine.calls
    waits.set()
    until(lambda: site.machine.state is Power.OFF)
    assert site.machine.installers[0].files["late"][0] == 404
    nothing_left(site)


@pytest.mark.parametrize("moment", ["preseed.cfg", "progress"])
def test_the_power_is_lost(site, moment):
    def lose(one):
        one.reached = lambda step: site.machine.cut() if step == moment else None
        one.install()

    site.machine.installer = lose
    outcome = site.run()["worker1"]
    assert outcome.state is State.FAILED
    assert outcome.reason.startswith("the machine lost power in ")
    nothing_left(site)


def killed(site, monkeypatch, where):
    """The head's process ends when `where` begins."""
    with monkeypatch.context() as patch:

        def end(self, *_):
            raise Interrupted("killed")

        patch.setattr(Machine, where, end)
        site.run()


def test_a_head_that_was_killed_between_the_two_boots(site, monkeypatch):
    killed(site, monkeypatch, "_boot_installer")
    assert (site.record.state, site.machine.state) == (State.HANDED_OVER, Power.OFF)
    run = site.record.run
    assert [one["serial"] for one in site.record.disks] == ["DISK-1"]
    assert site.run()["worker1"].state is State.READY
    assert site.record.run == run
    assert len(site.machine.agents) == 2, "no second agent"
    assert states() == STATES.split()
    nothing_left(site)


def test_another_machine_behind_the_bmc_by_then(site, monkeypatch):
    killed(site, monkeypatch, "_boot_installer")
    site.machine.serial = "SN-9"
    outcome = site.run()["worker1"]
    assert outcome.state is State.HANDED_OVER, "it goes on once the cables are right"
    assert "belongs to another machine than run" in outcome.reason
    assert not site.machine.installers


@pytest.mark.parametrize("change", ["on", "ssh"])
def test_a_machine_that_runs_by_then_is_not_touched(site, monkeypatch, change):
    killed(site, monkeypatch, "_boot_installer")
    if change == "on":
        site.machine.state = Power.ON
        monkeypatch.setattr(Machine, "_agent_is_gone", lambda *_: True)
    else:
        site.machine.answers_ssh = True
    site.machine.calls = []
    assert site.run()["worker1"].state is State.FAILED
    assert not site.machine.installers
    assert not [call for call in site.machine.calls if call.startswith(("insert", "set_power"))]


def test_another_disk_declared_by_then_is_not_written(site, monkeypatch):
    """What was approved counts; the check on the machine has these disks."""
    killed(site, monkeypatch, "_boot_installer")
    node = site.nodes[0]
    site.nodes = [
        node.model_copy(
            update={"install": node.install.model_copy(update={"disk": DiskRule(serials=("DISK-7",))})}
        )
    ]
    outcome = site.run()["worker1"]
    assert outcome.state is State.FAILED
    assert "DISK-7" not in "".join(str(one.files) for one in site.machine.installers)
    assert "approved for worker1 were DISK-1, but DISK-7 is declared" in outcome.reason


def test_no_installer_declared_by_then(site, monkeypatch):
    killed(site, monkeypatch, "_boot_installer")
    node = site.nodes[0]
    site.nodes = [
        node.model_copy(
            update={
                "install": node.install.model_copy(update={"installer": None, "image": site.image.folder})
            }
        )
    ]
    outcome = site.run()["worker1"]
    assert outcome.state is State.FAILED
    assert "waits for an installer, but no longer declares one" in outcome.reason
    assert not site.machine.installers


def interrupted_while(site, step):
    """The head ends when the installer has reached a step, and another goes on; the first one's outcome."""
    reached, again = threading.Event(), threading.Event()

    def work(one):
        def wait(name):
            if name == step and not again.is_set():
                reached.set()
                assert again.wait(20)

        one.reached = wait
        one.install()

    site.machine.installer = work
    first = site.installation()
    first.prepare(lambda _: None)
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.extend(first.run()))
    thread.start()
    assert reached.wait(20)
    first._turns.stop()
    thread.join(20)
    assert not thread.is_alive()
    return again, outcomes[0]


def test_a_head_that_was_killed_while_the_installer_boots(site):
    again, outcome = interrupted_while(site, "finish.sh")
    assert (outcome.state, site.record.state) == (State.INSTALLER, State.INSTALLER)
    run, served = site.record.run, site.record.answers
    second = site.installation()
    second.prepare(lambda _: None)
    threading.Thread(target=lambda: (until(lambda: answers(site)), again.set())).start()
    assert [one.state for one in second.run()] == [State.READY]
    assert site.record.run == run
    assert served in site.machine.installers[0].folder
    assert states() == STATES.split()
    nothing_left(site)


def answers(site):
    try:
        return get(f"http://127.0.0.1:{site.network.answers_port}/x")[0] == 404
    except OSError:
        return False


def test_a_head_that_was_killed_while_the_installer_writes(site):
    again, outcome = interrupted_while(site, "progress")
    assert outcome.state is State.INSTALLING
    installer = site.machine.installers[0]
    second = site.installation()
    second.prepare(lambda _: None)
    seen = []

    def go_on():
        until(lambda: answers(site))
        seen.extend(get(installer.folder + name)[0] for name in ("once", "preseed.cfg"))
        again.set()

    threading.Thread(target=go_on).start()
    assert [one.state for one in second.run()] == [State.READY]
    assert seen == [404, 404], "nothing is served to one that has it all"
    nothing_left(site)


def test_a_declaration_that_changed_while_the_installer_boots(site):
    again, _ = interrupted_while(site, "preseed.cfg")
    site.nodes = [installed_by(site.files, kernel_arguments=("iommu=pt",))]
    second = site.installation()
    second.prepare(lambda _: None)
    outcome = second.run()[0]
    again.set()
    assert outcome.state is State.FAILED
    assert "has changed since its installer was booted" in outcome.reason
    until(lambda: site.machine.state is Power.OFF)
    nothing_left(site)


def test_a_machine_that_is_found_off_begins_anew(site):
    again, _ = interrupted_while(site, "preseed.cfg")
    site.machine.cut()
    again.set()
    run = site.record.run
    site.machine.installer = Installing.install
    assert site.run()["worker1"].state is State.READY
    assert site.record.run != run
    assert State.FAILED in states()


def test_the_journal_that_cannot_be_written_gives_nothing_out(site, monkeypatch):
    seen = {}

    def work(one):
        for name in ("preseed.cfg", "guard.sh", "finish.sh"):
            one.fetch(name)
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "_write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
            seen["full"] = get(one.folder + "once")
        one.fetch("once")
        one.check()
        one.finish()

    site.machine.installer = work
    assert site.run()["worker1"].state is State.READY
    assert seen == {"full": (503, "the head cannot answer now\n")}


def test_the_journal_has_the_digest_of_the_session(site):
    site.run()
    session = site.machine.installers[0].files["once"][1].splitlines()[0]
    lines = (folder("test") / "worker1.jsonl").read_text().splitlines()
    installing = next(one for one in map(json.loads, lines) if one.get("state") == "installing")
    assert installing["session"] == digest(session)


def test_signatures_that_no_script_can_have_end_it(site):
    site.machine.signatures = ["/dev/md0:ext4:x"]
    thread = threading.Thread(target=site.run)
    thread.start()
    until(lambda: site.record.state is State.HELD)
    confirm(site.cluster, site.nodes[0], "DISK-1")
    thread.join(20)
    assert site.record.state is State.FAILED
    assert "cannot generate the answers" in site.record.reason
    assert not site.machine.installers


def refused(site):
    with pytest.raises(InstallError) as error:
        site.installation().prepare(lambda _: None)
    assert site.untouched()
    assert not list(folder("test").glob("*.jsonl"))
    return error.value.message


def test_every_reason_of_every_node_before_the_first_machine_is_touched(sites):
    site = sites(3)
    first, second, third = site.nodes
    site.nodes = [
        first.model_copy(update={"install": first.install.model_copy(update={"vlan": 7})}),
        second.model_copy(
            update={"install": second.install.model_copy(update={"installer_files": site.files / "x"})}
        ),
        third.model_copy(update={"mac": None}),
    ]
    (site.files / "grubx64.efi").write_bytes(b"")
    message = refused(site)
    assert "worker1 has its management network on the tagged VLAN 7" in message
    assert f"worker1: {site.files} lacks: signed grub" in message
    assert f"worker2: {site.files / 'x'} lacks: kernel" in message
    assert "The MAC address of worker3 is not declared" in message


def test_a_validator_that_is_missing_is_not_a_pass(site, monkeypatch):
    monkeypatch.setattr("rackwright.install.installers.validate.shutil.which", lambda *_, **__: None)
    message = refused(site)
    assert "debconf-set-selections is missing; apt-get install debconf" in message


def test_answers_that_are_not_valid(site, monkeypatch):
    real = requests.answers.make

    def spoilt(request):
        made = real(request)
        files = {
            **made.files,
            "preseed.cfg": made.files["preseed.cfg"] + "d-i partmann/confirm boolean true\n",
        }
        return type(made)(files, made.kernel_arguments)

    monkeypatch.setattr(requests.answers, "make", spoilt)
    assert "partmann/confirm is not a known question" in refused(site)


def test_programs_that_are_missing(site, monkeypatch):
    monkeypatch.setattr(
        handover_run.media.shutil, "which", lambda name: None if name == "mcopy" else "/bin/true"
    )
    assert "mcopy is missing: apt-get install mtools" in refused(site)


def test_a_discovery_needs_none_of_it(site):
    site.files.joinpath("linux").unlink()
    outcome = site.run("discover")["worker1"]
    assert outcome.state is State.SURVEYED
    assert not site.machine.installers


@pytest.mark.parametrize("where", ["_boot_installer", "finish.sh"])
def test_a_line_of_the_journal_that_is_lost_gives_nothing_out(site, monkeypatch, where):
    """It may have been the one that gave the session out."""
    again = threading.Event()
    if where == "_boot_installer":
        killed(site, monkeypatch, where)
    else:
        again, _ = interrupted_while(site, where)
    with (folder("test") / "worker1.jsonl").open("a") as file:
        file.write('{"at": 1, "sta')
    assert (site.record.answers, site.record.disks) == ("", [])
    outcome = site.run()["worker1"]
    again.set()
    assert outcome.state is State.FAILED
    until(lambda: site.machine.state is Power.OFF)
    assert not any(one.files.get("once", (0, ""))[0] == 200 for one in site.machine.installers)
