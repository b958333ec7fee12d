"""Push mode from the head: a key that may only ask, and one notification per change of state."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.racks.plain.drift_check import NODES, DriftCheck, drift, ship, traces
from tests.racks.program import Ran
from tests.racks.site import Site

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(  # never in CI: there it fails
        sys.version_info[:2] != (3, 11) and "CI" not in os.environ,
        reason="the head runs this Python's packages",
    ),
]

_CREDENTIAL = "hunter2secret"
_URL = f"json://user:{_CREDENTIAL}@127.0.0.1:8099/hook"
_SINK = """\
import http.server, json, sys
class Sink(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with open("/run/sink.jsonl", "a") as out:
            out.write(json.dumps([body["title"], body["message"]]) + "\\n")
        self.send_response(200); self.end_headers()
    def log_message(self, *args): pass
http.server.HTTPServer(("127.0.0.1", 8099), Sink).serve_forever()
"""
WORKER = "10.77.0.11"
_INSTALL = ("install", "--every", "30m", "--on", "head")


@pytest.fixture(scope="module")
def check_on_the_head(rack: Site) -> Iterator[DriftCheck]:
    """The check, and a web server on the head that writes down what is posted."""

    def install() -> None:
        urls = rack.folder / "urls"
        urls.touch(0o600)
        urls.write_text(f"{_URL}\n")
        drift(rack, *_INSTALL, "--notify", f"@{urls}", "--yes")
        urls.unlink()

    check = DriftCheck(rack, install, {node: traces(rack, node) for node in NODES})
    refused = drift(rack, *_INSTALL, "--yes", expect=1)
    assert "head1 has no rackwright" in refused.err
    assert "hint: install it there" in refused.err
    ship(rack)
    rack.on("head1", f"cat >/run/sink.py <<'E'\n{_SINK}E\nsystemd-run -q --unit sink python3 /run/sink.py")
    yield check
    if check.installed:
        check.uninstall()
    rack.on("head1", "systemctl stop sink; rm -rf /opt/rackwright /run/sink.jsonl")


@pytest.fixture(autouse=True)
def installed(site: Site, check_on_the_head: DriftCheck) -> DriftCheck:
    """It is installed, independent of earlier tests."""
    check_on_the_head.needed()
    return check_on_the_head


@pytest.fixture
def unit(site: Site) -> str:
    return f"rackwright-drift-{site.name}"


@pytest.fixture
def key(site: Site, tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(site.on("head1", f"cat /etc/rackwright-drift/{site.name}/key"))
    path.chmod(0o600)
    return path


def check(site: Site, unit: str) -> dict[str, str]:
    """State by node after one more round."""
    site.on(
        "head1",
        f"while [ $(systemctl show -P ActiveState {unit}.service) = activating ]; do sleep 0.1; done\n"
        f"systemctl reset-failed {unit}.service || :; systemctl start {unit}.service",
    )
    state = json.loads(site.on("head1", f"cat /var/lib/rackwright-drift/{site.name}/state.json"))
    return {name: one["state"] for name, one in state["nodes"].items()}


def reported(site: Site) -> list[list[str]]:
    return [
        json.loads(line) for line in site.on("head1", "cat /run/sink.jsonl 2>/dev/null || :").splitlines()
    ]


def ssh(site: Site, key: Path, *words: str, stdin: bytes = b"", program: str = "ssh") -> Ran:
    known = site.folder / ".lab" / "known_hosts"
    options = ("-i", str(key), "-F", "none", "-o", f"UserKnownHostsFile={known}", "-o", "BatchMode=yes")
    command = (program, *options, "-o", "IdentitiesOnly=yes", *words)
    return site.tool(*command, name=program, inside=True, stdin=stdin)


def test_a_second_install_changes_nothing_and_keeps_the_urls(site: Site):
    for _ in range(2):  # the first keeps today's answers anew, where another test has restarted a service
        ran = drift(site, *_INSTALL, "--yes")
    assert ran.out.strip() == "plan: nothing to change on 2 of 2 nodes"
    assert _CREDENTIAL in site.on("head1", f"cat /etc/rackwright-drift/{site.name}/notify.json")


def test_its_exposure_is_small(site: Site, unit: str):
    said = site.on("head1", f"systemd-analyze security --no-pager {unit}.service")
    exposure = float(said.rpartition(f"{unit}.service: ")[2].split()[0])
    print(f"{unit}.service: exposure {exposure}")
    assert exposure < 3.0


def test_the_key_asks_its_one_question(site: Site, key: Path):
    said = ssh(site, key, f"rackwright-drift@{WORKER}", "check")
    assert json.loads(said.out)["state"] == "in sync"
    lying = json.dumps({"questions": [{"kind": "shell", "command": "touch /tmp/mine"}], "expect": None})
    again = ssh(site, key, f"rackwright-drift@{WORKER}", "check", stdin=lying.encode())
    assert again.out == said.out
    assert site.on("worker1", "ls /tmp/mine 2>&1 || :").startswith("ls: cannot access")


def test_a_url_with_a_password_is_refused_on_the_command_line(site: Site):
    refused = drift(site, *_INSTALL, "--notify", _URL, "--yes", expect=1)
    assert "may contain credentials" in refused.err


@pytest.mark.parametrize(
    "command",
    [
        "", "id", "check; id", "check\nid", "sh -c id", "sudo -n id", "check --metrics", " check",
        "/usr/local/sbin/rackwright-drift", "scp -t /tmp", "/usr/lib/openssh/sftp-server", "$(id)",
    ],
)  # fmt: skip
def test_the_key_can_run_nothing_else(site: Site, key: Path, command: str):
    said = ssh(site, key, f"rackwright-drift@{WORKER}", *((command,) if command else ()))
    assert (said.status, said.out) == (1, "")
    assert "refused" in said.err


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("sftp", (f"rackwright-drift@{WORKER}",)),
        ("scp", ("/etc/hostname", f"rackwright-drift@{WORKER}:/tmp/x")),
        ("scp", ("-O", "/etc/hostname", f"rackwright-drift@{WORKER}:/tmp/x")),
        ("ssh", ("-W", "127.0.0.1:22", f"rackwright-drift@{WORKER}")),
        (
            "ssh",
            ("-o", "ExitOnForwardFailure=yes", "-N", "-R", "9999:127.0.0.1:22", f"rackwright-drift@{WORKER}"),
        ),
        ("ssh", ("-tt", f"rackwright-drift@{WORKER}", "id")),
        ("ssh", ("-s", f"rackwright-drift@{WORKER}", "sftp")),
    ],
)
def test_the_key_opens_no_other_way(site: Site, key: Path, program: str, words: tuple[str, ...]):
    said = ssh(site, key, *words, program=program, stdin=b"put /etc/hostname /tmp/x\n")
    assert said.status != 0
    assert "uid=" not in said.out
    assert site.on("worker1", "ls /tmp/x 2>&1 || :").startswith("ls: cannot access")


@pytest.mark.parametrize(
    "command",
    [
        "sudo -n id",
        "sudo -n sh",
        "sudo -n /usr/local/sbin/rackwright-drift --adopt 0",
        "sudo -n /usr/local/sbin/rackwright-drift --metrics",
        "sudo -n PYTHONPATH=/tmp /usr/local/sbin/rackwright-drift",
        "touch /var/lib/rackwright-drift/x",
        "cp /bin/sh /usr/local/sbin/rackwright-drift",
        "touch /var/lib/rackwright-drift/.ssh/authorized_keys",
        "cat /etc/rackwright-drift/questions.json",
    ],
)
def test_the_user_itself_can_do_no_more(site: Site, command: str):
    said = site.on("worker1", f"runuser -u rackwright-drift -- {command} 2>&1 && echo DONE || :")
    assert "DONE" not in said


def test_one_notification_per_change_of_state(site: Site, unit: str):
    in_sync = dict.fromkeys(NODES, "in sync")
    assert check(site, unit) == in_sync
    known = len(reported(site))
    site.on("worker1", "echo x >>/etc/hosts")
    for _ in range(3):
        assert check(site, unit) == {**in_sync, "worker1": "drifted"}
    assert len(reported(site)) == known + 1
    metrics = site.on("head1", f"cat /var/lib/rackwright-drift/{site.name}/rackwright_drift_{site.name}.prom")
    where = f'rackwright_drift_operations{{cluster="{site.name}",node="worker1",role='
    assert f'{where}"base"}} 1.0\n' in metrics
    assert f'{where}"time"}} 0.0\n' in metrics
    title, body = reported(site)[known]
    assert title == f"{site.name}: 1 in sync, 1 drifted"
    assert body.startswith("worker1: in sync -> drifted: path /etc/hosts")
    site.converge()
    for _ in range(2):
        assert check(site, unit) == in_sync
    assert [body.splitlines()[0] for _, body in reported(site)[known + 1 :]] == [
        "worker1: drifted -> in sync"
    ]
    site.rack.fault("worker1", "cut")
    try:
        for _ in range(2):
            assert check(site, unit) == {**in_sync, "worker1": "unreachable"}
    finally:
        site.rack.heal("worker1")
    assert len(reported(site)) == known + 3
    assert "in sync -> unreachable" in reported(site)[known + 2][1]
    assert check(site, unit) == in_sync
    assert len(reported(site)) == known + 4


def test_what_could_not_be_sent_is_sent_later(site: Site, unit: str):
    before = len(reported(site))
    site.on("head1", "systemctl stop sink")
    site.on("worker1", "chmod 600 /etc/hosts")
    site.on("head1", f"systemctl start {unit}.service || :")
    assert len(reported(site)) == before
    site.on("head1", "systemctl reset-failed; systemd-run -q --unit sink python3 /run/sink.py; sleep 1")
    check(site, unit)
    assert len(reported(site)) == before + 1
    site.on("worker1", "chmod 644 /etc/hosts")
    check(site, unit)


def test_what_a_node_s_root_blessed_itself_is_not_believed(site: Site, unit: str):
    site.on(
        "worker1",
        """
        cp -a /etc/rackwright-drift/expected.json /root/kept; echo x >>/etc/hosts
        found=$(python3 -B - <<'E'
import importlib.machinery, json
drift = importlib.machinery.SourceFileLoader("d", "/usr/local/sbin/rackwright-drift").load_module()
print(drift.ask(json.load(open(drift.FOLDER + "/questions.json"))["questions"])[0])
E
        )
        rackwright-drift --adopt $found""",
    )
    state = check(site, unit)
    site.on("worker1", "mv /root/kept /etc/rackwright-drift/expected.json; sed -i '$d' /etc/hosts")
    assert state["worker1"] == "unknown"
    assert check(site, unit)["worker1"] == "in sync"


def test_metrics_reach_node_exporter(site: Site, unit: str):
    check(site, unit)
    name = f"rackwright_drift_{site.name}.prom"
    text = site.on("head1", f"runuser -u nobody -- cat /var/lib/prometheus/node-exporter/{name}")
    assert f'rackwright_drift_drifted{{cluster="{site.name}",node="worker1"}} 0' in text
    stamp = float(text.partition("last_check_timestamp_seconds{")[2].split()[1])
    assert abs(time.time() - stamp) < 120


def test_no_credential_stands_where_others_read(site: Site):
    found = site.on(
        "head1", f"grep -rlsF {_CREDENTIAL} /etc /var/lib /var/log /run/log /run/systemd /tmp || :"
    )
    assert found.split() == [f"/etc/rackwright-drift/{site.name}/notify.json"]
    assert _CREDENTIAL not in site.on("head1", "journalctl -o json --no-pager | cat")
    assert _CREDENTIAL not in site.on("worker1", "grep -rsF hunter2 /etc /var/lib || :")
    here = [path for path in site.folder.rglob("*") if path.is_file()]
    assert [path for path in here if _CREDENTIAL.encode() in path.read_bytes()] == []


def test_uninstall_leaves_nothing(installed: DriftCheck):
    installed.uninstall()
    for node in NODES:
        assert installed.left(node) == set()
