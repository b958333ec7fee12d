"""A node whose commands print anything at all, planned and applied beside an honest one: its error is its own."""

from __future__ import annotations

import getpass
import grp
import json
import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyinfra.api.command import StringCommand

from rackwright.command import CommandResult
from rackwright.factcache.answers import Answers
from rackwright.factcache.cache import ClassCache
from rackwright.plan.document import NodeDocument
from rackwright.plan.node_plan import NodeOutcome, NodePlan
from rackwright.pyinfra_driver.connector_state import LINES_MAX
from tests.factories import make_cluster, make_node
from tests.unit.answers import any_text, few, is_harmless, lines, many, memory_limit, strings_of
from tests.unit.factcache.test_replies import packed
from tests.unit.pyinfra_driver.local import LocalRun, LocalShell

WHO = f"owner={getpass.getuser()!r}, group={grp.getgrgid(os.getgid()).gr_name!r}"
HOSTILE = "worker1"
DEPLOY = f"""
from pyinfra.context import host
from rackwright.operations import files, packages, settings, sysctls, trees, units, users
FOLDER = "BELOW/" + host.name
files.directory(name="Make", path=FOLDER, {WHO})
files.file(name="Write", path=FOLDER + "/a", content="a\\n", {WHO})
files.file(name="Write a secret", path=FOLDER + "/s", content="s\\n", sensitive=True, {WHO})
files.link(name="Link", path=FOLDER + "/l", target="a")
files.absent(name="Remove", path=FOLDER + "/gone")
trees.tree(name="Lay out", path=FOLDER + "/tree", files={{"x": "1\\n"}}, {WHO})
settings.setting(name="Set", target="x", read="cat " + FOLDER + "/x", want="5", write="echo 5 >" + FOLDER + "/x")
if host.name == "worker1":
    sysctls.live(name="Tune", values={{"kernel.ostype": "Linux"}})
    units.unit(name="Run", unit="no-such.service", restart_on=("/etc",))
    users.group(name="Group", group="ada", gid=3000)
    users.user(name="User", user="ada", uid=3000, groups=("sudo",))
    packages.installed(name="Install", packages=("bash",))
    packages.absent(name="Purge", packages=("no-such-package",))
"""


