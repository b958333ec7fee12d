"""What counts as what, who is asked, and that nothing is lost."""

import os
import signal
import threading
import time

import pytest

from rackwright.claims.check import Check, NotInScope, Undetermined, Warned, fail
from rackwright.errors import ExitCode, RackwrightError
from rackwright.model.platforms import Capability
from rackwright.model.types import Platform
from rackwright.status import Status
from rackwright.verify import verify
from rackwright.verify.judge import Patience
from rackwright.verify.selection import LOADING, load_checks
from tests.crowd import Crowd


def raising(error):
    def function(context):
        raise error

    return function


@pytest.fixture
def ask(make_cluster, local_shell):
    """Run checks given as a mapping role -> tuple of Check; returns the report."""

    def run(checks, *, cluster=None, shell=None, **selection):
        return verify(
            cluster or make_cluster(),
            shell=shell or local_shell(),
            checks_of=lambda role: checks.get(role) or (Check("is there", lambda c: "yes"),),
            **selection,
        )

    return run


def only(report, node="w1", role="alpha"):
    (result,) = [r for r in report.results if r.node == node and r.role == role]
    return result


def plain_assert(context):
    value = context.options.value
    assert value == 99


@pytest.mark.parametrize(
    ("function", "status", "evidence"),
    [
        (lambda c: "it is", Status.PASS, "it is"),
        (lambda c: None, Status.PASS, ""),
        (lambda c: fail("it is not"), Status.FAIL, "it is not"),
        (raising(AssertionError("no")), Status.FAIL, "no"),
        (raising(Warned("nearly")), Status.WARN, "nearly"),
        (raising(Undetermined("cannot say")), Status.UNKNOWN, "cannot say"),
        (raising(NotInScope("no clock")), Status.OUT_OF_SCOPE, "no clock"),
        (raising(ValueError("odd")), Status.UNKNOWN, "ValueError: odd"),
        (raising(KeyError("x")), Status.UNKNOWN, "KeyError: 'x'"),
        (raising(RackwrightError("a sentence")), Status.UNKNOWN, "a sentence"),
        (lambda c: c.output("no-such-tool --version"), Status.UNKNOWN, "cannot run `no-such-tool`"),
        (lambda c: c.output("echo broken >&2; exit 3"), Status.UNKNOWN, "exited 3: broken"),
        (lambda c: c.json("echo nonsense"), Status.UNKNOWN, "did not print JSON"),
        (lambda c: c.host.check_output("no-such-tool"), Status.UNKNOWN, "testinfra could not find out"),
        (lambda c: c.on("nobody"), Status.UNKNOWN, "the cluster has no node nobody"),
        (lambda c: c.host.run("echo %s", "a b").stdout, Status.PASS, "a b"),
        (lambda c: str(c.host.file("/etc/passwd").exists), Status.PASS, "True"),
        (lambda c: "bad\x1b[31m\x00", Status.PASS, r"bad\x1b[31m\x00"),
    ],
)
def test_status_of_what_a_check_does(ask, function, status, evidence):
    result = only(ask({"alpha": (Check("claim", function),)}))
    assert result.status is status
    assert evidence in result.evidence


def test_plain_assert_without_message_shows_its_line(ask):
    result = only(ask({"alpha": (Check("claim", plain_assert),)}))
    assert result.status is Status.FAIL
    assert "99" in result.evidence


def test_long_evidence_is_cut_and_says_so(ask):
    result = only(ask({"alpha": (Check("claim", lambda c: "x" * 5000),)}))
    assert result.evidence.endswith("(3000 more characters)")


def test_a_command_that_hangs_is_unknown_within_the_checks_time(ask):
    start = time.monotonic()
    result = only(ask({"alpha": (Check("claim", lambda c: c.output("sleep 300"), timeout_seconds=1),)}))
    assert result.status is Status.UNKNOWN
    assert "`sleep 300` did not end within the 1 s the check has" in result.evidence
    assert time.monotonic() - start < 120


def test_a_slow_cluster_multiplies_the_checks_time(ask, make_cluster):
    cluster = make_cluster()
    slow = cluster.model_copy(update={"ssh": cluster.ssh.model_copy(update={"time_factor": 3})})
    result = only(
        ask({"alpha": (Check("claim", lambda c: c.output("sleep 300"), timeout_seconds=1),)}, cluster=slow)
    )
    assert "`sleep 300` did not end within the 3 s the check has" in result.evidence


def test_many_short_commands_share_the_checks_time(ask):
    def endless(context):
        while True:
            context.output("sleep 0.2")

    result = only(ask({"alpha": (Check("claim", endless, timeout_seconds=1),)}))
    assert result.status is Status.UNKNOWN


