"""Exact and held packages: what is compared, what is recorded, and the scripts that bring them there."""

from __future__ import annotations

import os
import stat
import subprocess

import pytest

from rackwright.facts.packages import Packages, PackageState, parse_packages
from rackwright.osfamily.apt import NO_MODULES, POLICY
from rackwright.osfamily.family import PackageChange
from rackwright.osfamily.known import os_family, os_release
from tests.factories import DEBIAN_12, make_cluster, make_node
from tests.unit.pyinfra_driver.local import LocalRun

DEPLOY = """
from rackwright.operations import packages
packages.installed(name="Install", packages={packages!r}, hold={hold}, disruptive=True)
"""


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """The changes and commands of `installed` on a node in a given state."""

    def plan(state, packages, *, hold=True, os=DEBIAN_12):
        monkeypatch.setattr(Packages, "command", lambda self, **_: "true")
        monkeypatch.setattr(Packages, "process", lambda self, output: state)
        monkeypatch.setattr(Packages, "default", staticmethod(lambda: state))
        run = LocalRun(make_cluster(make_node("node1", 21, os=os)), tmp_path)
        found = run.plan(DEPLOY.format(packages=packages, hold=hold))["node1"]
        assert found.error is None, found.error
        changes = [change for operation in found.operations for change in operation.changes]
        commands = [command for operation in found.operations for command in operation.commands]
        return [(c.target, c.before, c.after, c.disruptive) for c in changes], "\n".join(commands)

    return plan


def test_a_held_package_at_its_version_is_left_alone(planned):
    state = PackageState(installed={"a": "1-1"}, held={"a"})
    assert planned(state, ("a=1-1",)) == ([], "")


def test_a_lost_hold_is_a_change_that_installs_nothing(planned):
    changes, script = planned(PackageState(installed={"a": "1-1"}), ("a=1-1",))
    assert changes == [("a", "1-1, not held", "1-1, held", False)]
    assert "apt-mark hold a" in script
    assert "apt-get -q -y" not in script


@pytest.mark.parametrize("there", ["1-1", "3-1"])
def test_another_version_is_let_through_and_held_again(planned, there):
    state = PackageState(installed={"a": there, "b": "2-1"}, held={"a", "b"})
    changes, script = planned(state, ("a=2-1", "b=2-1"))
    assert changes == [("a", f"{there}, held", "2-1, held", True)]
    where = [script.index(part) for part in ("apt-mark unhold a", "install a=2-1", "apt-mark hold a")]
    assert where == sorted(where)
    assert "Allow-Downgrades=true" in script
    assert "unhold a b" not in script


def test_a_new_package_is_installed_and_held_and_disturbs_nothing(planned):
    changes, script = planned(PackageState(candidates={"a": "9-9"}), ("a=1-1",))
    assert changes == [("a", None, "1-1, held", False)]
    assert script.index("install a=1-1") < script.index("apt-mark hold a")


def test_without_hold_holds_are_nobody_s_business(planned):
    state = PackageState(installed={"a": "1-1"}, held={"a"})
    assert planned(state, ("a=1-1",), hold=False) == ([], "")


@pytest.mark.parametrize(
    ("there", "fits"),
    [("580.1-1ubuntu1", True), ("1:580.1-1", True), ("580.11-1", False), ("580.2-1", False)],
)
def test_a_version_that_ends_in_a_star_fits_any_revision(planned, there, fits):
    changes, script = planned(PackageState(installed={"a": there}, held={"a"}), ("a=580.1-*",))
    assert (changes == []) is fits
    assert ("install 'a=580.1-*'" in script) is not fits


def test_dnf_takes_no_star_for_a_whole_version(planned):
    changes, script = planned(PackageState(), ("nvlsm=*", "a=580.1-*"), os=os_release("rocky-9"))
    assert [change[:3] for change in changes] == [("nvlsm", None, "*, held"), ("a", None, "580.1-*, held")]
    assert "install nvlsm 'a-580.1-*'\n" in script
    assert "versionlock add nvlsm 'a-580.1-*' " in script


def test_of_several_installed_kernels_the_wanted_one_counts(planned):
    lines = ["have kernel 5.14.0-1.el9 ii", "have kernel 5.14.0-2.el9 ii", "lock kernel-0:5.14.0-1.el9.*"]
    state, rocky = parse_packages(lines), os_release("rocky-9")
    assert planned(state, ("kernel=5.14.0-1.el9",), os=rocky) == ([], "")
    changes, script = planned(state, ("kernel=5.14.0-2.el9",), os=rocky)
    assert changes == [("kernel", "5.14.0-2.el9, not held", "5.14.0-2.el9, held", False)]
    assert "versionlock add kernel-5.14.0-2.el9 " in script
    changes, script = planned(state, ("kernel=5.14.0-3.el9",), os=rocky)
    assert [change[2] for change in changes] == ["5.14.0-3.el9, held"]
    assert "install kernel-5.14.0-3.el9\n" in script


