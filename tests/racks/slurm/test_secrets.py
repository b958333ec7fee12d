"""No secret is anywhere but where it belongs, after any of the earlier tests."""

from __future__ import annotations

import base64
import json
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyrage
import pytest

from rackwright.lab.container import leader_pid
from tests.racks.program import Ran
from tests.racks.site import Site
from tests.racks.slurm import sampler
from tests.racks.slurm.conftest import NODES, FirstApply

pytestmark = pytest.mark.lab

FRAGMENT = 16
"""A leak may be cut off or broken into lines: any part of a secret this long counts."""
BELONGS = {
    "head1": {
        "/etc/munge/munge.key": (0o400, "munge"),
        "/etc/slurm/slurmdbd.conf": (0o600, "slurm"),
    },
    "worker1": {"/etc/munge/munge.key": (0o400, "munge")},
    "worker2": {"/etc/munge/munge.key": (0o400, "munge")},
}
_DEBIAN_S_OWN = ("--exclude-dir=archives", "--exclude-dir=lists", "--exclude=*cache.bin")
"""Packages and indexes as they were downloaded: hundreds of megabytes."""
ON_A_NODE = ("/etc", "/var", "/tmp", "/root", "/home", "/run", "/opt", "/srv", "/dev/shm", "/usr/local")


@pytest.fixture(scope="module")
def secrets(site: Site, first_apply: FirstApply) -> dict[str, str]:
    """Name -> value, decrypted without rackwright's help."""
    identity = (site.config / "rackwright" / "identity.age.txt").read_text().split("\n")
    key = next(line for line in identity if line.startswith("AGE-SECRET-KEY-"))
    store = (site.folder / f"{site.name}.secrets.age").read_bytes()
    content = pyrage.decrypt(store, [pyrage.x25519.Identity.from_str(key)])
    values: dict[str, str] = json.loads(content)["secrets"]
    assert {"munge_key", "slurmdbd_password"} <= set(values)
    return values


