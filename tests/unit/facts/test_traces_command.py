"""The one command that reads a node's traces, run by a shell on files of a test."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackwright.facts.traces import NodeTraces, parse_traces
from tests.unit.facts.traced import FOREIGN, STOCK_SSHD, STOCK_SUDOERS

_SSHD = "#!/bin/sh\nprintf 'port 22\\nport 2222\\npermitrootlogin no\\nauthorizedkeysfile .ssh/authorized_keys\\n'\n"


@pytest.fixture
def node() -> Iterator[Path]:
    """The files of a small node below a folder that other users may search, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o755)
        for folder in ("etc/ssh/sshd_config.d", "etc/sudoers.d", "bin", "home/ada/.ssh", "var"):
            (top / folder).mkdir(parents=True)
        (top / "bin/sshd").write_text(_SSHD)
        (top / "bin/sshd").chmod(0o755)
        (top / "etc/sudoers").write_text(STOCK_SUDOERS)
        (top / "etc/ssh/sshd_config").write_text(STOCK_SSHD)
        accounts(top)
        (top / "etc/group").write_text("root:x:0:\nsudo:x:27:\nada:x:3000:\n")
        yield top


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
        .command(users=("ada",), groups=("sudo", "wheel", "docker"), paths=(f"{node}/var",), held="true")
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


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("home/ada/.ssh/authorized_keys", "keys"),
        ("etc/sudoers", "sudoers"),
        ("etc/sudoers.d/50-site", "sudoers"),
        ("etc/ssh/sshd_config.d/10-site.conf", "sshd"),
    ],
)
def test_a_file_that_is_too_large_is_not_read_in_part(node, path, part):
    """What is below its first 256 KiB could be anything."""
    (node / path).write_text("#" * 262_143 + "\n")
    assert read(node).unknown == {}
    (node / path).write_text("#" * 262_143 + f"\n{FOREIGN}\n")
    assert read(node).unknown == {part: f"read {node / path}: it is larger than 262144 bytes"}


@pytest.mark.parametrize("closed", ["home/ada", "home/ada/.ssh", "home/ada/.ssh/authorized_keys"])
def test_a_home_that_root_may_not_search_is_unknown(node, closed):
    """As nobody, which root is on NFS with root_squash, it is not the same as a home without keys."""
    keys = node / "home/ada/.ssh/authorized_keys"
    keys.write_text(f"{FOREIGN}\n")
    nobody = 65534 if os.geteuid() == 0 else None
    assert [one.text for one in read(node, nobody).keys] == [f"{FOREIGN}\n"]
    (node / closed).chmod(0)
    found = read(node, nobody)
    (node / closed).chmod(0o700)
    assert found.unknown["keys"] in (f"look for {keys}: Permission denied", f"read {keys}")


def test_a_home_without_keys_is_known(node):
    (node / "home/ada/.ssh").rmdir()
    assert read(node).unknown == {}
    (node / "home/ada/.ssh").symlink_to(".ssh")
    assert read(node).unknown == {}
    (node / "home/ada/.ssh").unlink()
    (node / "home/ada/.ssh").write_text("")
    assert (read(node).keys, read(node).unknown) == ([], {})


def test_a_name_with_a_line_break_cannot_be_repaired(node):
    (node / "var/good").write_text("")
    (node / "var/good").chmod(0o666)
    assert [one.path for one in read(node).loose] == [f"{node}/var/good"]
    (node / "var/a\nb").write_text("")
    (node / "var/a\nb").chmod(0o666)
    assert read(node).unknown == {"loose": f"repair {node}/var/a?b: its name holds a line break"}


def test_members_of_groups(node):
    """By a second group of the same number, and as their primary group, users are members too."""
    (node / "etc/group").write_text(
        "alias:x:27:eve\nroot:x:0:bob\nsudo:x:27:ada,rack\nada:x:3000:mallory\ndocker:x:33:\nwww:x:34:x\n"
    )
    accounts(node, ("www", "*"))
    assert [(one.group, one.user, one.through) for one in read(node).members] == [
        ("sudo", "eve", "alias"),
        ("sudo", "ada", "sudo"),
        ("sudo", "rack", "sudo"),
        ("docker", "www", ""),
    ]
    (node / "etc/group").unlink()
    assert read(node).unknown == {"accounts": "read the groups"}
