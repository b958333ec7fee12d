"""The asking side on this machine: what is missing is found, done, and then not missing any more."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rackwright.drift import here, places
from rackwright.drift.declaration import Declaration
from tests.factories import make_cluster

DECLARED = Declaration(every_seconds=1800, python="/opt/rackwright/bin/python3")


_MV = """\
for p; do q=$o; o=$p; done
echo "$o $(grep "^$q " $ROOT/owners | tail -n 1 | cut -d" " -f2-)" >>$ROOT/owners
/usr/bin/mv "$@"
"""
"""The new file has the owner of the one that took its place."""


class Machine:
    """Answers a shell from a folder that stands for /, with a user database and systemd of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ran: list[str] = []
        stubs = {
            "getent": 'grep -q "^$2$" $ROOT/users && echo $2 || exit 2',
            "useradd": "for last; do :; done; echo $last >>$ROOT/users",
            "userdel": "sed -i /^$1$/d $ROOT/users",
            "systemctl": "case $1 in is-enabled) echo enabled;; is-active) echo active;; esac",
            "chown": 'echo "$2 $(echo $1 | tr : " ")" >>$ROOT/owners',
            "mv": _MV,
            "stat": r"""/usr/bin/stat "$@" | sed 's/ [^ ]* [^ ]*$//' | while read -r line; do
                for p; do :; done; echo "$line $(grep "^$p " $ROOT/owners | tail -n 1 | cut -d' ' -f2-)"; done""",
        }
        (root / "bin").mkdir()
        for name, text in stubs.items():
            (root / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
            (root / "bin" / name).chmod(0o755)
        for made in ("etc/systemd/system", "var/lib/systemd/timers", "usr"):
            (root / made).mkdir(parents=True)
        (root / "users").touch()
        (root / "owners").touch()

    def __call__(self, command: str, stdin: str | None) -> str:
        self.ran.append(command)
        for prefix in ("/etc/", "/var/lib/"):
            command = command.replace(prefix, f"{self.root}{prefix}")
        done = subprocess.run(
            ["sh", "-c", command],
            input=stdin or "",
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
            env={"PATH": f"{self.root}/bin:/usr/bin:/bin", "ROOT": str(self.root)},
        )
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout.replace(str(self.root), "")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "root").mkdir()
    return Machine(tmp_path / "root")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "test.yaml").write_text("the cluster file\n")
    (tmp_path / "known_hosts").write_text("n1 ssh-ed25519 AAAA\n")
    made = make_cluster(path=tmp_path / "test.yaml")
    return made.model_copy(
        update={"ssh": made.ssh.model_copy(update={"known_hosts": tmp_path / "known_hosts"})}
    )


def test_install_twice_then_uninstall_leaves_nothing(machine: Machine, cluster):
    first = here.steps_to_install(cluster, DECLARED, machine)
    assert [step.what for step in first][:3] == [
        "make user rackwright-drift",
        "make /etc/rackwright-drift",
        "make /var/lib/rackwright-drift",
    ]
    here.carry_out(first, machine)
    assert here.steps_to_install(cluster, DECLARED, machine) == []
    folder = machine.root / "etc/rackwright-drift/test"
    assert oct((folder / "key").stat().st_mode & 0o777) == "0o640"
    assert (folder / "cluster.yaml").read_text() == "the cluster file\n"
    assert "OPENSSH PRIVATE KEY" in (folder / "key").read_text()
    assert not any("PRIVATE KEY" in command for command in machine.ran)
    (folder / "known_hosts").write_text("somebody else's\n")
    assert [step.what for step in here.steps_to_install(cluster, DECLARED, machine)] == [
        "write /etc/rackwright-drift/test/known_hosts"
    ]
    here.carry_out(here.steps_to_uninstall(cluster, DECLARED, machine), machine)
    assert here.steps_to_uninstall(cluster, DECLARED, machine) == []
    left = [path for path in (machine.root / "etc").rglob("*") if "rackwright" in path.name]
    left += [path for path in (machine.root / "var").rglob("*") if "rackwright" in path.name]
    assert left == []
    assert (machine.root / "users").read_text() == ""


def test_another_cluster_looked_after_from_here_keeps_the_user(machine: Machine, cluster):
    here.carry_out(here.steps_to_install(cluster, DECLARED, machine), machine)
    (machine.root / "etc/rackwright-drift/other").mkdir()
    here.carry_out(here.steps_to_uninstall(cluster, DECLARED, machine), machine)
    assert (machine.root / "etc/rackwright-drift/other").is_dir()
    assert not (machine.root / "etc/rackwright-drift/test").exists()
    assert (machine.root / "users").read_text() == f"{places.USER}\n"
