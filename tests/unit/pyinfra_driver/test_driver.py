"""The pitfalls of pyinfra's driver side (named P1 to P9 in docs/pyinfra.md): none of them happens here."""

from __future__ import annotations

import getpass
import grp
import os
import re
from collections import Counter

import pytest

from tests.unit.pyinfra_driver.local import LocalShell

WHO = f"owner={getpass.getuser()!r}, group={grp.getgrgid(os.getgid()).gr_name!r}"


def _three_files(folder):
    return "from rackwright.operations import files\nfrom pyinfra.context import host\n" + "\n".join(
        f"files.file(name='Write {n}', path='{folder}/' + host.name + '.{n}', content='{n}\\n', {WHO})"
        for n in "abc"
    )


def test_a_plan_names_every_change_and_changes_nothing(run, tmp_path):
    plans = run.plan(_three_files(tmp_path))
    assert sorted(plans) == ["head1", "worker1", "worker2"]
    for name, plan in plans.items():
        assert [operation.name for operation in plan.operations] == ["Write a", "Write b", "Write c"]
        assert [operation.changes[0].target for operation in plan.operations] == [
            f"{tmp_path}/{name}.{letter}" for letter in "abc"
        ]
    assert not [path for path in tmp_path.iterdir() if path.suffix in (".a", ".b", ".c")]


def test_a_second_apply_is_empty(run, tmp_path):
    first = run.apply(_three_files(tmp_path))
    assert Counter(outcome.changed for outcome in first.values()) == {3: 3}
    assert all(plan.changes == 0 for plan in run.plan(_three_files(tmp_path)).values())
    assert all(outcome.changed == 0 for outcome in run.apply(_three_files(tmp_path)).values())


@pytest.mark.parametrize("problem", [ConnectionResetError("gone"), EOFError("gone"), RuntimeError("gone")])
def test_p1_a_node_lost_between_operations_is_its_own_affair(run, tmp_path, problem):
    seen = Counter()

    def lose_worker1(host, command):
        seen[host] += 1
        if host == "worker1" and "base64 -d" in command and f"{host}.b" in command:
            raise problem

    driver = run.driver(_three_files(tmp_path))
    driver.plan()
    LocalShell.before = lose_worker1
    driver.apply(["head1", "worker1", "worker2"])
    outcomes = run.reported.outcomes
    assert outcomes["head1"].ok
    assert outcomes["worker2"].ok
    assert not outcomes["worker1"].ok
    assert outcomes["worker1"].changed == 1
    assert "gone" in outcomes["worker1"].error
    assert outcomes["worker1"].unreachable is isinstance(problem, ConnectionResetError)


def test_p1_a_node_lost_while_planning_has_no_plan_and_the_others_have(run, tmp_path):
    def lose_worker1(host, command):
        if host == "worker1" and f"{host}.b" in command:
            raise ConnectionResetError("cable pulled")

    LocalShell.before = lose_worker1
    plans = run.plan(_three_files(tmp_path))
    LocalShell.before = lose_worker1
    assert plans["head1"].changes == plans["worker2"].changes == 3
    assert (plans["worker1"].error, plans["worker1"].unreachable) == ("cable pulled", True)
    assert plans["worker1"].operations == ()


def test_p4_hosts_with_different_roles_share_neither_names_nor_arguments(run, tmp_path):
    deploy = f"""
from rackwright.operations import files
from pyinfra.context import host
if host.name == "head1":
    files.file(name="Write the head's", path="{tmp_path}/h", content="h\\n", {WHO}, _serial=True)
else:
    files.file(name="Write the worker's", path="{tmp_path}/" + host.name, content="w\\n", {WHO})
files.file(name="Write the last", path="{tmp_path}/last-" + host.name, content="l\\n", {WHO})
"""
    plans = run.plan(deploy)
    names = {name: [operation.name for operation in plan.operations] for name, plan in plans.items()}
    assert names == {
        "head1": ["Write the head's", "Write the last"],
        "worker1": ["Write the worker's", "Write the last"],
        "worker2": ["Write the worker's", "Write the last"],
    }
    assert [plan.error for plan in plans.values()] == [None] * 3


