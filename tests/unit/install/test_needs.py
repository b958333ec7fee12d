"""What is missing on the control node is found before the first machine is touched: all of it, each once."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.errors import SecretsError
from rackwright.install import dnsmasq, media, needs
from rackwright.model.bmc import BmcProtocol
from rackwright.model.install import BootWay
from rackwright.secrets.secret import Secret
from tests.unit.bmc.fake import certificate
from tests.unit.install.site import changed, make_site, make_worker

XORRISO = "xorriso is missing: apt-get install xorriso"
DNSMASQ = "dnsmasq is missing; `boot: pxe` needs it (apt-get install dnsmasq-base)"
IPMITOOL = "IPMI needs the program ipmitool (apt-get install ipmitool)"
SUSHY = "Redfish needs the Python package sushy (pip install 'rackwright[bmc]')"


class Store:
    """A secrets store with these passwords."""

    def __init__(self, *names):
        self.names, self.read = names, []

    def get(self, name):
        self.read.append(name)
        if name not in self.names:
            raise SecretsError(f"store has no secret {name}.", hint=f"rackwright secrets put {name} FILE")
        return Secret(name, "s3cret")


@pytest.fixture
def store(monkeypatch):
    made = Store("bmc_password")
    monkeypatch.setattr(needs, "store_of", lambda cluster: made)
    return made


@pytest.fixture
def missing(monkeypatch, store):
    """Names of programs and packages that this machine lacks; it has all others."""
    lacking: set[str] = set()

    def which(name):
        return None if name in lacking else f"/usr/bin/{name}"

    monkeypatch.setattr(needs, "which", which)
    monkeypatch.setattr(dnsmasq, "which", which)
    monkeypatch.setattr(media.shutil, "which", which)
    monkeypatch.setattr(needs, "find_spec", lambda name: None if name in lacking else object())
    return lacking


def bmc(node, **changes):
    return node.model_copy(update={"bmc": node.bmc.model_copy(update=changes)})


def problems(*nodes):
    return needs.problems(make_site(*nodes), nodes)


def ipmi(number):
    return changed(bmc(make_worker(number), protocol=BmcProtocol.IPMI, ca=Path("/nowhere")), boot=BootWay.PXE)


def test_nothing_is_missing(missing):
    assert problems(make_worker(1), ipmi(2)) == []


def test_each_password_is_read_once(missing, store):
    nodes = [make_worker(number) for number in range(1, 4)]
    others = [bmc(make_worker(number), password="bmc_other") for number in range(4, 7)]
    assert problems(*nodes, *others) == [
        "store has no secret bmc_other (rackwright secrets put bmc_other FILE)"
    ]
    assert store.read == ["bmc_password", "bmc_other"]


def test_a_store_that_cannot_be_read_is_one_mistake(missing, monkeypatch):
    def closed(name):
        raise SecretsError("The store cannot be read.")

    monkeypatch.setattr(needs, "store_of", lambda cluster: type("Closed", (), {"get": staticmethod(closed)}))
    assert problems(make_worker(1), bmc(make_worker(2), password="bmc_other")) == ["The store cannot be read"]


def test_ca_files(missing, tmp_path):
    good, _ = certificate(tmp_path)
    (tmp_path / "empty.pem").write_text("no certificate\n")
    nodes = [
        bmc(make_worker(1), ca=good),
        bmc(make_worker(2), ca=tmp_path / "gone.pem"),
        bmc(make_worker(3), ca=tmp_path / "gone.pem"),
        bmc(make_worker(4), ca=tmp_path / "empty.pem"),
        bmc(make_worker(5), ca=tmp_path / "unused.pem", certificate="a1" * 32),
    ]
    found = problems(*nodes)
    assert [one.partition(" for BMCs is unusable: ")[0] for one in found] == [
        f"the CA file {tmp_path / 'gone.pem'}",
        f"the CA file {tmp_path / 'empty.pem'}",
    ]


@pytest.mark.parametrize(
    ("lacking", "nodes", "found"),
    [
        ("xorriso", [make_worker(1), make_worker(2)], [XORRISO]),
        ("xorriso", [make_worker(1, install=None)], [XORRISO]),  # to be discovered or erased
        ("xorriso", [ipmi(1)], []),
        ("dnsmasq", [ipmi(1)], [DNSMASQ]),
        ("dnsmasq", [make_worker(1)], []),
        ("ipmitool", [ipmi(1), ipmi(2)], [IPMITOOL]),
        ("ipmitool", [make_worker(1)], []),
        ("sushy", [make_worker(1), make_worker(2)], [SUSHY]),
        ("sushy", [ipmi(1)], []),
    ],
)
def test_programs_of_the_ways_and_protocols_in_use(missing, lacking, nodes, found):
    missing.add(lacking)
    assert problems(*nodes) == found


def test_everything_at_once(missing, tmp_path, store):
    missing |= {"xorriso", "dnsmasq", "ipmitool", "sushy"}
    store.names = ()
    found = problems(bmc(make_worker(1), ca=tmp_path / "gone.pem"), ipmi(2))
    assert len(found) == 6
    assert {XORRISO, DNSMASQ, IPMITOOL, SUSHY} < set(found)
