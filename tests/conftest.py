"""What all tests share."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# A test counts executions: a machine that is starved of CPU takes longer for each and is not wrong.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")


def pytest_collection_finish() -> None:
    """Thousands of collected tests and their modules live to the end: the collector of garbage skips them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    """Programs of nodes that a test runs in its own process set their umask: the next test has the usual one again."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)