def test_p5_a_changed_source_is_seen_by_the_next_run_of_the_same_process(one, tmp_path):
    deploy = f"from rackwright.operations import files\nfiles.file(name='W', path='{tmp_path}/x', content=%r, {WHO})"
    assert one.apply(deploy % "one\n")["node1"].changed == 1
    assert one.apply(deploy % "two\n")["node1"].changed == 1
    assert (tmp_path / "x").read_text() == "two\n"


def test_p8_when_every_host_fails_every_host_is_reported(run, tmp_path):
    deploy = """
from rackwright.operations import settings
settings.setting(name='Break', target='x', read='echo a', want='b', write='echo boom >&2; exit 3')
"""
    outcomes = run.apply(deploy)
    assert len(outcomes) == 3
    for outcome in outcomes.values():
        assert not outcome.ok
        assert outcome.error == "Break: `echo boom >&2; exit 3` exited 3 with the output:\n    boom"


def test_a_deploy_that_raises_on_one_host_fails_that_host_alone(run, tmp_path):
    deploy = _three_files(tmp_path) + "\nif host.name == 'worker2': raise ValueError('no such option')"
    plans = run.plan(deploy)
    assert re.fullmatch(r"ValueError: no such option \(.*/deploy_under_test.py:\d+\)", plans["worker2"].error)
    assert plans["head1"].changes == plans["worker1"].changes == 3


def test_an_operation_failing_stops_its_host_there(run, tmp_path):
    deploy = f"""
from rackwright.operations import files, settings
from pyinfra.context import host
files.file(name="Write a", path="{tmp_path}/a-" + host.name, content="a\\n", {WHO})
settings.setting(name="Check", target="x", read="echo " + host.name, want=host.name if host.name != "worker1" else "?",
    write="exit 9")
files.file(name="Write b", path="{tmp_path}/b-" + host.name, content="b\\n", {WHO})
"""
    outcomes = run.apply(deploy)
    assert [name for name, outcome in outcomes.items() if not outcome.ok] == ["worker1"]
    assert (tmp_path / "a-worker1").exists()
    assert not (tmp_path / "b-worker1").exists()
    assert (tmp_path / "b-worker2").exists()


def test_changes_ahead_are_known_to_later_operations_and_not_to_earlier_ones(one, tmp_path):
    deploy = f"""
from pyinfra.context import host
from rackwright.plan.changes import pending
from rackwright.operations import files, settings
def ask(): return ",".join(pending(host._get_module() if hasattr(host, "_get_module") else host, ("{tmp_path}/etc",)))
settings.setting(name="Before", target="before", read="echo x", want="saw:" + ask(), write=":")
files.directory(name="Make", path="{tmp_path}/etc", owner={getpass.getuser()!r}, group={grp.getgrgid(os.getgid()).gr_name!r})
settings.setting(name="After", target="after", read="echo x", want="saw:" + ask(), write=":")
"""
    plan = one.plan(deploy)["node1"]
    assert plan.error is None
    wants = {operation.name: operation.changes[0].after for operation in plan.operations}
    assert wants == {"Before": "saw:", "Make": wants["Make"], "After": f"saw:{tmp_path}/etc"}


def test_a_mode_is_nothing_to_read_again_and_a_removal_is(one, tmp_path):
    (tmp_path / "moded").write_text("text\n")
    (tmp_path / "moded").chmod(0o600)
    (tmp_path / "gone").write_text("text\n")
    deploy = f"""
from pyinfra.context import host
from rackwright.plan.changes import pending, removed
from rackwright.operations import files, settings
def ask(of): return ",".join(of(host._get_module() if hasattr(host, "_get_module") else host, WATCHED))
WATCHED = ("{tmp_path}/moded", "{tmp_path}/gone")
files.file(name="Change the mode", path=WATCHED[0], content="text\\n", {WHO})
files.absent(name="Remove", path=WATCHED[1])
settings.setting(name="After", target="after", read="echo x", want=ask(pending) + " " + ask(removed), write=":")
"""
    plan = one.plan(deploy)["node1"]
    assert plan.error is None
    assert [operation.name for operation in plan.operations] == ["Change the mode", "Remove", "After"]
    assert plan.operations[2].changes[0].after == f"{tmp_path}/gone {tmp_path}/gone"
