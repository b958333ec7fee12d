"""One execution per node: the batch says what the shell says, and the digest hides nothing."""

from __future__ import annotations

import getpass
import grp
import json
import os
import shlex
import subprocess
import threading
import time

import pytest

from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed
from rackwright.factcache.answers import Answers, pack
from rackwright.factcache.cache import ClassCache
from rackwright.factcache.helper_base import WAITS, as_json, execute
from rackwright.facts.files import AtPath
from rackwright.facts.kernel import Sysctls
from rackwright.facts.packages import Packages
from rackwright.facts.settings import Answer
from rackwright.facts.units import Unit
from rackwright.facts.users import UnixGroup, User
from rackwright.node_programs import FACT_HELPER, one_text
from rackwright.pyinfra_driver.connector_state import asked_of
from tests.factories import make_cluster, make_node
from tests.unit.pyinfra_driver.local import LocalRun, LocalShell

GROUP = grp.getgrgid(os.getgid()).gr_name
WHO = f"owner={getpass.getuser()!r}, group={GROUP!r}"


def _ask(command: str, stdin: bytes) -> CommandResult:
    done = subprocess.run(["sh", "-c", command], input=stdin, capture_output=True, timeout=240, check=False)
    return CommandResult(command, done.returncode, done.stdout.decode(), done.stderr.decode())


BATCHES: list[int] = []


def _count_and_ask(command: str, stdin: bytes) -> CommandResult:
    BATCHES.append(len(stdin))
    return _ask(command, stdin)


@pytest.fixture
def asked(tmp_path):
    """One host that can be asked in batches."""
    BATCHES.clear()
    run = LocalRun(make_cluster(make_node("node1", 21)), tmp_path)
    run.ask = _count_and_ask
    return run


@pytest.fixture
def cache(tmp_path):
    """A cache that forgets nothing between two calls of the fixture's maker."""
    return lambda key="k": ClassCache(tmp_path / "cache", "class", key)


def _places(folder):
    (folder / "file").write_text("one\ntwo\n")
    (folder / "empty").write_text("")
    (folder / "binary").write_bytes(bytes(range(256)) * 40)
    (folder / "big").write_bytes(b"x" * ((1 << 20) + 1))
    (folder / "folder").mkdir(mode=0o2750)
    (folder / "folder" / "inner").write_text("x")
    (folder / "link").symlink_to("file")
    (folder / "dangling").symlink_to("/no/where")
    (folder / "strange 'name'").write_text("s")
    os.mkfifo(folder / "fifo")
    return [*folder.iterdir(), folder / "absent", folder / "file" / "below"]


def test_every_kind_of_question_is_answered_as_the_shell_would(tmp_path):
    questions = [
        *(AtPath().command(path=str(path)) for path in _places(tmp_path)),
        AtPath().command(path=str(tmp_path / "file"), digest_only=True),
        Sysctls().command(keys=("kernel.ostype", "net.ipv4.ip_local_port_range", "no.such.key")),
        User().command(user=getpass.getuser()),
        User().command(user="daemon"),
        User().command(user="nobody-of-that-name"),
        UnixGroup().command(group=GROUP),
        UnixGroup().command(group="no-such-group"),
        Packages().command(family="debian", packages=("bash", "coreutils", "dpkg")),
        Packages().command(family="debian", packages=("bash", "no-such-package-xyz")),
        Packages().command(family="el", packages=("bash",)),
        Unit().command(unit="no-such.service", watch=(str(tmp_path), str(tmp_path / "absent"))),
        Answer().command(read="echo two; echo lines; exit 3"),
        "echo out; echo err >&2; exit 7",
    ]
    answers = Answers(_ask, [asked_of(question) for question in questions])
    assert answers.fetch_all(None) is False
    for question in questions:
        asked = asked_of(question)
        by_shell = _ask(asked["command"], b"")
        by_helper = answers.get(asked)
        assert by_helper is not None
        assert (by_helper.exit_status, by_helper.stdout.splitlines()) == (
            by_shell.exit_status,
            by_shell.stdout.splitlines(),
        ), asked
    assert answers.executions == 1


def test_a_question_that_hangs_is_named_while_it_hangs(tmp_path):
    """What waits for a dead filesystem cannot even be interrupted; the node says what it is waiting for."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    hanging = {"kind": "shell", "command": f"read line <{fifo}"}
    running = subprocess.Popen(
        [
            "python3",
            "-IS",
            "-c",
            one_text(FACT_HELPER).replace("STALLED_SECONDS = 10", "STALLED_SECONDS = 0.2"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        running.stdin.write(b"-\n" + pack([{"kind": "path", "path": "/"}, hanging]))
        running.stdin.close()
        assert (
            running.stderr.readline() == f"{WAITS}{hanging['command']}"[: len(WAITS) + 120].encode() + b"\n"
        )
        assert running.poll() is None
    finally:
        fifo.write_text("")  # unblocks the reader
        running.wait(timeout=60)
        running.stderr.close()


def _deploy(folder, text="one\n"):
    return f"""
