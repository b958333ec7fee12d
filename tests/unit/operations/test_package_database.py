"""A broken package database: what is found, what the plan shows, and the script that repairs it."""

from __future__ import annotations

import os
import subprocess

import pytest

from rackwright.facts.package_database import DatabaseState, PackageDatabase, parse_database
from rackwright.osfamily.apt import LOCK
from rackwright.osfamily.known import os_family, os_release
from tests.factories import DEBIAN_12, make_cluster, make_node
from tests.unit.pyinfra_driver.local import LocalRun

DEPLOY = "from rackwright.operations import packages\npackages.database(name='Repair the package database')\n"
ROWS = """\
ii \tjq\t1.7\t\t, libjq1 (= 1.7), libc6 (>= 2.38)
ii \tlibjq1\t1.7\t\t, libonig5 (>= 6.9)
ii \tlibonig5\t6.9\t\tlibc6
ii \tlibc6\t2.41\tlibc6-virtual (= 2.41)\t,
ii \tvim\t9\teditor, vim-any (= 9)\tlibc6:any (>= 2), awk | mawk,
ii \tmawk\t1\tawk\tlibc6-virtual
ii \tnano\t8\t\teditor, perl:any | vim-any
rc \told\t1\t\tgone-library
"""


def asked(tmp_path, rows, simulated=""):
    """What the query prints with a dpkg-query and an apt-get that answer this."""
    for name, text in (("dpkg-query", rows), ("apt-get", simulated)):
        (tmp_path / f"{name}.out").write_text(text)
        (tmp_path / name).write_text(
            f"#!/bin/sh\necho called >>{tmp_path}/{name}.calls\ncat {tmp_path}/{name}.out\n"
        )
        (tmp_path / name).chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    query = os_family("debian").database_query()
    done = subprocess.run(
        ["sh", "-c", query], env=env, capture_output=True, text=True, check=True, timeout=60
    )
    return parse_database(done.stdout.splitlines())


def test_a_whole_database_is_read_without_apt(tmp_path):
    state = asked(tmp_path, ROWS)
    assert state.whole
    assert not (tmp_path / "apt-get.calls").exists()


def test_no_answer_is_not_a_whole_database(tmp_path):
    assert not asked(tmp_path, "").whole


@pytest.mark.parametrize("gone", ["libjq1", "libonig5", "vim", "mawk"])
def test_a_package_removed_by_force_is_missed_by_those_that_need_it(tmp_path, gone):
    rows = "".join(line for line in ROWS.splitlines(keepends=True) if f"\t{gone}\t" not in line)
    users = {"libjq1": ["jq"], "libonig5": ["libjq1"], "vim": ["nano"], "mawk": ["vim"]}[gone]
    state = asked(tmp_path, rows, f"Inst {gone} (9.9-1 Debian:13/stable [amd64])\nConf {gone} (9.9-1 x)\n")
    assert list(state.unmet) == users
    assert state.install == {gone: "9.9-1"}
    assert not state.whole


@pytest.mark.parametrize("letters", ["iU ", "iF ", "iH ", "iHR", "iW ", "it ", "hF ", "iiR"])
def test_every_unfinished_state_is_broken(tmp_path, letters):
    state = asked(tmp_path, ROWS.replace("ii \tnano", f"{letters}\tnano"))
    assert state.broken == {"nano": letters.strip()}
    assert "nano (" in state.wrong()


def test_what_apt_would_remove_and_why_it_cannot(tmp_path):
    rows = ROWS.replace("ii \tlibjq1", "rc \tlibjq1")
    said = "Remv jq [1.7-6]\nInst a [1.0] (2.0 Debian:13 [amd64])\n"
    state = asked(tmp_path, rows, said)
    assert (state.remove, state.install, state.cannot) == ({"jq": "1.7-6"}, {"a": "2.0"}, None)
    state = asked(tmp_path, rows, "E: Unable to correct problems, you have held broken packages.\n")
    assert state.cannot == "Unable to correct problems, you have held broken packages."


@pytest.fixture
def planned(tmp_path, monkeypatch):
    def plan(state, os=DEBIAN_12):
        monkeypatch.setattr(PackageDatabase, "process", lambda self, output: state)
        monkeypatch.setattr(PackageDatabase, "default", staticmethod(lambda: state))
        run = LocalRun(make_cluster(make_node("node1", 21, os=os)), tmp_path)
        found = run.plan(DEPLOY)["node1"]
        assert found.error is None, found.error
        changes = [change for operation in found.operations for change in operation.changes]
        commands = [command for operation in found.operations for command in operation.commands]
        return [(c.target, c.before, c.after, c.because, c.disruptive) for c in changes], "\n".join(commands)

    return plan


def test_a_whole_database_is_left_alone(planned):
    assert planned(DatabaseState(read=True)) == ([], "")


def test_el_s_database_is_not_read(planned):
    assert planned(DatabaseState(broken={"a": "iU"}), os=os_release("rocky-9")) == ([], "")


def test_the_plan_names_what_is_configured_installed_and_removed(planned):
    changes, script = planned(
        DatabaseState(
            read=True,
            broken={"tree": "iU"},
            unmet={"jq": ["libjq1"], "b": ["gone"]},
            install={"libjq1": "1.7"},
            remove={"b": "2"},
        )
    )
    assert changes == [
        ("tree", "unpacked, not configured (iU)", "configured", None, False),
        ("libjq1", None, "1.7", "jq needs it", False),
        ("b", "2", None, "gone is not installed", True),
    ]
    assert script.index("--configure -a") < script.index("-f install") < script.rindex("--configure -a")


@pytest.mark.parametrize(
    ("now", "done"),
    [
        ("Inst libjq1 (1.8 x)\n", True),  # a newer version of the same package
        ("Inst libjq1 (1.7 x)\nRemv slurmd [24]\n", False),
        ("Remv jq [1.7]\n", False),
        ("", False),
    ],
)
def test_the_script_does_what_was_planned_or_nothing(tmp_path, now, done):
    assert ran(tmp_path, now, simulated=True) is done


@pytest.mark.parametrize(("now", "done"), [("Inst a (1 x)\n", True), ("Remv jq [1.7]\n", False)])
def test_without_a_simulation_nothing_is_removed(tmp_path, now, done):
    assert ran(tmp_path, now, simulated=False) is done


def ran(tmp_path, now, *, simulated):
    """Whether the repair reached apt-get -f install."""
    (tmp_path / "now").write_text(now)
    (tmp_path / "apt-get").write_text(
        f'#!/bin/sh\nif [ "$1" = -s ]; then cat {tmp_path}/now; else echo "$*" >>{tmp_path}/did; fi\n'
    )
    (tmp_path / "dpkg").write_text(
        f"#!/bin/sh\n[ -e {tmp_path}/did ]\n"
    )  # configures once apt has been there
    for name in ("apt-get", "dpkg"):
        (tmp_path / name).chmod(0o755)
    script = os_family("debian").database_repair(["libjq1"], [], simulated=simulated, wait_seconds=5)
    for path in (LOCK, "/var/lib/apt/rackwright-index-read"):
        script = script.replace(path, str(tmp_path / path.rpartition("/")[2]))
    (tmp_path / "rackwright-index-read").touch()
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    result = subprocess.run(
        ["sh", "-c", script], env=env, capture_output=True, text=True, check=False, timeout=60
    )
    did = tmp_path / "did"
    fixed = did.exists() and "-f install" in did.read_text()
    assert (result.returncode == 0) is fixed, result.stderr
    if not fixed:
        assert "the plan does not show" in result.stderr
    return fixed
