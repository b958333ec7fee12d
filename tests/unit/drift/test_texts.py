"""What lands on machines, whole."""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
from pathlib import Path

import paramiko
import pytest

from rackwright.drift import texts
from rackwright.drift.declaration import Declaration, read_declaration, seconds_of, write_declaration
from rackwright.drift.program import program
from rackwright.errors import RackwrightError
from rackwright.node_programs import DRIFT_CHECK, sources
from rackwright.secrets.store import Secret, SecretStore
from tests.factories import make_cluster

EXPECTED = Path(__file__).parent / "expected"
CLUSTER = make_cluster()
DECLARED = Declaration(every_seconds=1800, python="/opt/rackwright/bin/python3")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("node.service", texts.node_service(DECLARED)),
        ("node.timer", texts.node_timer(DECLARED)),
        ("check.service", texts.check_service(CLUSTER, DECLARED)),
        ("check.timer", texts.check_timer(CLUSTER, DECLARED)),
        ("sudoers", texts.sudoers()),
        ("authorized_keys", texts.authorized_keys(CLUSTER, "ssh-ed25519 AAAA")),
    ],
)
def test_every_file_whole(name: str, text: str):
    assert text == (EXPECTED / name).read_text()


@pytest.mark.parametrize(
    ("text", "seconds", "calendar", "delay"),
    [
        ("1m", 60, "*-*-* *:00/1:00", 15),
        ("30m", 1800, "*-*-* *:00/30:00", 450),
        ("60m", 3600, "*-*-* 00/1:00:00", 900),
        ("2h", 7200, "*-*-* 00/2:00:00", 900),
        ("1d", 86400, "*-*-* 00:00:00", 900),
    ],
)
def test_intervals(text: str, seconds: int, calendar: str, delay: int):
    declared = Declaration(every_seconds=seconds_of(text))
    assert (declared.every_seconds, declared.calendar, declared.delay_seconds) == (seconds, calendar, delay)


@pytest.mark.parametrize("text", ["7m", "45m", "5h", "2d", "0m", "", "30", "1.5h", "-5m", "90m"])
def test_intervals_no_calendar_repeats_evenly_are_refused(text: str):
    with pytest.raises(RackwrightError, match="does not divide an hour or a day evenly"):
        seconds_of(text)


def test_the_declaration_survives_its_file(tmp_path: Path):
    file = tmp_path / "site.yaml"
    assert read_declaration(file) is None
    write_declaration(file, DECLARED)
    assert read_declaration(file) == DECLARED
    assert (tmp_path / "site.drift.json").stat().st_mode & 0o777 == 0o644
    (tmp_path / "linked.drift.json").symlink_to("site.drift.json")
    write_declaration(tmp_path / "linked.yaml", DECLARED.model_copy(update={"every_seconds": 3600}))
    assert (tmp_path / "linked.drift.json").is_symlink()
    assert read_declaration(file) == read_declaration(tmp_path / "linked.yaml") != DECLARED
    (tmp_path / "site.drift.json").write_text('{"every_seconds": 1800, "mode": "sideways"}')
    with pytest.raises(RackwrightError, match=r"site\.drift\.json is not a valid drift declaration"):
        read_declaration(file)


def test_the_key_is_a_secret_whose_public_half_is_placed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    SecretStore(tmp_path / "site.yaml", "site").ensure(["drift_ssh_key"])
    private = SecretStore(tmp_path / "site.yaml", "site").get("drift_ssh_key")
    again = SecretStore(tmp_path / "site.yaml", "site").get("drift_ssh_key")
    assert texts.public_key(private) == texts.public_key(again)
    key = paramiko.Ed25519Key(file_obj=io.StringIO(private.reveal()))
    assert texts.public_key(private) == f"ssh-ed25519 {key.get_base64()}"


def test_a_secret_from_outside_is_kept_and_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    store = SecretStore(tmp_path / "site.yaml", "site")
    store.ensure(["some_password"])
    password = store.get("some_password")
    for value in ("one", "two"):
        store.put("drift_notify_urls", value)
        assert SecretStore(tmp_path / "site.yaml", "site").get("drift_notify_urls") == Secret(
            "drift_notify_urls", value
        )
    assert SecretStore(tmp_path / "site.yaml", "site").get("some_password") == password
    assert b"two" not in (tmp_path / "site.secrets.age").read_bytes()


def test_the_program_is_one_file_for_python_3_9():
    ast.parse(program(), feature_version=(3, 9))
    assert program().startswith("#!/usr/bin/python3 -I\n")
    assert sources(DRIFT_CHECK).keys() >= {"rackwright.factcache.helper", "rackwright.factcache.helper_base"}