@pytest.fixture(autouse=True, scope="module")
def _silent() -> Iterator[None]:
    """pytest-xdist cannot send a report whose captured log holds a lone surrogate."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class HostileShell(LocalShell):
    """One node prints what a test wants; the others are this machine."""

    said: ClassVar[Callable[[str], CommandResult]]

    def execute(self, command: StringCommand, arguments: dict[str, Any]) -> CommandResult:
        if self.host.name == HOSTILE:
            text = command if isinstance(command, str) else command.get_raw_value()
            return HostileShell.said(text)
        return super().execute(command, arguments)


def _run(folder: Path, said: Callable[[str], CommandResult]) -> LocalRun:
    HostileShell.said = said
    cluster = make_cluster(make_node("head1", 20), make_node(HOSTILE, 21))
    return LocalRun(cluster, folder, HostileShell)


def _saying(out: str, err: str = "", status: int = 0) -> Callable[[str], CommandResult]:
    return lambda command: CommandResult(command, status, out, err)


def _is_sound(found: NodePlan | NodeOutcome) -> None:
    assert is_harmless(found.error or "", "\n\t")
    for operation in found.operations:
        for text in strings_of(operation.to_json()):
            assert is_harmless(text, "\n\t")


def _planned_and_applied(folder: Path, said: Callable[[str], CommandResult]) -> LocalRun:
    """Plan and apply; the honest node gets what it always gets."""
    (folder / "head1").mkdir(exist_ok=True)
    (folder / "head1" / "a").write_text("drift\n")
    run = _run(folder, said)
    driver = run.driver(DEPLOY.replace("BELOW", str(folder)))
    driver.plan()
    assert sorted(run.reported.plans) == ["head1", HOSTILE]
    honest = run.reported.plans["head1"]
    assert (honest.error, "Write" in [one.name for one in honest.operations]) == (None, True)
    NodeDocument.model_validate_json(json.dumps(run.reported.plans[HOSTILE].to_json()))
    driver.apply([name for name, plan in run.reported.plans.items() if plan.error is None])
    assert run.reported.outcomes["head1"].ok, run.reported.outcomes["head1"].error
    assert (folder / "head1" / "a").read_text() == "a\n"
    _is_sound(run.reported.plans[HOSTILE])
    if HOSTILE in run.reported.outcomes:
        _is_sound(run.reported.outcomes[HOSTILE])
    return run


VALID = (
    "file|644|root|root|5", f"{'0' * 64}  -", "aGVsbG8=", "link|777|root|root|4", "absent", "directory|755|root|root|4096",
    "have bash 5 ii", "candidate bash 5", "LoadState=loaded", "ActiveState=active", "newest 1.5 /etc",
    "StateChangeTimestamp=Fri 2026-11-20 19:50:11.123456 UTC", "ada:x:3000:3000::/home/ada:/bin/bash", "ada", "ada sudo",
    "kernel.ostype=Linux", "5",
)  # fmt: skip
SAID = st.tuples(
    st.one_of(lines(*VALID).map("\n".join), any_text()),
    any_text(),
    st.sampled_from((0, 0, 0, 1, 124, 125, 127, -9)),
)


def _fuzzed(case: tuple[str, str, int]) -> None:
    out, err, status = case
    with tempfile.TemporaryDirectory() as folder, memory_limit():
        _planned_and_applied(Path(folder), _saying(out, err, status))


@settings(few, max_examples=20)
@given(SAID)
def test_whatever_a_node_prints_the_other_is_planned_and_applied(case: tuple[str, str, int]) -> None:
    _fuzzed(case)


@pytest.mark.proof
@settings(many, max_examples=500)  # 0.1 s each: the honest node runs real commands
@given(SAID)
def test_whatever_a_node_prints_the_other_is_planned_and_applied_often(case: tuple[str, str, int]) -> None:
    _fuzzed(case)


def _alone(folder: Path, case: tuple[str, str, int]) -> None:
    """The hostile node alone, which runs no command: plan, then apply."""
    HostileShell.said = _saying(*case)
    run = LocalRun(make_cluster(make_node(HOSTILE, 21)), folder, HostileShell)
    driver = run.driver(DEPLOY.replace("BELOW", "/nowhere"))
    driver.plan()
    plan = run.reported.plans[HOSTILE]
    _is_sound(plan)
    NodeDocument.model_validate_json(json.dumps(plan.to_json()))
    if plan.error is None:
        driver.apply([HOSTILE])
        _is_sound(run.reported.outcomes[HOSTILE])


@settings(few, max_examples=100)
@given(SAID)
def test_whatever_a_node_prints_has_a_plan_and_an_outcome(case: tuple[str, str, int]) -> None:
    with tempfile.TemporaryDirectory() as folder, memory_limit():
        _alone(Path(folder), case)


@pytest.mark.proof
@many
@given(SAID)
def test_whatever_a_node_prints_has_a_plan_and_an_outcome_ten_thousand_times(
    case: tuple[str, str, int],
) -> None:
    with tempfile.TemporaryDirectory() as folder, memory_limit():
        _alone(Path(folder), case)


def test_an_answer_that_a_fact_cannot_read_names_the_fact(tmp_path: Path) -> None:
    run = _planned_and_applied(tmp_path, _saying("file|644|root\x1b[2J"))
    error = run.reported.plans[HOSTILE].error or ""
    assert error.startswith(
        "its answer is invalid: ValueError: not enough values to unpack (expected 5, got 3)"
    )
    assert re.search(r"\(rackwright/facts/files\.py:\d+\)$", error)


def test_more_lines_than_pyinfra_could_hold_are_refused(tmp_path: Path) -> None:
    for end in ("\n", "\r", "\u2028"):
        run = _planned_and_applied(tmp_path, _saying(end * (LINES_MAX + 1)))
        assert run.reported.plans[HOSTILE].error == "its answer is invalid: it has more than 200000 lines"


def test_of_a_failed_command_pyinfra_gets_the_end(tmp_path: Path) -> None:
    """It logs every line of it: 16 MiB from each of a hundred questions would fill this machine's disk."""
    lengths: list[int] = []
    from rackwright.pyinfra_driver import connector_state

    output = connector_state._output
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            connector_state,
            "_output",
            lambda answer: lengths.append(len(answer.stdout) + len(answer.stderr)) or output(answer),
        )
        run = _planned_and_applied(tmp_path, _saying("x" * (1 << 20), "y\n" * (1 << 20) + "the end", 1))
    assert "    the end" in (run.reported.plans[HOSTILE].error or "")
    assert max(lengths) <= 2 * 100 * 1001


def test_garbage_in_the_middle_of_an_apply_is_that_node_s_own_failure(tmp_path: Path) -> None:
    """The answers up to the next change are fetched again while applying: a node may turn hostile then."""
    run = LocalRun(make_cluster(make_node("node1", 21)), tmp_path)
    deploy = "from rackwright.operations import files\n" + "\n".join(
        f"files.file(name='Write {number}', path='{tmp_path}/f{number}', content='{number}\\n', {WHO})"
        for number in range(6)
    )
    run.apply(deploy, ClassCache(tmp_path / "cache", "class", "k"))
    (tmp_path / "f5").write_text("drift")
    asked: list[bytes] = []

    def ask(command: str, stdin: bytes) -> CommandResult:
        asked.append(stdin)
        return CommandResult(command, 0, packed("[[]"), "")

    driver = run.driver(deploy, ClassCache(tmp_path / "cache", "class", "k"))
    driver._opened = {}
    host = driver._state.inventory.get_host("node1")
    host.connector.answers = Answers(ask)
    driver.plan()
    driver.apply(["node1"])
    outcome = run.reported.outcomes["node1"]
    assert len(asked) == 1
    assert (outcome.ok, outcome.unreachable) == (False, False)
    assert (
        outcome.error
        == "Write 0: its answer is invalid: it is not valid JSON: Expecting ',' delimiter: line 1 column 4 (char 3)"
    )
