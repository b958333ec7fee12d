"""The programs of nodes, run for real on a folder of this machine."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rackwright.node_programs import one_text
from rackwright.storage.programs import alone, children, place
from rackwright.storage.programs.pattern import PAGE, Pattern, compared, compared_count
from rackwright.storage.received import LOOKED, result_of, together_of

ROOT = Path(__file__).parents[3]
NAME = ".rackwright-bench-9999999999-0123456789abcdef"
RUN_TOGETHER = (
    "import json, sys; from rackwright.storage.programs.together import main, Rank; {before}"
    "main(json.loads(sys.argv[1]), int(sys.argv[2]))"
)


def free_port():
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def asked_together(folder, **changes):
    return {
        "nodes": ["a", "b"], "jobs": 2, "folder": str(folder), "user": None, "size": 2**20, "block": 2**16,
        "direct": False, "files": 20, "token": "t", "address": "127.0.0.1", "port": free_port(), "seconds": 20,
    } | changes  # fmt: skip


def run_together(asked, before="", indexes=(0, 1)):
    """What the first node prints."""
    program = RUN_TOGETHER.format(before=before)
    nodes = [
        subprocess.Popen(
            [sys.executable, "-c", program, json.dumps(asked), str(index)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for index in indexes
    ]
    outputs = [node.communicate(timeout=60)[0] for node in nodes]
    return together_of(outputs[0], asked["nodes"])


def test_all_nodes_write_read_each_other_and_leave_nothing(tmp_path):
    found = run_together(asked_together(tmp_path))
    assert found.errors == ()
    assert {phase.phase: phase.done for phase in found.phases} == {
        "write": 4 * 2**20, "read": 4 * 2**20, "compare": 4 * 2**20, "create": 80, "stat": 80, "remove": 80, "clean": 4,
    }  # fmt: skip
    assert all(phase.seconds > 0 for phase in found.phases)
    assert list(tmp_path.iterdir()) == []


ONE_SERVER = """
import fcntl, time
from rackwright.storage.programs import together
from rackwright.storage.programs.pattern import Pattern

def served(real):
    def one(file, block, *more):
        with open({lock!r}, "w") as server:
            fcntl.flock(server, fcntl.LOCK_EX)
            time.sleep({seconds})
        return real(file, block, *more)
    return one

def slow(real):
    def work(self, *given):
        time.sleep({work})
        return real(self, *given)
    return work

together._read_all, together._write_all = served(together._read_all), served(together._write_all)
for name in [name for name in ("block", "is_block", "is_marked") if hasattr(Pattern, name)]:
    setattr(Pattern, name, slow(getattr(Pattern, name)))
"""
"""A server with one fixed rate, and clients that take their time with the data."""


def test_no_rate_is_above_that_of_the_server(tmp_path):
    """While a rank works on its data, the others use its share of the server."""
    (tmp_path / "f").mkdir()
    serving, blocks, ranks = 0.01, 8, 4
    server = ONE_SERVER.format(lock=str(tmp_path / "server"), seconds=serving, work=3 * serving)
    asked = asked_together(tmp_path / "f", size=blocks * 2**16, seconds=60)
    found = run_together(asked, before=f"\nexec({server!r})\n")
    assert found.errors == ()
    # a rank's clock starts a moment after the barrier opens, when the message reaches it
    assert found.phase("write").seconds > 0.9 * serving * blocks * ranks
    assert found.phase("read").seconds > 0.9 * serving * blocks * ranks


def test_time_starts_for_all_ranks_when_the_first_one_does(tmp_path):
    """Ranks that take turns would otherwise have the rate of ranks that work at once."""
    slow = (
        "import time\n"
        "from rackwright.storage.programs.barrier import Coordinator\n"
        "real = Coordinator._send\n"
        "Coordinator._send = lambda self, rank, text: (time.sleep(0.1), real(self, rank, text))\n"
    )
    found = run_together(asked_together(tmp_path), before=f"\nexec({slow!r})\n")
    assert found.errors == ()
    assert all(phase.seconds >= 0.4 for phase in found.phases)


def spoiled(phase, place, data):
    """The second node's second rank finds other data in the file that it reads, from this phase on."""
    return "\nexec({!r})\n".format(
        f"real = Rank.{phase}\n"
        "def spoiled(self):\n"
        "    if self._rank == 3:\n"
        "        with open(self._path(self._other), 'r+b') as file:\n"
        f"            file.seek({place}); file.write({data})\n"
        "    return real(self)\n"
        f"Rank.{phase} = spoiled\n"
    )


