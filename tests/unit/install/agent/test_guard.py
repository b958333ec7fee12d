"""The agent works on the machine that it was made for, in memory, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackwright.install.agent import guard
from rackwright.install.agent.programs import AgentError

CONFIG = {
    "version": 1,
    "server": "https://10.77.0.1:8443",
    "token": "t0ken",
    "node": "worker1",
    "run": "k3x9ab12",
    "serial": "SN1",
    "mode": "install",
    "network": {"mac": "02:00:00:00:00:01", "address": "10.77.0.11/24", "gateway": None, "vlan": None},
}


def _files(folder: Path, mounts: str, config: object = CONFIG) -> tuple[str, str]:
    (folder / "mounts").write_text(mounts)
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder / "config.json"), str(folder / "mounts")


@pytest.mark.parametrize(
    "mounts",
    ["rootfs / rootfs rw 0 0\nproc /proc proc rw 0 0\n", "proc /proc proc rw 0 0\n", "none / tmpfs rw 0 0\n"],
)
def test_the_configuration_is_taken_once(tmp_path, mounts):
    config, mounted = _files(tmp_path, mounts)

    taken = guard.take(config, mounted)

    assert (taken.node, taken.run, taken.token, taken.network.vlan) == ("worker1", "k3x9ab12", "t0ken", None)
    assert not Path(config).exists()
    assert "t0ken" not in repr(taken)
    with pytest.raises(AgentError, match="not armed"):
        guard.take(config, mounted)


@pytest.mark.parametrize(
    "mounts",
    [
        "/dev/sda2 / ext4 rw 0 0\n",
        "rootfs / rootfs rw 0 0\n/dev/sda2 / ext4 rw 0 0\n",
        "overlay / overlay rw 0 0\n",
    ],
)
def test_on_an_installed_system_it_does_nothing(tmp_path, mounts):
    config, mounted = _files(tmp_path, mounts)

    with pytest.raises(AgentError, match="not in memory"):
        guard.take(config, mounted)

    assert Path(config).exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "version 2"),
        ({"token": ""}, "incomplete: token"),
        ({"token": None}, "incomplete: token"),
        ({"mode": "wipe"}, "not one of: install, discover"),
        ({"server": "http://10.77.0.1"}, "not an https:// address"),
        ({"network": {"mac": "02:00", "address": None, "gateway": None, "vlan": None}}, "not a MAC address"),
        (
            {"network": {"mac": "02:00:00:00:00:01", "address": None, "gateway": None, "vlan": 5000}},
            "network.vlan",
        ),
        ({"network": {}}, "incomplete"),
        ({"network": None}, "incomplete"),
    ],
)
def test_a_configuration_that_is_not_whole_is_refused(change, said):
    with pytest.raises(AgentError, match=said) as caught:
        guard.parse(json.dumps(CONFIG | change))
    assert "t0ken" not in str(caught.value)


def test_text_that_is_no_configuration_is_not_quoted():
    with pytest.raises(AgentError) as caught:
        guard.parse('{"token": "t0ken"')
    assert "t0ken" not in str(caught.value)


@pytest.mark.parametrize(
    ("serial", "line", "said"),
    [
        ("SN2", "rackwright.run=k3x9ab12", "serial number is 'SN2', but worker1 is declared with 'SN1'"),
        (None, "", "serial number is None"),
        ("SN1", "quiet rackwright.run=other123", "booted for run other123"),
    ],
)
def test_another_machine_is_refused(serial, line, said):
    with pytest.raises(AgentError, match=said):
        guard.require_machine(guard.parse(json.dumps(CONFIG)), serial, line)


def test_its_own_machine_is_accepted():
    guard.require_machine(guard.parse(json.dumps(CONFIG)), "SN1", "console=ttyS0 rackwright.run=k3x9ab12")
    undeclared = guard.parse(json.dumps(CONFIG | {"serial": None}))
    guard.require_machine(undeclared, None, "")
