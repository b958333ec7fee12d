"""A rotation that is interrupted anywhere leaves one key in use until the switch, and the next one finishes it."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from rackwright.engine.head_lock import HeadLock
from rackwright.engine.journal import runs
from rackwright.engine.new_secrets import refuse_unfinished_rotation
from rackwright.errors import RunFailed, RunLocked, SecretsError
from rackwright.model.options import RoleOptions
from rackwright.roles.site_ca.options import SiteCaOptions
from rackwright.rotation import rotate as rotation
from rackwright.rotation import stored
from rackwright.rotation.rotate import Rotation, rotate
from rackwright.secrets.store import SecretStore
from tests.unit.rotation.conftest import SECRET, KeyOptions, Killed, Rack

WRITES = ("begin", "commit", "finish")


def agreed(_: Rotation) -> bool:
    return True


def again(rack: Rack) -> None:
    """The next run, begun when the head has noticed the end of the last one: on a busy machine that takes a moment."""
    rack.heads.end()
    rotate(rack.cluster, SECRET, agree=agreed)


def assert_done(rack: Rack, before: bytes) -> None:
    """Every node's file and daemon have the store's key, which is a new one; nothing is left behind."""
    now = rack.stored()
    assert now != before
    assert rack.held("key") == rack.held("running") == [now] * len(rack.cluster.nodes)
    assert rack.staged() == []
    content = rack.store().content()
    assert content.pending == content.previous == {}
    refuse_unfinished_rotation(rack.cluster)


def test_all_nodes_get_the_new_key(rack: Rack):
    before = rack.stored()
    done = rotate(rack.cluster, SECRET, agree=agreed)
    assert done is not None
    assert_done(rack, before)
    modes = {(rack.folder / node.name / "key").stat().st_mode & 0o777 for node in rack.cluster.nodes}
    assert modes == {0o400}


def test_every_key_is_staged_before_the_first_is_switched(rack: Rack):
    rotate(rack.cluster, SECRET, agree=agreed)
    kinds = ["systemctl" in command for _, command in rack.ran]
    assert kinds == sorted(kinds)
    assert kinds.count(True) == kinds.count(False) == len(rack.cluster.nodes)


def test_declined_nothing_is_changed(rack: Rack):
    before, content = rack.stored(), rack.store().content()
    assert rotate(rack.cluster, SECRET, agree=lambda _: False) is None
    assert rack.store().content() == content
    assert rack.held("key") == [before] * len(rack.cluster.nodes)
    assert rack.ran == []


BOB = {
    "run": "20261123T080001Z-bbbbbb",
    "user": "bob",
    "host": "tower",
    "since": "08:01",
    "command": "rackwright apply",
}


def test_a_run_of_another_operator_refuses_it(rack: Rack):
    before = rack.stored()
    with HeadLock(rack.cluster, BOB, lost=pytest.fail), pytest.raises(RunLocked, match="bob@tower"):
        rotate(rack.cluster, SECRET, agree=agreed)
    assert rack.held("key") == [before] * len(rack.cluster.nodes)
    assert (rack.stored(), rack.ran) == (before, [])


def test_it_is_locked_while_it_is_confirmed(rack: Rack):
    refused = []

    def another_run_then_yes(_: Rotation) -> bool:
        try:
            with HeadLock(rack.cluster, BOB, lost=pytest.fail):
                pass
        except RunLocked as error:
            refused.append(error.message)
        return True

    assert rotate(rack.cluster, SECRET, agree=another_run_then_yes) is not None
    assert len(refused) == 1


def lose_the_lock(rack: Rack, others: ExitStack, *, ended: bool) -> None:
    """The process on the head is killed, and another operator's run takes the lock, and ends or goes on."""
    with rack.heads.turn:  # the run that lost it would take it again at any moment
        rack.heads.lines[0].process.kill()
        rack.heads.lines[0].process.wait(60)
        others.enter_context(HeadLock(rack.cluster, BOB, lost=pytest.fail))
        if ended:
            others.close()
            rack.heads.lines[-1].process.wait(60)