@pytest.mark.parametrize(
    ("spoil", "phase"),
    [
        # a page of the same file that belongs elsewhere, and a page of another file: seen while the rate is measured
        (spoiled("read", 671744, "self._theirs.block(9)[16384:20480]"), "read"),
        (spoiled("read", 671744, "self._own.block(10)[16384:20480]"), "read"),
        (spoiled("read", 671744, "self._theirs.block(10)[:4096]"), "read"),
        # one byte: seen when every byte is compared, wherever it changed
        (spoiled("read", 700000, "b'x'"), "compare"),
        (spoiled("compare", 700000, "b'x'"), "compare"),
    ],
)
def test_a_filesystem_that_returns_other_data_is_caught(tmp_path, spoil, phase):
    found = run_together(asked_together(tmp_path), before=spoil)
    [trouble] = found.errors
    assert (trouble.node, trouble.kind) == ("b", "wrong")
    assert (
        trouble.text
        == f"rank 3: {phase}: bytes 655360 to 720896 of the file of rank 1 differ from what was written"
    )
    assert found.phases[-1].phase == phase


def test_a_node_that_never_comes_is_named_within_the_deadline(tmp_path):
    begun = time.monotonic()
    found = run_together(asked_together(tmp_path, seconds=4), indexes=(0,))
    assert [(one.node, one.kind) for one in found.errors] == [("b", "hung"), ("b", "hung")]
    assert time.monotonic() - begun < 120


def test_a_rank_that_hangs_is_named_within_the_deadline(tmp_path):
    before = "\nimport time\nRank.stat = lambda self: time.sleep(600)\n"
    begun = time.monotonic()
    found = run_together(asked_together(tmp_path, seconds=4), before=before)
    assert {one.kind for one in found.errors} == {"hung"}
    assert "stat: did not answer in time" in found.errors[0].text
    assert time.monotonic() - begun < 120


def test_an_error_ends_the_run_and_is_named(tmp_path):
    found = run_together(asked_together(tmp_path / "not there"))
    assert {one.kind for one in found.errors} == {"error"}
    assert "No such file or directory" in found.errors[0].text


def test_a_user_who_does_not_exist(tmp_path):
    asked = asked_together(tmp_path, user="nobody-here")
    program = RUN_TOGETHER.format(before="")
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(asked), "0"],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    assert "cannot switch to user nobody-here" in together_of(done.stdout, asked["nodes"]).errors[0].text


def test_no_two_pages_are_alike():
    pattern = Pattern("t 0", 16 * PAGE)
    pages = {bytes(pattern.block(block)[page * PAGE :][:PAGE]) for block in range(4) for page in range(16)}
    assert len(pages) == 64
    assert pattern.is_block(3, memoryview(bytes(Pattern("t 0", 16 * PAGE).block(3))))
    assert not pattern.is_block(2, memoryview(bytes(Pattern("t 0", 16 * PAGE).block(3))))
    assert not pattern.is_block(3, memoryview(bytes(Pattern("t 1", 16 * PAGE).block(3))))


