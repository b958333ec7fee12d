"""What all tests share."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# A test counts executions: a machine that is starved of CPU takes longer for each and is not wrong.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

# A shell's background jobs ignore SIGINT, those of nohup SIGHUP. Programs that a test starts would inherit that, and do
# not inherit a handler.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


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


@pytest.fixture
def shared_path() -> Iterator[Path]:
    """A folder that other users may enter. pytest's own are closed to them whenever a pytest begins, in any process."""
    with tempfile.TemporaryDirectory(prefix="rackwright-shared-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