@pytest.mark.parametrize("ended", [False, True], ids=["goes on", "ended"])
@pytest.mark.parametrize("when", ["while it is confirmed", "while it is staged"])
def test_a_lock_that_was_lost_ends_it_before_the_switch(rack: Rack, when: str, ended: bool):
    before = rack.stored()
    with ExitStack() as others:

        def at_stage(_: str) -> None:
            rack.before = lambda step: None
            lose_the_lock(rack, others, ended=ended)

        def at_agree(_: Rotation) -> bool:
            if when == "while it is confirmed":
                lose_the_lock(rack, others, ended=ended)
            else:
                rack.before = at_stage
            return True

        with pytest.raises(
            RunLocked, match=r"lost the lock of cluster .*munge_key was not replaced"
        ) as caught:
            rotate(rack.cluster, SECRET, agree=at_agree)
    assert ("bob@tower" if not ended else BOB["run"]) in caught.value.message
    assert bool(rack.ran) is (when == "while it is staged")
    assert rack.stored() == before
    assert rack.held("running") == rack.held("key") == [before] * len(rack.cluster.nodes)
    again(rack)
    assert_done(rack, before)


def test_the_steps_say_that_all_nodes_change_at_once(rack: Rack):
    shown: list[Rotation] = []
    rotate(rack.cluster, SECRET, agree=lambda asked: bool(shown.append(asked)))
    (planned,) = shown
    assert planned.shared
    assert planned.plan is not None
    assert planned.plan.changes == len(rack.cluster.nodes)
    assert "canaries and waves do not apply" in planned.steps()[2]
    assert planned.limit in planned.steps()[0]