def test_an_epoch_may_be_left_out(planned):
    state = PackageState(installed={"a": "3:610-1.el9"}, held={"a"})
    assert planned(state, ("a=610-1.el9",), os=os_release("rocky-9")) == ([], "")


def test_only_exact_versions_are_held(tmp_path):
    run = LocalRun(make_cluster(make_node("node1", 21)), tmp_path)
    said = run.plan(DEPLOY.format(packages=("a=1", "b"), hold=True))["node1"].error
    assert "only exact versions can be held, but b has none" in str(said)


def test_dnf_forgets_the_old_lock_before_it_installs_and_locks_the_new_version():
    change = PackageChange("install", {"a": "2-1.el9"}, unhold=["a"], hold={"a": "2-1.el9"})
    script = os_family("el").package_change(change)
    parts = ("versionlock delete a", "install a-2-1.el9", "versionlock add a-2-1.el9")
    where = [script.index(part) for part in parts]
    assert where == sorted(where)
    assert "python3-dnf-plugin-versionlock" in script
    subprocess.run(["sh", "-n"], input=script, text=True, check=True, timeout=240)


@pytest.mark.parametrize(
    ("lines", "held"),
    [
        (["have a 1-1 hi"], {"a"}),
        (["have a 1-1 ii"], set()),
        (["have a 1-1 hF"], {"a"}),
        (["have a 1-1.el9 ii", "lock a-0:1-1.el9.*"], {"a"}),
        (["have a 3:1-1.el9 ii", "lock a-3:1-1.el9.*"], {"a"}),
        (["have a 1-1.el9 ii", "lock a-1-1.el9"], {"a"}),
        (["have a 2-1.el9 ii", "lock a-0:1-1.el9.*"], set()),
        (["have a 1-1.el9 ii", "lock a-b-0:1-1.el9.*"], set()),
    ],
)
def test_what_counts_as_held(lines, held):
    assert parse_packages(lines).held == held


def test_the_apt_script_runs_in_order_and_stops_at_the_first_failure(tmp_path):
    said = tmp_path / "said"
    for name in ("apt-get", "apt-mark", "dpkg"):
        tool = tmp_path / name
        fails = (
            '[ "$APT_FAILS" = 1 ] && case "$*" in *install*) exit 100 ;; esac\n' if name == "apt-get" else ""
        )
        placed = f'$(ls {tmp_path} | grep -E "^(policy|no-auto)")'
        tool.write_text(f'#!/bin/sh\necho {name} "$1" {placed} >>{said}\n{fails}exit 0\n')
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    change = PackageChange(
        "install", {"a": "2"}, start_daemons=False, build_modules=False, unhold=["a"], hold={"a": "2"}
    )
    text = os_family("debian").package_change(change)
    for path in ("/run/rackwright-packages.lock", "/var/lib/apt/rackwright-index-read", POLICY, NO_MODULES):
        text = text.replace(path, str(tmp_path / path.rpartition("/")[2]))
    for fails, last in (("0", "apt-mark hold"), ("1", "apt-get -q")):
        said.write_text("")
        env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "APT_FAILS": fails}
        done = subprocess.run(["sh", "-c", text], env=env, check=False, capture_output=True, timeout=240)
        assert (done.returncode == 0) is (fails == "0"), done.stderr
        assert said.read_text().splitlines()[-1] == f"{last} no-autoinstall policy-rc.d"
        assert not [name for name in ("policy-rc.d", "no-autoinstall") if (tmp_path / name).exists()]


@pytest.mark.parametrize(
    ("earlier", "wanted", "left"),
    [(("a",), "a", []), ((), "a", ["a"]), (("a",), "a=2-1", ["a"])],
    ids=["repaired before", "not repaired", "another version"],
)
def test_what_a_repair_puts_right_before_is_not_planned_twice(planned, monkeypatch, earlier, wanted, left):
    monkeypatch.setattr("rackwright.operations.packages.pending", lambda host, targets: earlier)
    state = PackageState(broken={"a": "iF -> 1-1"}, candidates={"a": "1-1"})
    changes, _ = planned(state, (wanted,), hold=False)
    assert [target for target, *_ in changes] == left