def test_every_page_of_a_block_is_marked():
    blocks = [bytes(Pattern(seed, 16 * PAGE).block(number)) for seed in ("t 0", "t 1") for number in (3, 259)]
    pattern = Pattern("t 0", 16 * PAGE)
    assert [pattern.is_marked(3, memoryview(block)) for block in blocks] == [True, False, False, False]
    for page in range(16):
        other = bytearray(blocks[0])
        other[page * PAGE] ^= 1
        assert not pattern.is_marked(3, memoryview(other))


def test_small_files_are_compared_whole_and_large_ones_in_part():
    mib = 2**20
    assert compared("t 0", 256 * mib, 4 * mib) == list(range(64))
    large = compared("t 0", 4096 * mib, 4 * mib)
    assert len(set(large)) == compared_count(4096 * mib, 4 * mib) == 64
    assert large == sorted(large)
    assert large[-1] < 1024
    assert large == compared("t 0", 4096 * mib, 4 * mib)
    assert large != compared("t 1", 4096 * mib, 4 * mib)
    assert compared_count(2**44, 2**26 - PAGE) == 5, "never less than is promised"


def at(folder, do, **more):
    return place.main({"do": do, "path": str(folder), "folder": "", "user": None, "seconds": 10} | more)


def make(folder, unfinished=(), inner=("together",)):
    return at(folder, "make", name=NAME, inner=list(inner), unfinished=list(unfinished))


def test_a_folder_is_made_and_removed(tmp_path):
    assert make(tmp_path) == {"removed": []}
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o700
    (tmp_path / NAME / "together" / "data.0").write_text("x")
    assert "FileExistsError" in make(tmp_path)["error"]
    assert at(tmp_path, "remove", name=NAME) == {"removed": [NAME]}
    assert at(tmp_path, "remove", name=NAME) == {"removed": [NAME]}, "removing it twice is not an error"
    assert list(tmp_path.iterdir()) == []


def test_what_earlier_runs_left_is_removed_and_nothing_else(tmp_path):
    over, ended, other = (
        ".rackwright-bench-1000000000-00000000000000aa",
        ".rackwright-bench-9999999999-00000000000000bb",
        ".rackwright-bench-9999999999-00000000000000cc",
    )
    for name in (over, ended, other, ".rackwright-bench-x", "home"):
        (tmp_path / name / "sub").mkdir(parents=True)
    assert make(tmp_path, unfinished=["00000000000000bb"]) == {"removed": [over, ended]}
    assert {one.name for one in tmp_path.iterdir()} == {other, ".rackwright-bench-x", "home", NAME}


def test_only_folders_of_the_bench_are_removed_and_no_link_is_followed(tmp_path):
    (tmp_path / "home").mkdir()
    assert "not a folder of the bench" in at(tmp_path, "remove", name="home")["error"]
    assert "not a folder of the bench" in at(tmp_path, "remove", name=f"{NAME}/../home")["error"]
    (tmp_path / NAME).symlink_to(tmp_path / "home")
    assert "error" in at(tmp_path, "remove", name=NAME)
    assert (tmp_path / "home").is_dir()


def test_a_look(tmp_path):
    found = at(tmp_path, "look")
    assert found["mounted"] is None
    assert found["free_bytes"] > 0
    assert "error" in at(tmp_path / "not there", "look")
    assert at("/proc", "look")["mounted"][1] == "proc"


MOUNTINFO = """\
22 1 8:1 / / rw - ext4 /dev/sda1 rw
30 22 0:40 / /data rw - autofs systemd-1 rw,fd=40
31 30 0:41 / /data rw - nfs4 10.0.0.1:/srv/my\\040data rw,vers=4.2
32 22 0:42 / /with\\040space rw - autofs systemd-1 rw
broken
"""


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/data", ["10.0.0.1:/srv/my data", "nfs4"]),
        ("/with space", None),
        ("/", ["/dev/sda1", "ext4"]),
        ("/dat", None),
    ],
)
def test_what_is_mounted(path, found):
    assert place.mounted(MOUNTINFO, path) == found


