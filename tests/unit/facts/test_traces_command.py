"""The one command that reads a node's traces, run by a shell on files of a test."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rackwright.facts.traces import NodeTraces, parse_traces
from tests.unit.facts.traced import STOCK_SSHD, STOCK_SUDOERS

_SSHD = "#!/bin/sh\nprintf 'port 22\\nport 2222\\npermitrootlogin no\\nauthorizedkeysfile .ssh/authorized_keys\\n'\n"


@pytest.fixture
def node(tmp_path):
    """The files of a small node below a folder."""
    for folder in ("etc/ssh/sshd_config.d", "etc/sudoers.d", "bin", "home/ada/.ssh", "var"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "bin/sshd").write_text(_SSHD)
    (tmp_path / "bin/sshd").chmod(0o755)
    (tmp_path / "etc/sudoers").write_text(STOCK_SUDOERS)
    (tmp_path / "etc/ssh/sshd_config").write_text(STOCK_SSHD)
    accounts(tmp_path)
    return tmp_path


def accounts(node: Path, *hashes: tuple[str, str]) -> None:
    """root, ada and system accounts with these fields of shadow."""
    people = [
        ("root", 0, "*", "/root"),
        ("ada", 3000, "!", "/home/ada"),
        *((name, 33, secret, "/") for name, secret in hashes),
    ]
    (node / "etc/passwd").write_text(
        "".join(f"{name}:x:{uid}:{uid}::{node}{home}:/bin/sh\n" for name, uid, _, home in people)
    )
    (node / "etc/shadow").write_text("".join(f"{name}:{secret}:1::::::\n" for name, _, secret, _ in people))


def read(node: Path, user: str | int | None = None):
    """What the command finds, run as this user."""
    text = (
        NodeTraces()
        .command(users=("ada",), paths=(f"{node}/var",), held="true")
        .replace("/etc/", f"{node}/etc/")
    )
    done = subprocess.run(
        ["sh", "-c", text.replace("[ -d /etc ]", ":")],
        env={"PATH": f"{node}/bin:{os.environ['PATH']}"},
        user=user,
        text=True,
        capture_output=True,
        check=True,
        timeout=60,
    )
    return parse_traces(done.stdout.splitlines())


def test_it_reads_a_stock_node(node):
    found = read(node)
    assert found.unknown == {}
    assert found.ports == {22, 2222}
    assert found.settings == {"permitrootlogin": "no", "authorizedkeysfile": ".ssh/authorized_keys"}
    assert found.sudoers == {f"{node}/etc/sudoers": STOCK_SUDOERS}


@pytest.mark.parametrize(
    ("secret", "state"),
    [("x", "locked"), ("*", "locked"), ("!!", "locked"), ("!$6$a$b", "locked"), ("", "empty"), ("$6$a$b", "open"),
     ("xyRnIUbP3UTzQ", "open")],
)  # fmt: skip
def test_what_a_password_is(node, secret, state):
    """A hash of the old DES kind may begin with an x."""
    accounts(node, ("www", secret))
    assert {one.name: one.password for one in read(node).accounts}["www"] == state
