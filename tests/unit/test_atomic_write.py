"""The script that writes a file: whole or not at all, and nothing of it stays."""

from __future__ import annotations

import getpass
import grp
import os
import subprocess

import pytest

from rackwright.atomic_write import write_command

TEXT = b"text\n" * 100


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "it's here"


@pytest.fixture
def write(folder):
    """Run the script as a connection would: what is sent, and what it may say it to."""
    folder.mkdir()

    def run(content=TEXT, *, sent=None, mode="640", validate=None, stderr=subprocess.PIPE):
        group = grp.getgrgid(os.getgid()).gr_name
        script, stdin = write_command(
            f"{folder}/a file", content, mode=mode, owner=getpass.getuser(), group=group, validate=validate
        )
        given = stdin.encode() if sent is None else stdin.encode()[:sent]
        return subprocess.run(["sh", "-c", script], input=given, stderr=stderr, check=False, timeout=240)

    return run


def _names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("content", [b"", TEXT, bytes(range(256)) * 4000])
def test_it_lands_to_the_byte(write, folder, content):
    assert write(content).returncode == 0
    assert (folder / "a file").read_bytes() == content
    assert (folder / "a file").stat().st_mode & 0o7777 == 0o640
    assert _names(folder) == ["a file"]


@pytest.mark.parametrize("length", [0, 4, 400, -4])
def test_half_of_it_does_not_land(write, folder, length):
    done = write(sent=length)
    said = f"the content of {folder}/a file did not arrive whole\n"
    assert (done.returncode, done.stderr.decode(), _names(folder)) == (1, said, [])


def test_a_connection_lost_in_the_middle_leaves_nothing(write, folder):
    """Then nobody reads what the script says either, and its first word is answered by SIGPIPE."""
    read, nobody = os.pipe()
    os.close(read)
    assert write(sent=4, stderr=nobody).returncode != 0
    assert write(validate="sh -c 'echo no; exit 1' >&2", stderr=nobody).returncode != 0
    os.close(nobody)
    assert _names(folder) == []


@pytest.mark.parametrize("name", ["HUP", "INT", "PIPE", "TERM"])
def test_whoever_is_ended_while_writing_leaves_nothing(write, folder, tmp_path, name):
    done = write(validate=f"cp %s {tmp_path}/seen; kill -{name} $$")
    assert (done.returncode, (tmp_path / "seen").read_bytes(), _names(folder)) == (1, TEXT, [])


def test_what_a_power_cut_left_goes_with_the_next_attempt(write, folder):
    write(validate="kill -KILL $$")
    (left,) = _names(folder)
    assert left.startswith(".a file.rackwright-")
    of_somebody_at_work = folder / f".a file.rackwright-{os.getpid()}"
    of_somebody_at_work.write_text("half")
    assert write().returncode == 0
    assert _names(folder) == [of_somebody_at_work.name, "a file"]


def test_what_its_validator_refuses_does_not_land(write, folder):
    assert write(b"good\n", validate="grep -q good %s").returncode == 0
    assert write(b"bad\n", validate="grep -q good %s").returncode == 1
    assert (folder / "a file").read_bytes() == b"good\n"


def test_a_folder_that_is_not_there_is_named(write, folder):
    folder.rmdir()
    done = write()
    assert (done.returncode, done.stderr.decode()) == (1, f"the folder {folder} does not exist\n")
