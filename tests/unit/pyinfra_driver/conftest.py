"""The run used by the tests of engine and operations."""

import pytest

from tests.factories import make_cluster, make_node
from tests.unit.pyinfra_driver.local import LocalRun


@pytest.fixture
def run(tmp_path):
    """Three hosts, all of them this machine."""
    return LocalRun(make_cluster(), tmp_path)


@pytest.fixture
def one(tmp_path):
    """A single host."""
    return LocalRun(make_cluster(make_node("node1", 21)), tmp_path)
