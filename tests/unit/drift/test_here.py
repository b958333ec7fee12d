"""The checker on this machine: what is missing is planned and applied, and the next plan is empty."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rackwright.command import CommandResult
from rackwright.drift import paths
from rackwright.drift.declaration import Declaration
from rackwright.drift.here import Here
from rackwright.errors import RackwrightError
from rackwright.pyinfra_driver.connector_state import as_bytes
from rackwright.pyinfra_driver.local import ThisMachineConnector
from rackwright.secrets.store import store_of
from tests.factories import make_cluster

DECLARED = Declaration(every_seconds=1800, python="/opt/rackwright/bin/python3")

_OWNED = """\
for last; do :; done
owner=$(grep "^$last " $ROOT/owners | tail -n 1 | cut -d" " -f2)
/usr/bin/stat "$@" | sed "s/|[^|]*|[^|]*|\\([0-9]*\\)$/|${owner:-root|root}|\\1/"
"""
_MV = """\
for p; do from=$to; to=$p; done
echo "$to $(grep "^$from " $ROOT/owners | tail -n 1 | cut -d" " -f2)" >>$ROOT/owners
/usr/bin/mv "$@"
"""
"""The new file has the owner of the one that took its place."""
_SYSTEMCTL = """\
for last; do :; done
case $1 in
  show)
    there() { ls $ROOT/etc/systemd/system/$last >/dev/null 2>&1 || [ -e $ROOT/active ]; }
    case "$*" in
      *--value*) there && echo loaded || echo not-found ;;
      *) there && echo LoadState=loaded || echo LoadState=not-found
         [ -e $ROOT/active ] && echo ActiveState=active || echo ActiveState=inactive
         [ -e $ROOT/enabled ] && echo UnitFileState=enabled || echo UnitFileState=disabled
         echo "StateChangeTimestamp=$(cat $ROOT/active)" ;;
    esac ;;
  start|restart) date -u '+%a %F %T.%6N UTC' >$ROOT/active ;;
  stop) rm -f $ROOT/active ;;
  enable) touch $ROOT/enabled ;;
  disable) rm -f $ROOT/enabled ;;
  is-active) [ -e $ROOT/active ] ;;
esac
"""
_STUBS = {
    "getent": 'grep "^$2:" $ROOT/$1',
    "groupadd": "for last; do :; done; echo $last:x:990: >>$ROOT/group",
    "groupdel": "sed -i /^$1:/d $ROOT/group",
    "useradd": f"for last; do :; done; echo $last:x:990:990::{paths.HOME}:/bin/sh >>$ROOT/passwd",
    "userdel": "sed -i /^$1:/d $ROOT/passwd",
    "id": "echo $2",
    "chown": 'echo "$2 $(echo $1 | tr : "|")" >>$ROOT/owners',
    "mv": _MV,
    "stat": _OWNED,
    "systemctl": _SYSTEMCTL,
}


class Machine:
    """Runs commands in a folder that stands for /, with owners, users and systemd of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ran: list[str] = []
        self.fails: str | None = None
        """Commands with this text fail."""
        for folder in ("bin", "etc/systemd/system", "var/lib/systemd/timers"):
            (root / folder).mkdir(parents=True)
        for name, text in _STUBS.items():
            (root / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
            (root / "bin" / name).chmod(0o755)
        for table in ("passwd", "group", "owners"):
            (root / table).touch()

    @property
    def connector(self) -> type[ThisMachineConnector]:
        """pyinfra's connector to it."""
        machine = self

        class Connector(ThisMachineConnector):
            def execute(self, command, arguments):
                text = command if isinstance(command, str) else command.get_raw_value()
                return machine.run(text, as_bytes(arguments.get("_stdin")) or b"")

        return Connector

    def run(self, command: str, stdin: bytes) -> CommandResult:
        self.ran.append(command)
        if self.fails is not None and self.fails in command:
            return CommandResult(command, 1, "", "sudo: a password is required\n")
        for prefix in ("/etc/", "/var/lib/"):
            command = command.replace(prefix, f"{self.root}{prefix}")
        done = subprocess.run(
            ["sh", "-c", command],
            input=stdin,
            capture_output=True,
            timeout=240,
            check=False,
            env={"PATH": f"{self.root}/bin:/usr/bin:/bin", "ROOT": str(self.root)},
        )
        stdout = done.stdout.decode().replace(str(self.root), "")
        return CommandResult(command, done.returncode, stdout, done.stderr.decode())


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "root").mkdir()
    return Machine(tmp_path / "root")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "test.yaml").write_text("the cluster file\n")
    (tmp_path / "known_hosts").write_text("n1 ssh-ed25519 AAAA\n")
    made = make_cluster(path=tmp_path / "test.yaml")
    store_of(made).ensure([paths.KEY_SECRET])  # as `drift install` does
    return made.model_copy(
        update={"ssh": made.ssh.model_copy(update={"known_hosts": tmp_path / "known_hosts"})}
    )


def plan(machine: Machine, cluster, *, wanted: bool) -> Here:
    return Here(cluster, DECLARED, wanted=wanted, connector=machine.connector)


