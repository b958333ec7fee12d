"""What a terminal shows of reboots, and the confirmation before jobs are cancelled."""

from __future__ import annotations

import io

import pytest

from rackwright.cli import reboot_consent
from rackwright.cli.plan_view import show_outcome, show_plan
from rackwright.cli.reboot_consent import agree_to_kill
from rackwright.cli.terminal import Console
from rackwright.errors import RackwrightError
from rackwright.plan.changes import Change
from rackwright.plan.node_plan import ApplyResult, NodeOutcome, NodePlan, PlanResult
from rackwright.workload.protocol import Job
from tests.factories import make_cluster

CLUSTER = make_cluster()
DUE = (Change("reboot", "running kernel", "6.12.1", "6.12.107"),)


def _shown(show, what, **given):
    text = io.StringIO()
    show(what, Console(file=text, width=200), **given)
    return text.getvalue()


def test_a_plan_names_reboots_and_what_waits_for_them():
    nodes = {
        name: NodePlan(name, reboot=DUE, after_reboot=("persistence: Run it", "dcgm: Run it"))
        for name in ("worker1", "worker2")
    }
    nodes["head1"] = NodePlan("head1")
    assert _shown(show_plan, PlanResult("test", "c.yaml", "", nodes)) == (
        "\nworker[1-2]: reboot due: running kernel 6.12.1 -> 6.12.107\n  2 operations wait for the reboot\n"
        "\nplan: nothing to change on 3 of 3 nodes; reboot due on worker[1-2]\n"
    )


def test_an_outcome_names_reboots_that_are_still_due():
    result = ApplyResult("test", {"worker1": NodeOutcome("worker1", True, reboot=DUE)})
    assert _shown(show_outcome, result) == (
        "worker1: 0 changed in 0.0 s; reboot due: running kernel 6.12.1 -> 6.12.107\n"
        "apply: 0 of 1 nodes are as declared; reboot due on worker1\n"
    )


@pytest.fixture
def running(monkeypatch):
    jobs = {"worker1": (Job("7", "ada", "sim"),)}
    monkeypatch.setattr(reboot_consent, "jobs_on", lambda cluster, names: jobs)
    return jobs


def test_jobs_are_listed_and_the_clusters_name_is_enough(running, capsys):
    agree_to_kill(CLUSTER, ["worker1", "worker2"], "test")
    assert capsys.readouterr().err == (
        "worker1: 7 (ada, sim)\n--kill-jobs cancels every job on worker[1-2]: 1 now, and those that begin until "
        "they are drained\n"
    )


def test_any_other_text_is_refused(running):
    with pytest.raises(
        RackwrightError, match="'yes' is not the cluster's name; nothing was changed"
    ) as refused:
        agree_to_kill(CLUSTER, ["worker1"], "yes")
    assert refused.value.hint == "cancel these jobs with: --confirm test"


def test_without_a_terminal_nothing_is_taken_for_granted(running, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("test\n"))
    with pytest.raises(RackwrightError, match="standard input is not a terminal"):
        agree_to_kill(CLUSTER, ["worker1"], None)


def test_the_name_is_asked_for_on_a_terminal(running, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("typer.prompt", lambda *_, **__: "test")
    agree_to_kill(CLUSTER, ["worker1"], None)


def test_flags_about_reboots_need_reboots(tmp_path, capsys):
    from rackwright.cli import run

    assert run(["apply", str(tmp_path / "c.yaml"), "--kill-jobs"]) == 1
    assert "error: --kill-jobs is about reboots." in capsys.readouterr().err