from rackwright.operations import files, settings
files.directory(name="Make", path="{folder}/d", {WHO})
files.file(name="Write a", path="{folder}/a", content={text!r}, {WHO})
files.file(name="Write b", path="{folder}/b", content="b\\n", {WHO})
settings.setting(name="Set", target="x", read="cat {folder}/x", want="5", write="echo 5 >{folder}/x")
files.link(name="Link", path="{folder}/l", target="a")
"""


def test_a_no_change_run_is_one_execution_then_one_digest(asked, cache, tmp_path):
    asked.apply(_deploy(tmp_path), cache())
    asked.plan(_deploy(tmp_path), cache())
    plan = asked.plan(_deploy(tmp_path), cache())["node1"]
    assert (plan.changes, plan.evaluated, plan.executions) == (0, 0, 1)
    full = cache()
    full.ignore_digests()
    plan = asked.plan(_deploy(tmp_path), full)["node1"]
    assert (plan.changes, plan.evaluated, plan.executions) == (0, 5, 1)


@pytest.mark.parametrize(
    "drift",
    [
        "echo two >a", "printf one >a", "chmod 600 b", "rm l", "ln -sfn b l", "rm -r d", "chmod 700 d",
        "echo 6 >x", "rm x", "rm b", "rm a && mkdir a", "rm d -r && touch d",
    ],
)  # fmt: skip
def test_no_drift_hides_behind_the_digest(asked, cache, tmp_path, drift):
    asked.apply(_deploy(tmp_path), cache())
    for _ in range(2):
        asked.plan(_deploy(tmp_path), cache())
    assert asked.reported.plans["node1"].evaluated == 0
    subprocess.run(["sh", "-c", f"cd {shlex.quote(str(tmp_path))} && {drift}"], check=True)
    plan = asked.plan(_deploy(tmp_path), cache())["node1"]
    assert plan.changes or plan.error


def test_a_digest_is_worth_nothing_under_another_key(asked, cache, tmp_path):
    asked.apply(_deploy(tmp_path), cache())
    for _ in range(2):
        asked.plan(_deploy(tmp_path), cache())
    plan = asked.plan(_deploy(tmp_path, "changed\n"), cache("another code or cluster file"))["node1"]
    assert [operation.name for operation in plan.operations] == ["Write a"]


def test_a_digest_is_not_believed_for_more_than_a_day(asked, cache, tmp_path, monkeypatch):
    asked.apply(_deploy(tmp_path), cache())
    for _ in range(2):
        asked.plan(_deploy(tmp_path), cache())
    monkeypatch.setattr("rackwright.factcache.cache.FULL_EVALUATION_SECONDS", -1)
    assert asked.plan(_deploy(tmp_path), cache())["node1"].evaluated == 5


def test_a_node_with_changes_is_never_remembered_as_in_sync(asked, cache, tmp_path):
    for _ in range(3):
        assert asked.plan(_deploy(tmp_path), cache())["node1"].changes == 5


def _twenty_files(folder):
    return "from rackwright.operations import files\n" + "\n".join(
        f"files.file(name='Write {n}', path='{folder}/f{n}', content='{n}\\n', {WHO})" for n in range(20)
    )


def test_while_applying_answers_are_fetched_up_to_the_next_planned_change(asked, cache, tmp_path):
    many = _twenty_files(tmp_path)
    asked.apply(many, cache())
    asked.plan(many, cache())
    (tmp_path / "f3").write_text("drift")
    (tmp_path / "f12").write_text("drift")
    driver = asked.driver(many, cache())
    driver.plan()
    assert asked.reported.plans["node1"].changes == 2
    BATCHES.clear()
    LocalShell.ran_commands = []
    driver.apply(["node1"])
    assert asked.reported.outcomes["node1"].changed == 2
    assert (len(BATCHES), len(LocalShell.ran_commands)) == (3, 2)  # three stretches, two changes
    assert asked.plan(many, cache())["node1"].changes == 0


def test_what_a_change_may_have_changed_is_read_again(asked, cache, tmp_path):
    deploy = f"""
