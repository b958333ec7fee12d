"""known_hosts is rewritten for the rack's own hosts only."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from rackwright.errors import LabError
from rackwright.known_hosts_file import change_known_hosts, with_keys
from rackwright.lab import names
from rackwright.lab.keys import (
    ensure_admin_key,
    forget_hosts,
    host_patterns,
    write_known_hosts,
)
from tests.unit.lab.specs import node, rack

NEW = "ssh-ed25519 AAAANEW"
OTHER = "ssh-ed25519 AAAAOTHER"


def test_new_file():
    assert with_keys("", {NEW: ["node1", "10.0.0.11"]}) == "node1,10.0.0.11 ssh-ed25519 AAAANEW\n"


def test_other_lines_are_kept_in_place():
    old = (
        "# my hosts\n"
        "github.example ssh-ed25519 AAAAOTHER\n"
        "node1,10.0.0.11 ssh-ed25519 AAAAOLD\n"
        "\n"
        "|1|c2FsdA==|aGFzaA== ssh-ed25519 AAAAHASHED\n"
        "@cert-authority node1 ssh-ed25519 AAAACA\n"
    )
    assert with_keys(old, {NEW: ["node1", "10.0.0.11"]}) == (
        "# my hosts\n"
        "github.example ssh-ed25519 AAAAOTHER\n"
        "\n"
        "|1|c2FsdA==|aGFzaA== ssh-ed25519 AAAAHASHED\n"
        "@cert-authority node1 ssh-ed25519 AAAACA\n"
        "node1,10.0.0.11 ssh-ed25519 AAAANEW\n"
    )


def test_a_shared_line_keeps_the_other_host():
    old = "other,node1 ssh-rsa AAAASHARED\n"
    assert with_keys(old, {NEW: ["node1"]}) == ("other ssh-rsa AAAASHARED\nnode1 ssh-ed25519 AAAANEW\n")


def test_another_port_is_another_host():
    old = "10.0.0.11 ssh-ed25519 AAAAPORT22\n[10.0.0.11]:2222 ssh-ed25519 AAAAOLD\n"
    patterns = host_patterns(node(1), 2222)
    assert patterns == ["[node1]:2222", "[10.0.0.11]:2222"]
    assert with_keys(old, {NEW: patterns}) == (
        "10.0.0.11 ssh-ed25519 AAAAPORT22\n[node1]:2222,[10.0.0.11]:2222 ssh-ed25519 AAAANEW\n"
    )


def test_extra_addresses_are_known_too():
    assert host_patterns(node(1, extra_addresses=("10.9.0.1/16",)), 22) == ["node1", "10.0.0.11", "10.9.0.1"]


def test_the_written_file_keeps_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(names, "RUNTIME", tmp_path / "run")
    spec = rack(tmp_path)
    spec.known_hosts.write_text("elsewhere ssh-ed25519 AAAAOTHER\n")
    owner = 12345 if os.geteuid() == 0 else os.geteuid()
    os.chown(spec.known_hosts, owner, -1)
    write_known_hosts(spec, {"node1": NEW})
    assert spec.known_hosts.read_text().splitlines() == [
        "elsewhere ssh-ed25519 AAAAOTHER",
        "node1,10.0.0.11 ssh-ed25519 AAAANEW",
    ]
    assert spec.known_hosts.stat().st_uid == owner
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["known_hosts"]


def test_a_node_without_a_key_of_the_labs_keeps_its_line_until_it_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(names, "RUNTIME", tmp_path / "run")
    spec = rack(tmp_path, nodes=(node(1), node(2)))
    installed = "node2,10.0.0.12 ssh-ed25519 AAAAINSTALLED"
    spec.known_hosts.write_text(f"{installed}\n")
    write_known_hosts(spec, {"node1": NEW})
    assert spec.known_hosts.read_text().splitlines() == [installed, "node1,10.0.0.11 ssh-ed25519 AAAANEW"]
    forget_hosts(spec, [spec.nodes[1]])
    assert spec.known_hosts.read_text().splitlines() == ["node1,10.0.0.11 ssh-ed25519 AAAANEW"]


def test_a_missing_key_is_made_private(tmp_path: Path):
    key = tmp_path / "site" / "keys" / "lab"
    public = ensure_admin_key(key)
    assert public.startswith("ssh-ed25519 ")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert ensure_admin_key(key) == public


def test_a_key_with_a_passphrase_is_refused(tmp_path: Path):
    key = tmp_path / "lab"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", key], check=True)
    with pytest.raises(LabError, match="not a private key without passphrase"):
        ensure_admin_key(key)


def test_keys_that_are_there_already_cost_no_write(tmp_path):
    """Two nodes that wait for their first boot are asked in turn, every few seconds."""
    path = tmp_path / "known_hosts"
    path.write_text("# the site's own\n")
    nodes = {"node1": {NEW: ["node1", "10.0.0.11"]}, "node2": {OTHER: ["node2", "10.0.0.12"]}}

    def trust(node: str) -> tuple[int, str]:
        change_known_hosts(path, lambda text: with_keys(text, nodes[node]))
        return path.stat().st_ino, path.read_text()

    trust("node1")
    written = trust("node2")
    assert [trust("node1"), trust("node2"), trust("node1")] == [written] * 3
    changed = with_keys(written[1], {OTHER: ["node1", "10.0.0.11"]})
    assert NEW not in changed
