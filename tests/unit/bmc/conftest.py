"""Fakes of BMCs."""

from __future__ import annotations

import pytest

from tests.unit.bmc import fake


@pytest.fixture(scope="session")
def pki(tmp_path_factory):
    """A folder for certificates, which take a while to make."""
    return tmp_path_factory.mktemp("pki")


@pytest.fixture
def bmc(pki):
    """An iDRAC."""
    with fake.serving(fake.tree("idrac"), pki) as one:
        yield one


@pytest.fixture(params=fake.NAMES)
def dialect(request, pki):
    """Each maker's BMC, as (name, fake)."""
    with fake.serving(fake.tree(request.param), pki) as one:
        yield request.param, one
