"""A machine with its BMC."""

from __future__ import annotations

import pytest

from tests.unit.bmc import fake
from tests.unit.firmware.machine import Machine, tree


@pytest.fixture(scope="session")
def pki(tmp_path_factory):
    """A folder for certificates, which take a while to make."""
    return tmp_path_factory.mktemp("pki")


@pytest.fixture
def machine(pki):
    """A node that is on, and its iDRAC."""
    with fake.serving(tree(), pki) as bmc:
        yield Machine(bmc)


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
