"""Fixtures of the tests of roles."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def shared_path() -> Iterator[Path]:
    """A folder that other users may enter. pytest's own are closed to them whenever a pytest begins, in any process."""
    with tempfile.TemporaryDirectory(prefix="rackwright-shared-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
