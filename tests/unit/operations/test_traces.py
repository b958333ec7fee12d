"""What is planned against an intruder's traces, and the commands that take them away, run by a shell."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import ClassVar

import pytest

from rackwright.operations import quarantine
from rackwright.operations.quarantine import rewrite, take_away, take_bits
from tests.factories import make_cluster, make_node
from tests.unit.facts.traced import FOREIGN, OWN, STOCK_SSHD, STOCK_SUDOERS, answer, coded
from tests.unit.pyinfra_driver.local import LocalRun, LocalShell

_DEPLOY = """\
from tests.unit.facts.traced import DECLARED
from rackwright.operations import traces
from dataclasses import replace
declared = replace(DECLARED, login_has_sudo={has_sudo}, port={port})
traces.{operation}(name="Act", declared=declared{more})
"""


class Scripted(LocalShell):
    """A node that answers the one question as a test wants; commands are noted and not run."""

    answer: ClassVar[list[str]] = []
    acted: ClassVar[list[str]] = []

    def execute(self, command, arguments):
        text = str(command)
        if text.endswith("echo end"):
            return LocalShell.execute(self, f"cat <<'EOF'\n{chr(10).join(Scripted.answer)}\nEOF", {})
        Scripted.acted.append(text)
        return LocalShell.execute(self, "true", {})


@pytest.fixture
def node(tmp_path):
    Scripted.acted = []
    return LocalRun(make_cluster(make_node("node1", 21)), tmp_path, Scripted)


def planned(node, operation, *lines, without="\0", more="", has_sudo=False, port=22):
    Scripted.answer = answer(*lines, without=without)
    (plan,) = node.plan(_DEPLOY.format(operation=operation, more=more, has_sudo=has_sudo, port=port)).values()
    return plan


KEYS = coded("keys", "rack", "/home/rack/.ssh/authorized_keys", f"{OWN}\n{FOREIGN}\n")
SSHD = {"more": ", unit='ssh.service'"}


@pytest.mark.parametrize(
    ("operation", "line", "without", "kind", "target", "says", "runs"),
    [
        ("authorized_keys", KEYS, "keys", "file", "/home/rack/.ssh/authorized_keys", "mallory@outside", "runuser -u rack"),
        ("authorized_keys", "keylink|www|/var/www/.ssh/authorized_keys", "\0", "file",
         "/var/www/.ssh/authorized_keys", "link", "rm -f"),
        ("accounts", "account|toor|0|/root|/bin/sh|open|", "\0", "user", "toor", "uid 0", "usermod --lock --expiredate 1"),
        ("accounts", "account|www|33|/|/bin/sh|open|", "\0", "user", "www", "password open", "usermod --lock www"),
        ("accounts", "account|root|0|/root|/bin/sh|open|", "\0", "user", "root", "password open", "usermod --lock root"),
        ("accounts", "account|rack|1000|/home/rack|/bin/sh|empty|", "\0", "user", "rack", "password empty",
         "usermod --password '*' rack"),
        ("group_members", "member|sudo|eve|alias", "\0", "user", "eve", "member of group sudo", "gpasswd --delete eve alias"),
        ("group_members", "member|sudo|eve|", "\0", "user", "eve", "member of group sudo", "usermod --gid 65534 eve"),
        ("sudo_rules", coded("sudoers", "-", "/etc/sudoers.d/x", "x ALL=ALL\n"), "\0", "file", "/etc/sudoers.d/x",
         "x ALL=ALL", "rm -f"),
        ("sudo_rules", coded("sudoers", "-", "/etc/sudoers", STOCK_SUDOERS + "x ALL=ALL\n"), "\0", "file", "/etc/sudoers",
         "x ALL=ALL", "visudo -cqf"),
        ("sshd_settings", coded("config", "-", "/etc/ssh/sshd_config.d/x.conf", "X y\n"), "\0", "file",
         "/etc/ssh/sshd_config.d/x.conf", "nothing declares", "rm -f"),
        ("sshd_settings", coded("config", "-", "/etc/ssh/sshd_config", STOCK_SSHD + "Match all\n X y\n"), "\0", "file",
         "/etc/ssh/sshd_config", "Match all", "sshd -t -f"),
        ("sshd_settings", coded("config", "-", "/etc/ssh/sshd_config", "UsePAM yes\n"), "\0", "file",
         "/etc/ssh/sshd_config", "without its Include", "sshd -t -f"),
        ("loose_files", "loose|f 4755 /etc/a b", "\0", "file", "/etc/a b", "mode 4755", "ug-s,o-w"),
        ("loose_files", "loose|d 777 /etc/a", "\0", "directory", "/etc/a", "mode 777", "lower d /etc/a o-w"),
        ("holds", "hold|jq", "\0", "package", "jq", "held", "apt-mark -qq unhold jq"),
    ],
)  # fmt: skip
def test_each_is_planned_by_name_and_taken_away(node, operation, line, without, kind, target, says, runs):
    more = SSHD["more"] if operation == "sshd_settings" else ""
    plan = planned(node, operation, line, without=without, more=more)
    assert plan.error is None
    (found,) = plan.operations
    (change,) = found.changes
    assert (change.kind, change.target) == (kind, target)
    assert says in str(change.before)
    assert any(runs in command for command in found.commands), found.commands


@pytest.mark.parametrize(
    "operation",
    ["authorized_keys", "accounts", "group_members", "sudo_rules", "sshd_settings", "loose_files", "holds"],
)
def test_nothing_is_planned_on_a_stock_node(node, operation):
    more = SSHD["more"] if operation == "sshd_settings" else ""
    plan = planned(node, operation, more=more)
    assert plan.error is None
    assert not plan.operations


@pytest.mark.parametrize(
    ("operation", "part"),
    [
        ("authorized_keys", "keys"),
        ("accounts", "accounts"),
        ("group_members", "accounts"),
        ("sudo_rules", "sudoers"),
        ("sshd_settings", "sshd"),
        ("loose_files", "loose"),
        ("holds", "holds"),
    ],
)
def test_what_could_not_be_read_is_an_error_and_not_in_sync(node, operation, part):
    more = SSHD["more"] if operation == "sshd_settings" else ""
    plan = planned(node, operation, f"cannot|{part}|do it", more=more)
    assert "the node could not do it" in str(plan.error)


def test_rackwright_does_not_take_its_own_rule_of_sudo_away(node):
    plan = planned(
        node,
        "sudo_rules",
        coded("sudoers", "-", "/etc/sudoers.d/cloud", "%adm ALL=(ALL) NOPASSWD:ALL\n"),
        without="sudoers|-|/etc/sudoers.d",
    )
    assert "rack, as which rackwright logs in" in str(plan.error)


def test_a_setting_of_sshd_that_no_line_makes_is_an_error(node):
    plan = planned(node, "sshd_settings", "sshd|permitrootlogin|yes", **SSHD)
    assert "sshd's permitrootlogin is yes, but no line of its files sets it" in str(plan.error)


def test_the_port_by_which_rackwright_logs_in_is_not_taken_away(node):
    path = "/etc/ssh/sshd_config.d/10-port.conf"
    line = coded("config", "-", path, "Port 2222\n")
    plan = planned(node, "sshd_settings", line, "sshd|port|2222", port=2222, **SSHD)
    assert f"without {path}, which nothing declares, sshd no longer listens on port 2222" in str(plan.error)
    assert planned(node, "sshd_settings", line, **SSHD).error is None


def test_a_match_above_the_include_is_taken_out_alone(node):
    text = f"Match User mallory\nPermitRootLogin yes\n{STOCK_SSHD.replace('UsePAM yes', '')}"
    plan = planned(node, "sshd_settings", coded("config", "-", "/etc/ssh/sshd_config", text), **SSHD)
    assert plan.error is None
    ((change,),) = (one.changes for one in plan.operations)
    assert change.before == "/etc/ssh/sshd_config: Match User mallory; PermitRootLogin yes"


def run(command, folder):
    text = str(command).replace("/var/lib/rackwright/quarantine", f"{folder}/quarantine")
    return subprocess.run(
        ["sh", "-c", text],
        input=command.connector_arguments.get("_stdin"),
        text=True,
        capture_output=True,
        check=False,
        timeout=60,
    )


def test_what_goes_is_kept_for_root_alone(tmp_path):
    evil = tmp_path / "etc" / "evil 1"
    evil.parent.mkdir()
    evil.write_text("x")
    evil.chmod(0o4777)
    link = tmp_path / "etc" / "link"
    link.symlink_to("/etc/shadow")
    assert run(take_away(str(evil), str(link)), tmp_path).returncode == 0
    assert not evil.exists()
    assert not link.is_symlink()
    (kept,) = (tmp_path / "quarantine").iterdir()
    assert (tmp_path / "quarantine").stat().st_mode & 0o7777 == 0o700
    copy = kept / str(evil).lstrip("/")
    assert (copy.read_text(), copy.stat().st_mode & 0o7777) == ("x", 0o700)
    assert (kept / str(link).lstrip("/")).is_symlink()


def test_bits_are_taken_from_files_and_folders(tmp_path):
    program, folder, empty = tmp_path / "a 'b", tmp_path / "c", tmp_path / "e"
    program.write_text("x")
    program.chmod(0o6777)
    empty.write_text("")
    empty.chmod(0o666)
    folder.mkdir()
    folder.chmod(0o777)
    command = take_bits(
        ("d", str(folder), "o-w"), ("f", str(program), "ug-s,o-w"), ("f", str(empty), "ug-s,o-w")
    )
    done = run(command, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.stat().st_mode & 0o7777 for path in (folder, program, empty)] == [0o775, 0o775, 0o664]


@pytest.mark.parametrize("how", ["a link", "a folder on the path is a link", "another name"])
def test_bits_of_another_program_stay(tmp_path, how):
    """A user may put a link in place of the file after it was found; an intruder, a second name of sudo."""
    victim = tmp_path / "real" / "sudo"
    victim.parent.mkdir()
    victim.write_text("x")
    victim.chmod(0o4755)
    found = tmp_path / "sudo"
    if how == "a link":
        found.symlink_to(victim)
    elif how == "another name":
        found.hardlink_to(victim)
    else:
        (tmp_path / "etc").symlink_to("real")
        found = tmp_path / "etc" / "sudo"
    done = run(take_bits(("f", str(found), "ug-s,o-w")), tmp_path)
    assert done.returncode != 0
    assert str(found) in done.stderr
    assert victim.stat().st_mode & 0o7777 == 0o4755


def test_the_kept_copy_of_a_link_that_is_exchanged_meanwhile(tmp_path, monkeypatch):
    """Only the copy says what was copied: the original may no longer be the link that it was."""
    victim, link, tools = tmp_path / "victim", tmp_path / "link", tmp_path / "tools"
    victim.write_text("x")
    victim.chmod(0o4755)
    link.symlink_to(victim)
    tools.mkdir()
    (tools / "cp").write_text('#!/bin/sh\n/bin/cp "$@"; rm -f -- "$3"; : >"$3"\n')
    (tools / "cp").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    assert run(take_away(str(link)), tmp_path).returncode == 0
    assert victim.stat().st_mode & 0o7777 == 0o4755


def test_folders_come_first(node):
    plan = planned(node, "loose_files", "loose|f 666 /etc/a/x", "loose|d 777 /etc/a")
    (command,) = plan.operations[0].commands
    assert command.index("lower d /etc/a o-w") < command.index("lower f /etc/a/x ug-s,o-w")


def test_a_file_that_is_written_anew_is_kept_and_stays_where_its_validator_refuses(tmp_path):
    target = tmp_path / "conf"
    target.write_text("old\nevil\n")
    assert run(rewrite(str(target), "old\n", mode="640", validate="false %s"), tmp_path).returncode != 0
    assert target.read_text() == "old\nevil\n"
    assert run(rewrite(str(target), "old\n", mode="640"), tmp_path).returncode == 0
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("old\n", 0o640)
    kept = list((tmp_path / "quarantine").rglob("conf"))
    assert {path.read_text() for path in kept} == {"old\nevil\n"}
    assert Path(quarantine.QUARANTINE).parent == Path("/var/lib/rackwright")
