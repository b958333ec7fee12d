"""Archiving a folder whose owner swaps its entries meanwhile: nothing outside it is read, and nothing blocks."""

from __future__ import annotations

import io
import os
import tarfile

import pytest

from rackwright.backup import archive
from tests.unit.backup.test_putting_back import archived


@pytest.fixture
def swapped(monkeypatch):
    """Let another user act right after a name was looked at."""

    def when(looked_at, act):
        for function in ("stat", "lstat"):
            real = getattr(os, function)

            def after(path, *given, real=real, **named):
                found = real(path, *given, **named)
                if str(path).endswith(looked_at) and not done:
                    done.append(path)
                    act()
                return found

            monkeypatch.setattr(archive.os, function, after)

    done: list[str] = []
    return when


@pytest.fixture
def secret(tmp_path):
    """A folder that the owner of the spool cannot read, with names that the spool has too."""
    folder = tmp_path / "secret"
    folder.mkdir()
    (folder / "job_state").write_text("secret")
    (folder / "script").write_text("secret")
    return folder


def test_a_file_that_is_swapped_for_a_link_is_not_followed(head, secret, swapped):
    def swap():
        (head.spool / "job_state").unlink()
        (head.spool / "job_state").symlink_to(secret / "job_state")

    swapped("job_state", swap)
    with pytest.raises(OSError, match="job_state"):
        archived(head.spool)
    with tarfile.open(fileobj=io.BytesIO(archived(head.spool))) as tar:  # the next try: links are left out
        assert tar.getnames() == ["."]


def test_a_folder_that_is_swapped_for_a_link_is_not_followed(head, secret, swapped):
    (head.spool / "hash.1").mkdir()

    def swap():
        (head.spool / "hash.1").rmdir()
        (head.spool / "hash.1").symlink_to(secret)

    swapped("hash.1", swap)
    with pytest.raises(OSError, match=r"hash\.1"):
        archived(head.spool)


def test_a_folder_that_is_swapped_while_it_is_read_stays_the_one_that_was_opened(head, secret, swapped):
    (head.spool / "hash.1").mkdir()
    (head.spool / "hash.1" / "script").write_text("echo")

    def swap():
        (head.spool / "hash.1").rename(head.spool / "moved")
        (head.spool / "hash.1").symlink_to(secret)

    swapped("script", swap)
    with tarfile.open(fileobj=io.BytesIO(archived(head.spool))) as tar:
        script = tar.extractfile("hash.1/script")
        assert script is not None
        assert script.read() == b"echo"


def test_a_file_that_is_swapped_for_a_pipe_blocks_nothing(head, swapped):
    def swap():
        (head.spool / "job_state").unlink()
        os.mkfifo(head.spool / "job_state")

    swapped("job_state", swap)
    with pytest.raises(OSError, match="no longer a regular file: 'job_state'"):
        archived(head.spool)


def test_folders_without_end_are_an_error(head, monkeypatch):
    monkeypatch.setattr(archive, "_DEEPEST", 2)
    (head.spool / "a" / "b").mkdir(parents=True)
    archived(head.spool)
    (head.spool / "a" / "b" / "c").mkdir()
    with pytest.raises(OSError, match="folders nested more than 2 deep"):
        archived(head.spool)
