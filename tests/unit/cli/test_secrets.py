"""rackwright secrets: every command, what it refuses, and that no value is printed."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest
from pyrage.x25519 import Identity

from rackwright.clusterfile.load import load_cluster
from rackwright.secrets.store import SecretStore
from tests.unit.clusterfile.base_file import change

VALUE = "correct-horse-battery"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "site" / "demo.yaml"
    path.parent.mkdir()
    path.write_text(change())
    return path


@pytest.fixture
def values(file: Path, rackwright):
    """All values of the store; the test fails when one of them was printed."""
    assert rackwright("secrets", "init", file).status == 0
    printed: list[str] = []

    def call(*arguments: object):
        result = rackwright("secrets", *arguments)
        printed.append(result.out + result.err)
        return result

    yield call
    content = store(file).content()
    known = {*content.secrets.values(), *content.pending.values(), *content.previous.values(), VALUE}
    assert known
    for text in printed:
        assert not [value for value in known if value[:16] in text]


def store(file: Path) -> SecretStore:
    return SecretStore(file, load_cluster(file).name)


def test_init_generates_what_the_roles_need_once(file, rackwright):
    first = rackwright("secrets", "init", file)
    assert (first.status, first.out) == (0, f"{store(file).path}: generated munge_key, slurmdbd_password\n")
    assert rackwright("secrets", "init", file).out == f"{store(file).path}: nothing was missing\n"


def test_init_makes_no_lost_store_anew_unless_asked(file, values):
    store(file).mark_applied(["munge_key"])
    store(file).path.unlink()
    refused = values("init", file)
    assert refused.status == 1
    assert "The secrets of cluster" in refused.err
    assert "--new-secrets" in refused.err
    assert values("init", file, "--new-secrets").status == 0
    assert values("list", file).out.startswith("munge_key: 20")


def test_commands_need_a_store(file, rackwright, tmp_path):
    for arguments in (
        ("list", file),
        ("show-recipients", file),
        ("backup", tmp_path / "b.age", file),
        ("rotate", "munge_key", file, "--confirm", "demo"),
        ("trust", file),
        ("add-recipient", str(Identity.generate().to_public()), file),
    ):
        result = rackwright("secrets", *arguments)
        assert (result.status, "has no secrets yet" in result.err) == (1, True), arguments


def test_put_reads_standard_input(file, values, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{VALUE}\n"))
    assert values("put", "upstream_password", file).out.endswith("upstream_password stored\n")
    assert store(file).get("upstream_password").reveal() == VALUE
    assert "upstream_password: 20" in values("list", file).out


def test_put_asks_without_echo_on_a_terminal(file, values, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("getpass.getpass", lambda prompt: VALUE)
    assert values("put", "upstream_password", file).status == 0
    assert store(file).get("upstream_password").reveal() == VALUE


@pytest.mark.parametrize(
    ("given", "why"), [("", "is empty"), ("\n", "is empty"), ("x" * 70000, "is longer than")]
)
def test_put_refuses_an_empty_and_an_endless_value(file, values, monkeypatch, given, why):
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    result = values("put", "upstream_password", file)
    assert (result.status, why in result.err) == (1, True)
    assert "upstream_password" not in store(file).content().secrets


def test_backup_and_restore(file, values, tmp_path):
    backup = tmp_path / "copy.age"
    assert values("backup", backup, file).out == f"{backup}: 2 secrets, decrypted and compared\n"
    before = store(file).content()
    assert "already exists" in values("backup", backup, file).err
    store(file).path.unlink()
    assert values("restore", backup, file).status == 0
    assert store(file).content() == before


def test_recipients(file, values):
    mate = str(Identity.generate().to_public())
    assert values("add-recipient", mate, file).status == 0
    shown = values("show-recipients", file).out
    assert shown.count("(this user)") == 1
    assert mate in shown
    store(file).put("upstream_password", VALUE)
    store(file).put("drift_notify_urls", VALUE)
    removed = values("remove-recipient", mate, file)
    assert [line.strip() for line in removed.out.splitlines()[2:]] == [
        "Rotate each of those that rackwright generates:",
        f"rackwright secrets rotate munge_key {file}",
        f"rackwright secrets rotate slurmdbd_password {file}",
        "Change the others at the services that gave them to you, store each, and apply:",
        f"rackwright drift install {file} --every TIME --notify @URLS.txt",
        f"rackwright secrets put upstream_password {file}",
    ]
    assert f"rotation is due: seen by 1 removed recipients, {mate}" in values("list", file).out
    assert mate not in values("show-recipients", file).out


def test_one_who_is_only_in_the_team_s_file_can_read_after_the_next_apply(file, values):
    mate = str(Identity.generate().to_public())
    store(file).file.recipients_path.write_text(f"{mate}\n")
    assert f"{mate} (from the next apply on)" in values("show-recipients", file).out


def test_other_secrets_are_used_only_once_trusted(file, values, tmp_path, monkeypatch):
    store(file).mark_applied(["munge_key"])
    shutil.copy(store(file).path, tmp_path / "mine.age")
    store(file).path.unlink()
    with monkeypatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path / "mate"))
        store(file).ensure(["munge_key"])
    assert "rackwright secrets trust FILE" in values("list", file).err
    assert values("trust", file).status == 0
    assert values("list", file).status == 0


@pytest.mark.parametrize("answer", ["", "other"])
def test_rotate_wants_the_cluster_s_name(file, values, monkeypatch, answer):
    before = store(file).content()
    monkeypatch.setattr("rackwright.rotation.rotate.plan", lambda cluster, **_: _nothing(cluster))
    result = values("rotate", "munge_key", file, "--confirm", answer)
    assert result.status == 2
    assert "is not the name of the cluster" in result.err
    assert "Rotation of munge_key:" in result.out
    assert "canaries and waves do not apply" in result.out
    assert store(file).content() == before


def test_rotate_asks_on_a_terminal_only(file, values, monkeypatch):
    monkeypatch.setattr("rackwright.rotation.rotate.plan", lambda cluster, **_: _nothing(cluster))
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    result = values("rotate", "munge_key", file)
    assert result.status == 1
    assert "run again with --confirm" in result.err


def _nothing(cluster):
    from rackwright.plan.node_plan import NodePlan, PlanResult

    nodes = {node.name: NodePlan(node.name) for node in cluster.nodes}
    return PlanResult(cluster.name, str(cluster.path), cluster.sha256, nodes)


def test_names_and_recipients_as_documents(file, values):
    found = json.loads(values("list", file, "--json").out)
    assert (found["kind"], found["cluster"]) == ("rackwright.secrets", load_cluster(file).name)
    assert [one["name"] for one in found["secrets"]] == ["munge_key", "slurmdbd_password"]
    assert all(one["changed"] and not one["rotation_unfinished"] for one in found["secrets"])
    other = str(Identity.generate().to_public())
    values("add-recipient", other, file)
    values("remove-recipient", other, file)
    assert [one["seen_by_removed"] for one in json.loads(values("list", file, "--json").out)["secrets"]] == [
        [other]
    ] * 2
    [own] = json.loads(values("show-recipients", file, "--json").out)["recipients"]
    assert (own["own"], own["decrypts"]) == (True, True)