def test_exit_status_124_of_the_command_itself_is_an_answer(ask):
    result = only(ask({"alpha": (Check("claim", lambda c: str(c.host.run("exit 124").rc)),)}))
    assert (result.status, result.evidence) == (Status.PASS, "124")


def test_settling_asks_again_until_it_holds(ask):
    asked = []

    def third_time(context):
        asked.append(context.node.name)
        return "now" if asked.count(context.node.name) == 3 else fail("not yet")

    report = ask({"alpha": (Check("claim", third_time, settle_seconds=240),)})
    assert {r.status for r in report.results} == {Status.PASS}
    assert asked.count("w1") == 3


def test_settling_ends(ask):
    check = Check("claim", lambda c: fail("never"), settle_seconds=1)
    result = only(ask({"alpha": (check,)}))
    assert result.status is Status.FAIL
    assert result.evidence.startswith("never (still so after")
    assert result.seconds < 120


def test_settling_is_time_after_the_apply_not_after_the_check_before():
    patience = Patience(1000.0, threading.Event())
    assert patience.deadline(60, 1000.0) == 1060.0
    assert patience.deadline(60, 1100.0) == 1115.0
    assert patience.deadline(5, 1100.0) == 1105.0
    assert patience.deadline(0, 1100.0) == 1100.0


def test_a_node_that_cannot_be_reached_is_not_waited_for(ask, local_shell):
    check = Check("wide", lambda c: c.output("true", host=c.on("w2")), scope="cluster", settle_seconds=600)
    start = time.monotonic()
    result = only(ask({"alpha": (check,)}, shell=local_shell(dead=["w2"])), "head")
    assert (result.status, result.evidence) == (
        Status.UNKNOWN,
        "Cannot connect to w2: no answer within 10 s.",
    )
    assert time.monotonic() - start < 120


def test_what_the_platform_cannot_have_is_out_of_scope_and_not_run(ask, make_cluster, make_node):
    ran = []
    check = Check("clock is set", lambda c: ran.append(c.node.name), needs=frozenset({Capability.CLOCK}))
    cluster = make_cluster(
        make_node("head", 1, primary=True), make_node("metal", 2, platform=Platform.BARE_METAL)
    )
    report = ask({"alpha": (check,)}, cluster=cluster)
    assert only(report, "head").status is Status.OUT_OF_SCOPE
    assert "cannot set it" in only(report, "head").evidence
    assert only(report, "metal").status is Status.PASS
    assert ran == ["metal"]


def test_applies_decides_whether_the_claim_is_made_at_all(ask):
    check = Check("claim", lambda c: "", applies=lambda node, options: options.value == 2)
    report = ask({"alpha": (check,)})
    assert [r.node for r in report.results if r.role == "alpha"] == ["w1"]


def test_cluster_checks_run_once_on_the_primary_after_the_others_and_alone(ask, make_cluster):
    running, seen, lock = [], [], threading.Lock()

    def tracked(context):
        with lock:
            running.append(context.node.name)
        time.sleep(0.05)
        with lock:
            seen.append((context.node.name, len(running)))
            running.remove(context.node.name)

    checks = {
        "alpha": (Check("wide", tracked, scope="cluster"), Check("here", tracked)),
        "beta": (Check("wide too", tracked, scope="cluster"),),
    }
    report = ask(checks)
    assert seen[-2:] == [("head", 1), ("head", 1)]
    assert [(r.role, r.check, r.node) for r in report.results] == [
        ("alpha", "wide", "head"),
        ("alpha", "here", "head"),
        ("alpha", "here", "w1"),
        ("alpha", "here", "w2"),
        ("beta", "wide too", "head"),
    ]


def test_cluster_check_of_a_role_the_primary_does_not_hold(ask, make_cluster, make_node):
    cluster = make_cluster(make_node("head", 1, roles=(), primary=True), make_node("w1", 2))
    check = Check("wide", lambda c: f"{c.node.name} {c.options.value}", scope="cluster")
    assert only(ask({"alpha": (check,)}, cluster=cluster), "head").evidence == "head 2"


def test_cross_node_commands(ask):
    check = Check("wide", lambda c: c.output("echo there", host=c.on("w2")).strip(), scope="cluster")
    assert only(ask({"alpha": (check,)}), "head").evidence == "there"