@pytest.fixture(scope="module")
def patterns(secrets: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for `grep -F -f`; outside what is searched."""
    path = tmp_path_factory.mktemp("patterns") / "patterns"
    path.touch(0o600)
    path.write_bytes(b"\n".join(sorted(_fragments(secrets))))
    return path


def _fragments(secrets: dict[str, str]) -> set[bytes]:
    found = set()
    for value in secrets.values():
        for form in _forms(value):
            pieces = (form[at : at + FRAGMENT] for at in range(0, len(form) - FRAGMENT + 1, FRAGMENT // 2))
            found |= {piece for piece in pieces if not {0, 10, 13} & set(piece)}
    return found


def _forms(value: str) -> Iterator[bytes]:
    raw = [value.encode()]
    if len(value) % 4 == 0 and value.replace("+", "").replace("/", "").rstrip("=").isalnum():
        raw.append(base64.b64decode(value))
    for form in raw:
        yield form
        yield form.hex().encode()
        yield form.hex().upper().encode()
        yield base64.b64encode(form)
        yield base64.urlsafe_b64encode(form)


def _grep(patterns: Path, *where: Path | str) -> list[str]:
    """Files with any of the patterns in them."""
    command = ["grep", "-rlaF", "--devices=skip", *_DEBIAN_S_OWN, "-f", str(patterns), "--", *map(str, where)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode in (0, 1, 2), done.stderr  # 2: a socket, or a file that went away meanwhile
    return sorted(done.stdout.splitlines())


def test_nothing_this_machine_keeps_holds_a_secret(rack: Site, accepted: Ran, patterns: Path):
    """All outputs, reports, plans, journals of runs, worker logs, memories, the samples, the state of the rack."""
    plan = rack.outputs / "plan.json"
    rack.on(
        "head1",
        "chmod 644 /etc/slurm/slurmdbd.conf; echo >>/etc/munge/munge.key; echo >>/etc/slurm/slurmdbd.conf",
    )
    rack.cli("plan", str(rack.file), "--out", str(plan), "--verbose", expect=2)
    rack.apply()
    searched = [path for path in rack.folder.rglob("*") if path.is_file()]
    names = {path.name for path in searched}
    assert {"plan.json", "samples", "report.json", "report.html", "run.lock"} <= names
    assert any(path.suffix == ".jsonl" for path in searched)
    assert any(path.name.startswith("worker-") for path in searched)
    assert len(searched) > 20
    assert _grep(patterns, rack.folder) == []


def test_on_the_nodes_they_stand_where_they_belong_and_nowhere_else(rack: Site, patterns: Path):
    for node in NODES:
        root = _root_of(rack, node)
        found = _grep(patterns, *(f"{root}{folder}" for folder in ON_A_NODE))
        assert {path.removeprefix(root) for path in found} == set(BELONGS[node])
        for path, (mode, owner) in BELONGS[node].items():
            assert stat.S_IMODE(Path(root + path).stat().st_mode) == mode
            assert rack.on(node, f"stat -c %U {path}") == f"{owner}\n"


def _root_of(rack: Site, node: str) -> str:
    """The node's file system as seen from here, through its first process."""
    return f"/proc/{leader_pid(rack.name, node)}/root"


def test_the_search_finds_what_is_there(rack: Site, secrets: dict[str, str], patterns: Path):
    rack.on("worker1", "head -c 100 /etc/munge/munge.key | base64 >/var/tmp/leak")
    root = _root_of(rack, "worker1")
    try:
        assert _grep(patterns, f"{root}/var/tmp") == [f"{root}/var/tmp/leak"]
    finally:
        rack.on("worker1", "rm /var/tmp/leak")


def test_no_journal_of_a_node_tells_a_secret(rack: Site, patterns: Path):
    """As text: the journal's own files may be compressed."""
    for node in NODES:
        reported = rack.outputs / f"journal-{node}.txt"
        reported.write_text(rack.on(node, "journalctl -o export --no-pager -q", timeout=480))
        assert reported.stat().st_size > 100_000
    assert _grep(patterns, rack.outputs) == []


def test_no_process_list_showed_a_secret(first_apply: FirstApply, rack: Site, patterns: Path):
    """The samples were searched above; here is that they are samples of what they should be."""
    seen = [json.loads(line) for line in first_apply.samples.read_text().splitlines()]
    where, rounds, _ = seen.pop()
    assert where == "rounds"
    assert int(rounds) > 100
    on_nodes = [command for where, command, _ in seen if where == "node"]
    here = [command for where, command, _ in seen if where == "here"]
    for program in (
        "apt-get",
        "dpkg",
        "python3\0-IS\0-c",
        "systemctl",
        "sacctmgr",
        "mariadb",
        "useradd",
        "slurmdbd",
    ):
        assert any(program in command for command in on_nodes), program
    assert any("rackwright\0apply" in command for command in here)
    assert any("rackwright.pyinfra_driver.worker" in command for command in here)
    assert any("XDG_STATE_HOME" in environment for where, _, environment in seen if where == "here")
    assert any("DEBIAN_FRONTEND=" in environment for where, _, environment in seen if where == "node")
    assert _grep(patterns, first_apply.samples) == []


def test_the_sampler_sees_command_lines_and_environments(rack: Site, tmp_path: Path):
    out = tmp_path / "samples"
    watch = [sys.executable, sampler.__file__, rack.name, str(rack.folder), str(out)]
    with subprocess.Popen(watch, stdin=subprocess.PIPE) as process:
        login = rack.rack.ssh_command("worker1", ["env", "IN_ENVIRONMENT=canary", "sleep", "5.25"])
        subprocess.run(login, check=True, timeout=240, stdin=subprocess.DEVNULL)
        time.sleep(0.2)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(480)
    seen = [json.loads(line) for line in out.read_text().splitlines()]
    found = [(command, environment) for where, command, environment in seen if where == "node"]
    assert any(c == "sleep\0005.25\0" and "IN_ENVIRONMENT=canary\0" in e for c, e in found)
