"""Atomic writes, here and by the script for nodes: the whole file or the old one, and nothing left over."""

from __future__ import annotations

import getpass
import grp
import os
import subprocess

import pytest

from rackwright.atomic_write import write_atomically, write_command

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


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_of_this_machine_is_replaced_with_its_mode(tmp_path, monkeypatch, durable):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    target = tmp_path / "state.json"
    target.write_text("old")
    target.chmod(0o600)
    write_atomically(target, "new\n", mode=0o644, durable=durable)
    assert (target.read_bytes(), target.stat().st_mode & 0o7777) == (b"new\n", 0o644)
    assert _names(tmp_path) == ["state.json"]
    assert bool(synced) is durable
    assert synced[1:] == ([str(tmp_path)] if durable else [])


def test_a_new_file_can_be_read_by_its_owner_alone(tmp_path):
    write_atomically(tmp_path / "key", b"\0secret")
    assert (tmp_path / "key").read_bytes() == b"\0secret"
    assert (tmp_path / "key").stat().st_mode & 0o7777 == 0o600


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    (tmp_path / "state.json").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(tmp_path / "state.json", "new")
    assert (tmp_path / "state.json").read_text() == "old"
    assert _names(tmp_path) == ["state.json"]


def test_an_exclusive_write_replaces_nothing(tmp_path):
    write_atomically(tmp_path / "identity", "first", exclusive=True)
    with pytest.raises(FileExistsError):
        write_atomically(tmp_path / "identity", "second", exclusive=True)
    assert (tmp_path / "identity").read_text() == "first"
    assert _names(tmp_path) == ["identity"]


def test_a_symbolic_link_is_replaced_itself(tmp_path):
    (tmp_path / "elsewhere").write_text("old")
    (tmp_path / "link").symlink_to("elsewhere")
    write_atomically(tmp_path / "link", "new")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "elsewhere").read_text() == "old"
