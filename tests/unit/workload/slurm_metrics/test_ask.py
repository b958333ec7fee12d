"""Commands of Slurm: what they print, and those that fail, hang, print too much or leave children behind."""

from __future__ import annotations

import subprocess
import time

import pytest

from rackwright.workload.slurm.metrics.ask import ENVIRONMENT, asked
from rackwright.workload.states import NoAnswer


def sh(script, seconds=10.0, **limits):
    return asked(("sh", "-c", script), seconds, **limits)


def test_what_a_command_prints():
    assert sh("printf 'a\\377b ümläut\\n'; echo no >&2") == "a�b ümläut\n"


def test_both_streams_are_read():
    """More than a pipe holds, on both."""
    assert len(sh("head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero")) == 300_000


def test_its_environment_is_ours_alone(monkeypatch):
    monkeypatch.setenv("SQUEUE_STATES", "all")
    printed = dict(line.split("=", 1) for line in asked(("env",), 10).splitlines())
    assert printed == ENVIRONMENT


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (
            "echo out; echo 'slurm_load_jobs error: no' >&2; exit 1",
            "`sh` exited 1: slurm_load_jobs error: no",
        ),
        ("echo out; exit 3", "`sh` exited 3: out"),
        ("printf 'bad\\033[2J' >&2; exit 1", "`sh` exited 1: bad\\x1b[2J"),
        ("kill -9 $$", "`sh` exited -9: nothing"),
    ],
)
def test_a_command_that_fails(script, sentence):
    with pytest.raises(NoAnswer) as error:
        sh(script)
    assert str(error.value) == sentence


def test_a_command_that_is_not_there():
    with pytest.raises(NoAnswer, match=r"^`squeue-of-nobody`: No such file or directory$"):
        asked(("squeue-of-nobody", "-a"), 1)


def test_a_message_names_the_question_and_no_flags():
    with pytest.raises(NoAnswer, match=r"^`ls nothing` exited 2: "):
        asked(("ls", "-d", "nothing"), 10)


@pytest.mark.parametrize(
    "script",
    ["sleep 60", "echo half; exec sleep 60", "exec >&- 2>&-; sleep 60", "sleep 60 & sleep 60 & wait"],
)
def test_a_command_that_hangs_is_ended_with_its_children(script, tmp_path):
    begin = time.monotonic()
    with pytest.raises(NoAnswer, match=r"^`sh` gave no answer within 0\.3 s$"):
        sh(f"echo $$ >{tmp_path}/pid; {script}", 0.3)
    assert time.monotonic() - begin < 30
    group = (tmp_path / "pid").read_text().strip()
    for _ in range(100):
        if subprocess.run(["pgrep", "-g", group], check=False, capture_output=True).returncode == 1:
            return
        time.sleep(0.05)
    pytest.fail("processes of the command still run")


def test_a_command_that_prints_without_end():
    with pytest.raises(NoAnswer, match=r"^`sh` printed more than 1 MiB$"):
        sh("exec cat /dev/zero", limit=2**20)