def test_unreachable_node_is_unknown_in_every_line(ask, local_shell):
    checks = {"alpha": tuple(Check(f"claim {n}", lambda c: "yes") for n in range(20))}
    start = time.monotonic()
    report = ask(checks, shell=local_shell(dead=["w1"]))
    lost = [r for r in report.results if r.node == "w1"]
    assert len(lost) == 20
    assert {r.status for r in lost} == {Status.UNKNOWN}
    assert {r.evidence for r in lost} == {"Cannot connect to w1: no answer within 10 s."}
    assert {r.status for r in report.results if r.node != "w1"} == {Status.PASS}
    assert report.exit_code is ExitCode.UNKNOWN
    assert time.monotonic() - start < 30


def test_a_node_whose_shell_is_broken_is_unknown(ask, local_shell):
    shell = local_shell()
    whole = shell.run
    shell.run = lambda node, command, **kw: whole(node, "exit 126" if node == "w1" else command, **kw)
    assert "cannot run commands: `echo rackwright` exited 126" in only(ask({}, shell=shell)).evidence


def test_node_lost_half_way(ask, local_shell):
    shell = local_shell()

    def loses(context):
        shell.dead.add(context.node.name)
        return context.output("true")

    result = only(ask({"alpha": (Check("claim", loses),)}, shell=shell))
    assert result.status is Status.UNKNOWN
    assert "Cannot connect to w1" in result.evidence


def test_fail_wins_over_unknown(ask, local_shell):
    report = ask({"beta": (Check("claim", lambda c: fail("no")),)}, shell=local_shell(dead=["w1"]))
    assert report.status is Status.FAIL
    assert report.exit_code is ExitCode.CHECK_FAILED


def test_nothing_checked_is_unknown(ask):
    report = ask(
        {"alpha": (Check("claim", lambda c: "", applies=lambda n, o: False),)}, roles=frozenset({"alpha"})
    )
    assert report.results == ()
    assert report.exit_code is ExitCode.UNKNOWN


def test_limit_and_role(ask):
    wide = Check("wide", lambda c: "", scope="cluster")
    report = ask({"alpha": (Check("here", lambda c: ""), wide)}, limit="w[1-2]", roles=frozenset({"alpha"}))
    assert [(r.check, r.node) for r in report.results] == [("here", "w1"), ("here", "w2")]
    assert report.nodes == ("w1", "w2")
    assert report.left_out == ("alpha: wide",)


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"limit": "w[1-3]"}, "w3 is not in cluster t"),
        ({"limit": "w[1-"}, "is not a valid NodeSet"),
        ({"limit": ""}, "selects no nodes."),
        ({"roles": frozenset({"gamma"})}, "No node of cluster t has the role gamma."),
    ],
)
def test_wrong_selection(ask, selection, message):
    with pytest.raises(RackwrightError, match=r".") as caught:
        ask({}, **selection)
    assert message in caught.value.message
    assert caught.value.hint


def test_role_without_checks_is_unknown_and_the_others_go_on(make_cluster, local_shell):
    def checks_of(role):
        return (Check("claim", lambda c: ""),) if role == "alpha" else load_checks(role)

    report = verify(make_cluster(), shell=local_shell(), checks_of=checks_of)
    broken = only(report, "head", "beta")
    assert (broken.check, broken.status) == (LOADING, Status.UNKNOWN)
    assert "rackwright.roles.beta.verify cannot be loaded: ModuleNotFoundError" in broken.evidence
    assert report.counts[Status.PASS] == 3


@pytest.mark.parametrize("checks", ["[]", "()", "('x',)"])
def test_malformed_checks_are_undetermined(tmp_path, monkeypatch, checks):
    import rackwright.roles

    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "verify.py").write_text(f"CHECKS = {checks}\n")
    monkeypatch.setattr(rackwright.roles, "__path__", [str(tmp_path)])
    monkeypatch.delitem(__import__("sys").modules, "rackwright.roles.odd", raising=False)
    monkeypatch.delitem(__import__("sys").modules, "rackwright.roles.odd.verify", raising=False)
    with pytest.raises(Undetermined, match="CHECKS of"):
        load_checks("odd")


def test_nodes_are_asked_side_by_side_and_a_node_at_most_four_at_once(ask):
    crowd = Crowd(lambda crowd: crowd.most_of_all > 6 and crowd.most["w1"] >= 4)
    ask({"alpha": tuple(Check(f"claim {n}", lambda c: crowd.enter(c.node.name)) for n in range(16))})
    assert crowd.most_of_all > 6
    assert crowd.most["w1"] == 4


def test_ctrl_c_ends_at_once(ask):
    pressed = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))

    def never(context):
        if not pressed.is_alive() and not pressed.finished.is_set():
            pressed.start()
        fail("no")

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ask({"alpha": (Check("claim", never, scope="cluster", settle_seconds=600),)})
    assert time.monotonic() - start < 120