from rackwright.operations import files, settings
settings.setting(name="Set x", target="x", read="cat {tmp_path}/x", want="1", write="echo 1 >{tmp_path}/x; echo 1 >{tmp_path}/y")
settings.setting(name="Set y", target="y", read="cat {tmp_path}/y", want="1", write="echo 1 >>{tmp_path}/y")
"""
    for _ in range(2):
        assert [operation.name for operation in asked.plan(deploy, cache())["node1"].operations] == [
            "Set x",
            "Set y",
        ]
    outcome = asked.apply(deploy, cache())["node1"]
    assert [operation.name for operation in outcome.operations] == ["Set x"]
    assert (tmp_path / "y").read_text() == "1\n"


def test_a_node_lost_while_its_answers_are_fetched_is_lost_and_not_failed(asked, cache, tmp_path):
    asked.apply(_twenty_files(tmp_path), cache())
    (tmp_path / "f12").write_text("drift")
    cut = threading.Event()

    def ask(command, stdin):
        if cut.is_set():
            raise ConnectionFailed("cable pulled")
        return _ask(command, stdin)

    asked.ask = ask
    driver = asked.driver(_twenty_files(tmp_path), cache())
    driver.plan()
    cut.set()
    driver.apply(["node1"])
    outcome = asked.reported.outcomes["node1"]
    assert (outcome.ok, outcome.unreachable) == (False, True)
    assert outcome.error.endswith("cable pulled")


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        (CommandResult("", 127, "", "sh: python3: not found"), "no python3 on the node"),
        (CommandResult("", 1, "Traceback", "boom"), "the fact helper exited 1 with the output boom"),
        (CommandResult("", 1, "", "\x1b[2Jboom"), "the fact helper exited 1 with the output \\x1b[2Jboom"),
    ],
)
def test_a_node_without_a_working_python_is_read_one_by_one_and_says_so(asked, cache, tmp_path, reply, note):
    asked.apply(_deploy(tmp_path), cache())
    asked.ask = lambda command, stdin: reply
    (tmp_path / "a").write_text("drift\n")
    plan = asked.plan(_deploy(tmp_path), cache())["node1"]
    assert plan.changes == 1
    assert plan.note.startswith(note)
    assert plan.executions > 5


def test_memory_survives_a_damaged_file(asked, cache, tmp_path):
    asked.apply(_deploy(tmp_path), cache())
    for path in (tmp_path / "cache").glob("*.json"):
        path.write_text('{"questions": {"a": 1}, "nodes"')
    assert asked.plan(_deploy(tmp_path), cache())["node1"].changes == 0


def test_two_runs_on_different_nodes_keep_each_other_s_memory(cache):
    one, two = cache(), cache()
    one.store("node1", [{"kind": "shell", "command": "a"}, {"kind": "shell", "command": "b"}], "d1")
    two.store("node2", [{"kind": "shell", "command": "b"}], "d2")
    one.save()
    two.save()
    both = cache()
    assert [question["command"] for question in both.get("node1").questions] == ["a", "b"]
    assert [question["command"] for question in both.get("node2").questions] == ["b"]
    assert (both.get("node1").digest, both.get("node2").digest) == ("d1", "d2")


@pytest.mark.parametrize(
    "value",
    [[0, ["a", "b"], []], 'quote " back \\ slash / \b\f\n\r\t', "".join(map(chr, range(0x180))),
     "\x7f\udc80\udcff", "\U0001f600 \uffff \ud7ff", [[-9, [""], ["\u2028"]]], ""],
)  # fmt: skip
def test_the_helper_writes_json_as_the_library_does(value):
    assert as_json(value) == json.dumps(value)


@pytest.mark.parametrize(
    "command",
    [
        "echo out; echo err >&2; exit 7", "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2",
        "kill -9 $$", "read x; echo got:$x", "yes | head -n1", ["no-such-program-here"], ["echo", "it's"],
    ],
)  # fmt: skip
def test_the_helper_runs_commands_as_subprocess_does(command):
    try:
        done = subprocess.run(
            command if isinstance(command, list) else ["sh", "-c", command],
            check=False, stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip
        expected = done.returncode, done.stdout, done.stderr
    except FileNotFoundError:
        expected = 127, b"", b"[Errno 2] No such file or directory"
    status, out, err = execute(command, 240)
    assert (status, out, err.partition(b": '")[0]) == expected


def test_the_helper_gives_up_in_time_and_leaves_no_pipe_open():
    before = os.listdir("/proc/self/fd")
    began = time.monotonic()
    assert execute("echo early; exec sleep 600", 0.5) == (124, b"", b"no end within 0 s\n")
    assert execute(["no-such-program-here"], 240)[0] == 127
    assert time.monotonic() - began < 120
    assert len(os.listdir("/proc/self/fd")) == len(before)