@pytest.mark.parametrize("at", range(12))
def test_killed_at_any_command_the_next_run_finishes(rack: Rack, at: int):
    before, left = rack.stored(), at

    def kill(_: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed

    rack.before = kill
    commands = 2 * len(rack.cluster.nodes)
    if at < commands:
        with pytest.raises(Killed):
            rotate(rack.cluster, SECRET, agree=agreed)
        if rack.store().content().previous:
            with pytest.raises(SecretsError, match=r"rotation of munge_key of cluster .* was interrupted"):
                refuse_unfinished_rotation(rack.cluster)
        else:
            assert rack.held("running") == rack.held("key") == [before] * len(rack.cluster.nodes)
    rack.before = lambda step: None
    if at < commands:
        again(rack)
        assert_done(rack, before)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", WRITES)
def test_killed_at_any_write_of_the_store_the_next_run_finishes(
    rack: Rack, monkeypatch: pytest.MonkeyPatch, step: str, after: bool
):
    before, real = rack.stored(), getattr(stored, step)

    def killed(store: SecretStore, name: str) -> None:
        if after:
            real(store, name)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(rotation.stored, step, killed)
        with pytest.raises(Killed):
            rotate(rack.cluster, SECRET, agree=agreed)
    finished = step == "finish" and after
    pending = rack.store().content().pending.get(SECRET)
    if not finished:
        again(rack)
        assert pending in (None, rack.store().get(SECRET).reveal()), "the same value goes on"
    assert_done(rack, before)


def test_a_node_that_fails_before_the_switch_ends_it(rack: Rack, monkeypatch: pytest.MonkeyPatch):
    before = rack.stored()
    monkeypatch.setattr(rotation, "_refuse_changes", lambda *_: None)  # it failed after the plan
    rack.silent = {"worker1"}
    with pytest.raises(
        RunFailed, match=r"Cannot write the new munge_key on worker1: .*No node uses it"
    ) as caught:
        rotate(rack.cluster, SECRET, agree=agreed)
    assert "--without worker1" in (caught.value.hint or "")
    assert rack.stored() == before
    assert rack.held("running") == [before] * len(rack.cluster.nodes)
    assert rack.staged() == []


def test_a_node_that_fails_in_the_switch_is_finished_by_the_next_run(rack: Rack):
    before = rack.stored()

    def fail(step: str) -> None:
        if step == "worker1: rest":
            rack.silent = {"worker1"}

    rack.before = fail
    with pytest.raises(
        RunFailed, match="was replaced in the store, but not on worker1: worker1 did not answer"
    ):
        rotate(rack.cluster, SECRET, agree=agreed)
    rack.before, rack.silent = lambda step: None, set()
    again(rack)
    assert_done(rack, before)


def test_a_node_that_is_down_can_be_left_out(rack: Rack, monkeypatch: pytest.MonkeyPatch):
    before = rack.stored()
    rack.silent = {"worker1"}
    with pytest.raises(RunFailed, match="cannot be rotated while nodes cannot be compared") as caught:
        rotate(rack.cluster, SECRET, agree=agreed)
    assert "--without worker1" in (caught.value.hint or "")
    without = rack.cluster.model_copy(
        update={"nodes": tuple(node for node in rack.cluster.nodes if node.name != "worker1")}
    )
    real = rack.plan
    monkeypatch.setattr(rotation, "plan", lambda cluster, **given: real(without, **given))
    rotate(rack.cluster, SECRET, without="worker1", agree=agreed)
    assert rack.stored() != before
    held = dict(zip((node.name for node in rack.cluster.nodes), rack.held("running"), strict=True))
    assert held.pop("worker1") == before
    assert set(held.values()) == {rack.stored()}


def test_other_changes_come_first(rack: Rack):
    (rack.folder / "worker1" / "key").chmod(0o600)
    (rack.folder / "worker1" / "key").write_bytes(b"x" * 64)
    with pytest.raises(
        SecretsError, match="cannot be rotated while worker1 differs from its declaration in munge"
    ):
        rotate(rack.cluster, SECRET, agree=agreed)


def test_an_unknown_secret_is_named(rack: Rack):
    with pytest.raises(SecretsError, match="has no secret jwt_key to rotate") as caught:
        rotate(rack.cluster, "jwt_key", agree=agreed)
    assert caught.value.hint == "its secrets are: munge_key"


def test_a_secret_of_no_role_is_replaced_in_the_store(rack: Rack):
    rack.store().ensure(["drift_ssh_key"])
    before = rack.store().get("drift_ssh_key")
    rotate(rack.cluster, "drift_ssh_key", agree=agreed)
    assert rack.store().get("drift_ssh_key") != before
    assert rack.ran == []
    assert rack.store().content().previous == {}


class Registry(RoleOptions):
    """A role that is given a password and generates none."""

    @property
    def supplied_secrets(self) -> tuple[str, ...]:
        return ("registry_ci",)


@pytest.mark.parametrize(
    ("name", "why", "command"),
    [
        ("registry_ci", "the site supplies it", "rackwright secrets put registry_ci {path}"),
        (
            "drift_notify_urls",
            "the site supplies it",
            "rackwright drift install {path} --every TIME --notify @",
        ),
        ("old_password", "no role of {path} generates it", "rackwright secrets put old_password {path}"),
    ],
)
def test_a_password_that_the_site_supplied_is_kept(rack: Rack, name: str, why: str, command: str):
    options = {"munge": KeyOptions(folder=rack.folder), "registry": Registry()}
    cluster = rack.cluster.model_copy(
        update={"nodes": tuple(node.model_copy(update={"options": options}) for node in rack.cluster.nodes)}
    )
    rack.store().put(name, "of the site")
    before = rack.store().content()
    with pytest.raises(SecretsError, match=rf"{name} cannot be rotated: .*Nothing was changed") as caught:
        rotate(cluster, name, agree=lambda _: pytest.fail("it was offered"))
    assert why.format(path=cluster.path) in caught.value.message
    assert command.format(path=cluster.path) in (caught.value.hint or "")
    assert rack.store().content() == before
    assert rack.ran == []


def test_the_key_of_the_site_s_ca_is_kept(rack: Rack):
    """A generated one: nodes would refuse its certificates until all of them trust it."""
    options = {"munge": KeyOptions(folder=rack.folder), "site_ca": SiteCaOptions()}
    cluster = rack.cluster.model_copy(
        update={"nodes": tuple(node.model_copy(update={"options": options}) for node in rack.cluster.nodes)}
    )
    rack.store().ensure(["site_ca_key"])
    before = rack.store().content()
    with pytest.raises(
        SecretsError, match="site_ca_key cannot be rotated: nodes reject certificates"
    ) as caught:
        rotate(cluster, "site_ca_key", agree=lambda _: pytest.fail("it was offered"))
    assert "docs/site-ca.md" in (caught.value.hint or "")
    assert rack.store().content() == before


def test_the_journal_names_the_steps_and_no_value(rack: Rack):
    before = rack.store().get(SECRET).reveal()
    rotate(rack.cluster, SECRET, agree=agreed)
    (run,) = runs(rack.cluster.name)
    assert [event["step"] for event in run.events if event["event"] == "rotation"] == [
        "stage",
        "switch",
        "switched",
    ]
    assert run.state == "finished"
    for value in (before, rack.store().get(SECRET).reveal()):
        assert value[:24] not in str(run.events)
        assert all(value[:24] not in command for _, command in rack.ran)