def names(here: Here) -> list[str]:
    return [operation.name for operation in here.operations]


def test_install_twice_then_uninstall_leaves_nothing(machine: Machine, cluster):
    first = plan(machine, cluster, wanted=True)
    assert names(first)[:4] == [
        "Make the checking user's group",
        "Make the checking user",
        "Make /etc/rackwright-drift",
        "Make /var/lib/rackwright-drift",
    ]
    assert names(first)[-1] == "Run the timer of the checker"
    assert not (machine.root / "etc/rackwright-drift").exists()
    first.apply()
    assert names(plan(machine, cluster, wanted=True)) == []
    folder = machine.root / "etc/rackwright-drift/test"
    assert oct((folder / "key").stat().st_mode & 0o777) == "0o640"
    assert (folder / "cluster.yaml").read_text() == "the cluster file\n"
    assert "OPENSSH PRIVATE KEY" in (folder / "key").read_text()
    assert not any("PRIVATE KEY" in command for command in machine.ran)
    assert not any("PRIVATE KEY" in str(operation) for operation in first.operations)
    (folder / "known_hosts").write_text("somebody else's\n")
    second = plan(machine, cluster, wanted=True)
    assert names(second) == ["Write /etc/rackwright-drift/test/known_hosts"]
    gone = plan(machine, cluster, wanted=False)
    gone.apply()
    assert names(plan(machine, cluster, wanted=False)) == []
    left = [path for path in (machine.root / "etc").rglob("*") if "rackwright" in path.name]
    left += [path for path in (machine.root / "var").rglob("*") if "rackwright" in path.name]
    left += [machine.root / name for name in ("active", "enabled") if (machine.root / name).exists()]
    assert left == []
    assert not (machine.root / "var/lib/prometheus").exists()
    assert (machine.root / "passwd").read_text() == ""


def test_node_exporter_finds_no_broken_file_before_the_first_check(machine: Machine, cluster):
    plan(machine, cluster, wanted=True).apply()
    metrics = machine.root / "var/lib/rackwright-drift/test/rackwright_drift_test.prom"
    assert metrics.read_text() == ""
    metrics.write_text("rackwright_drift_drifted 0\n")
    assert names(plan(machine, cluster, wanted=True)) == []


def test_nothing_is_written_through_a_link_of_the_checking_user(machine: Machine, cluster):
    plan(machine, cluster, wanted=True).apply()
    metrics = machine.root / "var/lib/rackwright-drift/test/rackwright_drift_test.prom"
    metrics.unlink()
    metrics.symlink_to(machine.root / "etc/shadow")
    with pytest.raises(RackwrightError, match="Create an empty metrics file"):
        plan(machine, cluster, wanted=True).apply()
    assert not (machine.root / "etc/shadow").exists()


def test_another_cluster_checked_from_here_keeps_the_user(machine: Machine, cluster):
    plan(machine, cluster, wanted=True).apply()
    (machine.root / "etc/rackwright-drift/other").mkdir()
    plan(machine, cluster, wanted=False).apply()
    assert (machine.root / "etc/rackwright-drift/other").is_dir()
    assert not (machine.root / "etc/rackwright-drift/test").exists()
    assert (machine.root / "passwd").read_text().startswith(f"{paths.USER}:")
    assert names(plan(machine, cluster, wanted=False)) == []


def test_a_machine_that_is_a_node_too_keeps_the_user_and_the_folders(machine: Machine, cluster):
    plan(machine, cluster, wanted=True).apply()
    questions = machine.root / paths.QUESTIONS.lstrip("/")
    questions.write_text("{}")
    plan(machine, cluster, wanted=False).apply()
    assert questions.exists()
    assert (machine.root / "passwd").read_text().startswith(f"{paths.USER}:")


def test_an_interrupted_installation_converges(machine: Machine, cluster):
    machine.fails = "systemctl start"
    with pytest.raises(RackwrightError, match="Run the timer of the checker"):
        plan(machine, cluster, wanted=True).apply()
    machine.fails = None
    again = plan(machine, cluster, wanted=True)
    assert names(again) == ["Run the timer of the checker"]
    again.apply()
    assert (machine.root / "active").exists()
    assert names(plan(machine, cluster, wanted=True)) == []


def test_a_user_who_cannot_become_root_is_told_so(machine: Machine, cluster):
    machine.fails = ""
    with pytest.raises(RackwrightError, match="a password is required") as refused:
        plan(machine, cluster, wanted=True)
    assert refused.value.hint == "push mode needs root here (or passwordless sudo) and systemd"


def test_commands_run_through_sudo_where_rackwright_is_not_root(cluster, monkeypatch: pytest.MonkeyPatch):
    seen: list[dict[str, object]] = []

    class Connector(ThisMachineConnector):
        def execute(self, command, arguments):
            seen.append(dict(arguments))
            return CommandResult("", 0, "", "")

    for uid in (0, 1000):
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)
        Here(cluster, DECLARED, wanted=False, connector=Connector)
        assert {bool(arguments.get("_sudo")) for arguments in seen} == {uid != 0}
        seen.clear()