@pytest.fixture
def node(tmp_path: Path):
    """The program with its folders below tmp_path; called with arguments, its outcome comes back."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "lib").mkdir()
    text = program().replace('"/etc/rackwright-drift"', repr(str(tmp_path / "etc")))
    path = tmp_path / "rackwright-drift"
    path.write_text(text.replace('"/var/lib/rackwright-drift"', repr(str(tmp_path / "lib"))))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", str(path), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=240, check=False, stdin=subprocess.DEVNULL
        )

    return run


def _questions(tmp_path: Path) -> None:
    watched = tmp_path / "watched"
    watched.write_text("secret content\n")
    questions = [
        {"kind": "path", "path": str(watched), "digest_only": False, "command": "exit 9"},
        {"kind": "shell", "command": f"echo token-in-command; cat {watched}"},
    ]
    askers = ["base | Write it", "base | Set it"]
    asked = {"cluster": "c", "node": "n", "questions": questions, "askers": askers}
    (tmp_path / "etc" / "questions.json").write_text(json.dumps(asked))


def _adopt(node, tmp_path: Path) -> str:
    """The digest as the engine would have it."""
    loader = (
        "import importlib.machinery as m, json, sys; "
        f"p = m.SourceFileLoader('p', {str(tmp_path / 'rackwright-drift')!r}).load_module(); "
        f"print(p.ask(json.load(open({str(tmp_path / 'etc' / 'questions.json')!r}))['questions'])[0])"
    )
    digest = subprocess.run(
        [sys.executable, "-B", "-W", "ignore", "-c", loader], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert node("--adopt", digest).returncode == 0
    return digest


def test_a_node_knows_nothing_before_it_is_told(node, tmp_path: Path):
    assert json.loads(node().stdout)["state"] == "unknown"
    _questions(tmp_path)
    assert json.loads(node().stdout)["reason"] == "this node has no expected answers yet"
    refused = node("--adopt", "0" * 64)
    assert refused.returncode == 1
    assert "changed since it was found in sync" in refused.stderr


def test_a_node_tells_what_changed_and_never_what_is_there(node, tmp_path: Path):
    _questions(tmp_path)
    digest = _adopt(node, tmp_path)
    in_sync = {"state": "in sync", "changed": [], "count": 0, "operations": {"base": 0}, "expected": digest}
    assert json.loads(node().stdout) == in_sync
    (tmp_path / "watched").write_text("other content\n")
    said = node().stdout
    found = json.loads(said)
    assert (found["state"], found["count"], found["expected"]) == ("drifted", 2, digest)
    assert found["operations"] == {"base": 2}
    assert found["changed"][0] == f"path {tmp_path / 'watched'}"
    assert found["changed"][1].startswith("setting ")
    assert "content" not in said
    assert "token" not in said


def test_new_questions_want_new_expectations(node, tmp_path: Path):
    _questions(tmp_path)
    _adopt(node, tmp_path)
    text = (tmp_path / "etc" / "questions.json").read_text()
    (tmp_path / "etc" / "questions.json").write_text(text.replace("exit 9", "exit 8"))
    assert "newer than the expected answers" in json.loads(node().stdout)["reason"]


def test_a_node_writes_its_own_metrics(node, tmp_path: Path):
    _questions(tmp_path)
    _adopt(node, tmp_path)
    assert node("--metrics").stdout == "in sync\n"
    first = (tmp_path / "lib" / "rackwright_drift.prom").read_text()
    assert 'rackwright_drift_drifted{cluster="c",node="n"} 0\n' in first
    assert 'rackwright_drift_operations{cluster="c",node="n",role="base"} 0\n' in first
    (tmp_path / "watched").unlink()
    assert node("--metrics").stdout.startswith(f"drifted\npath {tmp_path / 'watched'}\n")
    second = (tmp_path / "lib" / "rackwright_drift.prom").read_text()
    assert 'rackwright_drift_drifted{cluster="c",node="n"} 1\n' in second
    assert 'rackwright_drift_operations{cluster="c",node="n",role="base"} 2\n' in second
    stamp = "rackwright_drift_last_in_sync_timestamp_seconds{"
    assert first.partition(stamp)[2].split("\n")[0] == second.partition(stamp)[2].split("\n")[0]


@pytest.mark.parametrize("arguments", [["--adopt"], ["x"], ["--metrics", "x"], ["--help"]])
def test_other_arguments_are_refused(node, arguments: list[str]):
    assert node(*arguments).returncode == 1
