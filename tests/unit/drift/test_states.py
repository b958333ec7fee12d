"""Changes of state: reported once, with history, without secrets; metrics; what a reply means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackwright.drift import check
from rackwright.drift.check import judge
from rackwright.drift.notify import message, read_urls, send
from rackwright.drift.prometheus import plan_metrics, push_metrics
from rackwright.drift.report import LastInSync
from rackwright.drift.states import Found, State, advanced, history_text, read_history, reported, unreported
from rackwright.errors import RackwrightError
from rackwright.plan.node_plan import NodePlan, PlannedOperation, PlanResult
from tests.factories import make_cluster

SYNC = Found(State.IN_SYNC)
DRIFT = Found(State.DRIFTED, ("path /etc/hosts",), 1, {"base": 1, "time": 0})
GONE = Found(State.UNREACHABLE, ("Cannot connect to n2",))


def test_one_change_per_change_of_state():
    history, seen = {}, []
    for now, found in enumerate([SYNC, SYNC, DRIFT, DRIFT, GONE, DRIFT, SYNC, SYNC]):
        history = advanced(history, {"n1": found}, now)
        seen.append([(change.before, change.found.state) for change in unreported(history, {"n1": found})])
        history = reported(history)
    assert seen == [
        [],
        [],
        [("in sync", "drifted")],
        [],
        [("drifted", "unreachable")],
        [("unreachable", "drifted")],
        [("drifted", "in sync")],
        [],
    ]


def test_a_node_first_seen_drifted_is_reported_and_one_first_seen_in_sync_is_not():
    found = {"n1": SYNC, "n2": DRIFT}
    assert [change.node for change in unreported(advanced({}, found, 1), found)] == ["n2"]


def test_history_keeps_since_when_and_last_in_sync_and_survives_its_file(tmp_path: Path):
    history = {}
    for now, found in ((10, SYNC), (20, SYNC), (30, DRIFT), (40, DRIFT)):
        history = advanced(history, {"n1": found}, now)
    assert (history["n1"].since, history["n1"].last_in_sync) == (30, 20)
    path = tmp_path / "state.json"
    path.write_text(history_text(history))
    assert read_history(path) == history
    path.write_text(history_text(history).replace('"reported"', '"told"'))  # as it was written until 0.1
    assert read_history(path) == history
    path.write_text('{"nodes": {"n1": {"state": "odd"')
    assert read_history(path) == {}
    assert advanced(history, {"n2": SYNC}, 50).keys() == {"n2"}


def test_a_notification_that_failed_is_sent_again_and_one_that_a_url_took_is_not(
    monkeypatch: pytest.MonkeyPatch,
):
    cluster, found = make_cluster(), {"head1": DRIFT}
    sent = []

    def failing(urls, title, body):
        sent.append(title)
        return [f"notification {place}" for place, url in enumerate(urls, 1) if url == "bad"]

    monkeypatch.setattr(check, "send", failing)
    history = advanced({}, found, 1)
    failed, kept = check._notify(cluster, found, history, ["bad"])
    assert (failed, kept["head1"].reported) == (["notification 1"], State.IN_SYNC)
    failed, kept = check._notify(cluster, found, kept, ["bad", "good"])
    assert (failed, kept["head1"].reported) == (["notification 1"], State.DRIFTED)
    assert check._notify(cluster, found, kept, ["good"]) == ([], kept)
    assert len(sent) == 2


def test_the_notification_groups_nodes_and_names_no_content():
    found = {"n1": DRIFT, "n2": DRIFT, "n3": GONE, "n4": SYNC}
    history = advanced({}, found, 1)
    title, body = message("lab", unreported(history, found), history)
    assert title == "lab: 1 in sync, 2 drifted, 1 unreachable"
    assert body == (
        "n[1-2]: in sync -> drifted: path /etc/hosts\n"
        "n3: in sync -> unreachable: Cannot connect to n2\n"
        "\nFor details: rackwright drift FILE"
    )


def test_metrics_whole():
    found = {"n1": SYNC, "n2": DRIFT}
    history = advanced(advanced({}, {"n1": SYNC, "n2": SYNC}, 5), found, 9)
    assert (
        push_metrics("lab", found, history, 0.25, 9)
        == (Path(__file__).parent / "expected" / "metrics").read_text()
    )


def test_metrics_of_a_plan_whole():
    change = PlannedOperation("base", "Write /etc/hosts", (), ())
    nodes = [NodePlan("n1"), NodePlan("n2", (change, change)), NodePlan("n3", error="gone", unreachable=True)]
    plan = PlanResult("lab", "lab.yaml", "", {node.node: node for node in nodes})
    last_in_sync = LastInSync({"n2": 5.4}).updated(plan, 9.6)
    expected = (Path(__file__).parent / "expected" / "plan_metrics").read_text()
    assert plan_metrics(plan, 0.25, last_in_sync, 9.6) == expected


@pytest.mark.parametrize(
    ("reply", "state"),
    [
        ({"state": "in sync", "changed": [], "count": 0, "expected": "d"}, State.IN_SYNC),
        ({"state": "drifted", "changed": ["path /x"], "count": 1, "expected": "d"}, State.DRIFTED),
        ({"state": "in sync", "changed": [], "count": 0, "expected": "other"}, State.UNKNOWN),
        ({"state": "in sync", "changed": [], "count": 0, "expected": None}, State.UNKNOWN),
        ({"state": "unknown", "changed": [], "reason": "busy", "expected": None}, State.UNKNOWN),
        ({"state": "fine", "changed": [], "expected": "d"}, State.UNKNOWN),
        ({"state": "in sync"}, State.UNKNOWN),
        ([], State.UNKNOWN),
        ("Last login: today", State.UNKNOWN),
    ],
)
def test_what_a_reply_means(reply: object, state: State):
    text = reply if isinstance(reply, str) else json.dumps(reply)
    assert judge(text, "d").state is state


def test_a_node_without_expectations_is_unknown_not_in_sync():
    reply = {"state": "in sync", "changed": [], "count": 0, "expected": "d"}
    assert judge(json.dumps(reply), None).state is State.UNKNOWN


def test_only_roles_of_the_node_are_counted():
    said = {"state": "drifted", "changed": ["path /x"], "count": 1, "expected": "d"}
    reply = json.dumps({**said, "operations": {"base": 2, "time": 0, 'x"} 1': 5}})
    assert judge(reply, "d", ("base", "time", "slurm")).operations == {"base": 2, "time": 0}
    assert judge(json.dumps(said), "d", ("base",)).operations == {}
    assert judge(json.dumps({**said, "operations": {"base": "x"}}), "d", ("base",)).state is State.UNKNOWN


def test_a_long_reply_is_cut():
    changed = [f"path /{number}" for number in range(40)]
    found = judge(json.dumps({"state": "drifted", "changed": changed, "count": 40, "expected": "d"}), "d")
    assert found.detail[-1] == "and 30 more"
    assert len(found.detail) == 11


@pytest.mark.parametrize(
    "url",
    [
        "slack://TokenA/TokenB/TokenC",
        "https://hooks.slack.com/services/T0/B0/abc",
        "mailto://me:hunter2@example.com",
        "json://me:hunter2@example.com",
        "json://example.com/hook?token=hunter2",
        "discord://id/hunter2",
    ],
)
def test_a_credential_is_not_taken_from_the_command_line_nor_repeated(url: str, tmp_path: Path):
    with pytest.raises(RackwrightError, match="may contain credentials") as refused:
        read_urls([url])
    assert "hunter2" not in f"{refused.value.message} {refused.value.hint}"
    path = tmp_path / "urls"
    path.write_text(f"{url}\n")
    path.chmod(0o644)
    with pytest.raises(RackwrightError, match="Other users can read"):
        read_urls([f"@{path}"])


def test_urls_from_a_private_file(tmp_path: Path):
    path = tmp_path / "urls"
    path.write_text("json://me:hunter2@example.com\nmailto://me:hunter2@example.com\n")
    path.chmod(0o600)
    assert len(read_urls([f"@{path}", "json://127.0.0.1:80/hook"])) == 3
    path.write_text("nonsense://hunter2\n")
    with pytest.raises(
        RackwrightError, match=r"does not understand notification URL 1 \(nonsense\)"
    ) as refused:
        read_urls([f"@{path}"])
    assert "hunter2" not in str(refused.value)


def test_what_could_not_be_sent_is_named_without_its_url(caplog: pytest.LogCaptureFixture, capfd):
    failed = send(["json://me:hunter2@127.0.0.1:9/hook"], "title", "body")
    assert failed == ["notification 1 (json)"]
    assert "hunter2" not in caplog.text + "".join(capfd.readouterr())