def test_a_call_that_hangs_is_left_behind():
    begun = time.monotonic()
    assert children.in_child(lambda: time.sleep(60) or {}, 0.3) == {"hung": 0.3}
    assert time.monotonic() - begun < 5
    assert children.in_child(lambda: {"a": 1}, 5) == {"a": 1}
    assert children.in_child(lambda: 1 / 0, 5) == {"error": "ZeroDivisionError: division by zero"}
    assert children.in_child(lambda: os._exit(3), 5) == {"error": "the process ended without an answer"}


def test_children_that_end_fail_and_hang(capfd):
    def work(number):
        os.write(1, f"{number} begins\n".encode())  # print() would write to pytest, past the pipe
        if number == 1:
            raise ValueError("two\nlines")
        time.sleep(600 if number == 2 else 0)

    ended = children.Children(3, work).wait(time.monotonic() + 4)
    assert ended == {0: 0, 1: 1, 2: None}
    printed = capfd.readouterr().out.splitlines()
    assert sorted(printed) == ["0 begins", "1 begins", "2 begins", "ValueError: two lines"]


def test_a_child_holds_none_of_the_output_of_the_job():
    """Else a rank that the kernel holds would keep the job from ending."""
    program = (
        "import os, time; from rackwright.storage.programs.children import Children\n"
        "Children(1, lambda number: os.fork() == 0 and time.sleep(600)).wait(time.monotonic() + 5)"
    )
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, timeout=200, check=True)
    assert time.monotonic() - begun < 100


def test_the_program_of_a_place_is_one_text_that_answers_a_look(tmp_path):
    asked = json.dumps({"do": "look", "path": str(tmp_path), "folder": "", "user": None, "seconds": 5})
    done = subprocess.run(
        ["python3", "-IS", "-c", one_text("rackwright.storage.programs.place"), asked],
        capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    assert result_of(LOOKED, done.stdout).free_bytes > 0


@pytest.mark.parametrize("program", ["place", "alone", "together", "checkpoint"])
def test_a_program_fits_into_one_argument(program):
    # MAX_ARG_STRLEN of the kernel is 128 KiB, and the shell line quotes it twice
    assert len(one_text(f"rackwright.storage.programs.{program}")) < 40_000


ASKED = {
    "folder": "/data/f", "user": None, "size": 64, "block": 32, "jobs": 2, "engine": "libaio", "depth": 4,
    "direct": True, "seconds": 5,
}  # fmt: skip


def test_what_fio_is_told():
    write, read = alone.command(ASKED, "write"), alone.command(ASKED, "read")
    for words in (write, read):
        assert {"--direct=1", "--verify=crc32c", "--iodepth=4", "--numjobs=2", "--size=64"} <= set(words)
    assert {"--rw=write", "--end_fsync=1", "--do_verify=0"} <= set(write)
    assert {"--rw=read", "--unlink=1", "--invalidate=1"} <= set(read)


@pytest.fixture
def fio(tmp_path, monkeypatch):
    """A program of that name that does what a shell script says."""

    def installed(script):
        path = tmp_path / "bin" / "fio"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")

    return installed


def test_fio_runs_twice_and_its_output_comes_back(fio):
    fio('echo "$@" | grep -o -- "--rw=[a-z]*"; echo oops >&2')
    done = alone.main(ASKED)
    assert done["write"] == {"exit_status": 0, "output": "--rw=write\noops\n"}
    assert done["read"]["output"].startswith("--rw=read")


def test_after_a_write_that_fails_nothing_is_read(fio):
    fio("exit 3")
    assert alone.main(ASKED) == {"write": {"exit_status": 3, "output": ""}}


def test_fio_that_hangs_is_given_up(fio):
    fio("exec sleep 60")
    begun = time.monotonic()
    assert alone.main(ASKED | {"seconds": 1})["write"] == {"hung": True}
    assert time.monotonic() - begun < 10


def test_without_fio(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert alone.main(ASKED)["write"] == {"missing": "fio cannot be started: No such file or directory"}
