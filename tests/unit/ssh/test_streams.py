"""Large input and output of one command, against a real ssh server."""

import hashlib
import io
import os

import pytest

from rackwright.errors import ConnectionFailed
from rackwright.ssh import streams
from rackwright.ssh.streams import collect, feed

LARGE = os.urandom(9 * 2**20)  # larger than both windows


def chunks(data, size=70_000):
    for start in range(0, len(data), size):
        yield data[start : start + size]


def test_input_arrives_whole(client):
    ran = feed(client, "sha256sum; echo said >&2", chunks(LARGE), sudo=False, timeout=60)
    assert ran.stdout.split()[0] == hashlib.sha256(LARGE).hexdigest()
    assert (ran.exit_status, ran.stderr) == (0, "said\n")


def test_no_input_is_an_end_of_input(client):
    assert feed(client, "wc -c", (), sudo=False, timeout=60).stdout.strip() == "0"


def test_a_command_that_ends_early_says_why(client):
    ran = feed(
        client, "head -c 10 >/dev/null; echo 'no space' >&2; exit 3", chunks(LARGE), sudo=False, timeout=60
    )
    assert (ran.exit_status, ran.stderr) == (3, "no space\n")


def test_a_sender_that_fails_is_not_taken_for_the_end(client, tmp_path):
    """The command never sees the end of its input: what it does at the end, it does not do."""

    def broken():
        yield b"first"
        raise ValueError("decrypting failed")

    with pytest.raises(ValueError, match="decrypting failed"):
        feed(client, f"cat >/dev/null && touch {tmp_path}/done", broken(), sudo=False, timeout=60)


def test_a_node_that_reads_nothing_is_not_waited_for(client, monkeypatch):
    monkeypatch.setattr(streams, "_STALLED_SECONDS", 0.5)
    with pytest.raises(ConnectionFailed, match=r"read nothing for 0\.5 s"):
        feed(client, "sleep 30", chunks(LARGE), sudo=False, timeout=60)


def test_output_arrives_whole_without_the_greeting(client, tmp_path):
    (tmp_path / "file").write_bytes(LARGE)
    into = io.BytesIO()
    collect(client, f"cat {tmp_path}/file", into, sudo=False, limit=len(LARGE))
    assert into.getvalue() == LARGE


def test_empty_output(client):
    into = io.BytesIO()
    collect(client, "true", into, sudo=False, limit=10)
    assert into.getvalue() == b""


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("cat /nowhere", "it exited 1: cat: /nowhere: No such file or directory"),
        ("head -c 100000 /dev/zero", "more than 1000 bytes of output"),
    ],
)
def test_output_that_is_not_whole_is_an_error(client, command, why):
    with pytest.raises(ConnectionFailed, match=why):
        collect(client, command, io.BytesIO(), sudo=False, limit=1000)
