"""rackwright bmc enrol-key, against nodes with mokutil and the machines below them."""

from __future__ import annotations

from contextlib import closing
from functools import partial

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from rackwright.bmc.interface import Power
from rackwright.bmc.mok_manager import MokManager
from rackwright.engine.boots import Before
from rackwright.engine.journal import runs
from rackwright.firmware import run as firmware_run
from rackwright.firmware.mokutil import KeyState, read_key
from tests.unit.bmc.test_fleet import SITE
from tests.unit.bmc.test_mok_manager import Clock
from tests.unit.cli.test_firmware import _HeadLock
from tests.unit.firmware.test_enrol_node import Node, site_key

__all__ = ["site_key"]


class _Client:
    """A BMC that knows the power."""

    def power(self):
        return Power.ON

    def close(self): ...


class _Pool:
    """Every node by its name."""

    def __init__(self, nodes):
        self.nodes = nodes

    def __call__(self, cluster):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_): ...

    def forget(self, node): ...

    def run(self, node, command, *, stdin=None, timeout):
        return self.nodes[node].run(node, command, stdin=stdin, timeout=timeout)


@pytest.fixture
def site(tmp_path, monkeypatch, site_key):
    """(cluster file, certificate, nodes by name)"""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    certificate = tmp_path / "site-mok.der"
    certificate.write_bytes(site_key[1].public_bytes(Encoding.DER))
    key = read_key(certificate)
    nodes = {f"gpu{number}": Node(key) for number in (1, 2, 3)}

    class Boots:
        def __init__(self, cluster, shell, seconds, *, order=None):
            self._order = order

        def before(self, names):
            return {name: Before("boot") for name in names}

        def by_systemd(self, name):
            nodes[name].ordered()

        def reboot(self, boots):
            for name in boots:
                nodes[name].reboot(lambda order, name=name: self._attended(name, order))
            return dict.fromkeys(boots)

        def _attended(self, name, order):
            nodes[name].ordered = order
            self._order(name)

    pool = _Pool(nodes)
    monkeypatch.setattr(firmware_run, "Boots", Boots)
    monkeypatch.setattr(firmware_run, "Pool", pool)
    monkeypatch.setattr(firmware_run, "HeadLock", _HeadLock)
    monkeypatch.setattr("rackwright.firmware.mokutil.Pool", pool)
    monkeypatch.setattr(
        firmware_run, "console_of", lambda cluster, node, opened: closing(nodes[node.name].machine)
    )
    monkeypatch.setattr("rackwright.cli.bmc_enrol_key.opener", lambda cluster: lambda node: _Client())
    file = tmp_path / "site.yaml"
    file.write_text(SITE.read_text() + "waves: {boot_timeout_seconds: 60}\n")
    (tmp_path / "bmc-ca.pem").write_text("")
    return file, certificate, nodes


def command(file, certificate, limit, *options):
    return ("bmc", "enrol-key", file, "--limit", limit, "--certificate", certificate, *options)


def test_nodes_that_lack_the_key_get_it_and_the_others_are_left_alone(site, rackwright):
    file, certificate, nodes = site
    nodes["gpu2"].enrolled = True
    found = rackwright(*command(file, certificate, "gpu[1-3]", "--confirm", "gpu[1,3]", "--at-once", "2"))
    assert found.status == 0, found.err
    digest = read_key(certificate).sha256
    assert found.out.splitlines() == [
        "gpu2: has site-mok.der already",
        f"gpu[1,3]: enrol site-mok.der (SHA-256 {digest}), with two reboots in a row",
        "gpu1: has the key: site-mok.der enrolled",
        "gpu3: has the key: site-mok.der enrolled",
    ]
    assert [node.reboots for node in nodes.values()] == [1, 0, 1]
    (run,) = runs("metal")
    assert (run.state, run.begin["deploy"], sorted(run.nodes)) == (
        "finished",
        "bmc enrol-key",
        ["gpu1", "gpu3"],
    )
    written = "".join(path.read_text() for path in file.parent.glob("state/**/*") if path.is_file())
    for name in ("gpu1", "gpu3"):
        assert nodes[name].typed[0] not in written + found.out + found.err
    again = rackwright(*command(file, certificate, "gpu[1-3]"))
    assert (again.status, again.out.splitlines()[-1]) == (0, "nothing to do")
    resumed = rackwright("resume", run.run)
    assert f"run again: rackwright bmc enrol-key {file} --limit 'gpu[1,3]' --certificate" in resumed.err


@pytest.mark.parametrize(
    ("confirm", "words"),
    [
        ((), "standard input is not a terminal"),
        (("--confirm", "yes"), "'yes' is not gpu1; nothing was changed"),
    ],
)
def test_the_nodes_are_typed(site, rackwright, confirm, words):
    file, certificate, nodes = site
    found = rackwright(*command(file, certificate, "gpu1", *confirm))
    assert found.status == 1
    assert words in found.err
    assert nodes["gpu1"].reboots == 0


def test_a_screen_that_is_not_known_is_unknown_and_ends_the_run(site, rackwright, monkeypatch):
    file, certificate, nodes = site
    quick = partial(MokManager, clock=Clock())
    monkeypatch.setattr("rackwright.firmware.enrol_node.MokManager", quick)
    nodes["gpu1"].shows = "Press F1 to continue"
    found = rackwright(*command(file, certificate, "gpu[1-2]", "--confirm", "gpu[1-2]"))
    assert found.status == 1
    assert "gpu1: UNKNOWN: the serial console of gpu1 does not show" in found.err
    assert "    Press F1 to continue" in found.err
    assert "gpu2: not started: gpu1 failed" in found.err
    assert nodes["gpu1"].requested is None


def test_nodes_whose_state_is_not_known_keep_everything_from_being_changed(site, rackwright, monkeypatch):
    file, certificate, nodes = site
    states = {"gpu1": KeyState.MISSING, "gpu2": "gpu2 has no mokutil.", "gpu3": KeyState.BLOCKED}
    monkeypatch.setattr("rackwright.cli.bmc_enrol_key.survey", lambda cluster, nodes, key: states)
    found = rackwright(*command(file, certificate, "gpu[1-3]", "--confirm", "gpu[1-3]"))
    assert found.status == 1
    assert "Nothing was changed: gpu2 has no mokutil; gpu3: the key is blocked." in found.err
    assert nodes["gpu1"].reboots == 0


def test_nodes_without_a_bmc_are_refused(site, rackwright):
    file, certificate, _ = site
    found = rackwright(*command(file, certificate, "head1,gpu1"))
    assert "error: No BMC is declared for head1, so their consoles cannot be reached." in found.err


def test_a_private_key_is_refused(site, rackwright, tmp_path):
    file, *_ = site
    (tmp_path / "mok.key").write_text("-----BEGIN PRIVATE KEY-----\n")
    found = rackwright(*command(file, tmp_path / "mok.key", "gpu1"))
    assert "mok.key is not a valid certificate: it contains something other than certificates." in found.err
