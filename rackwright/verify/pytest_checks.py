"""Every check of every role as a pytest test; see rackwright.verify.pytest_plugin for how to run it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest

from rackwright.status import Status

if TYPE_CHECKING:
    from testinfra.host import Host

    from rackwright.verify.pytest_plugin import Asker


def test_check(ask_check: Asker, host: Host) -> None:
    """The claim holds on the host."""
    result = ask_check(host)
    if result.status is Status.OUT_OF_SCOPE:
        pytest.skip(result.evidence)
    if result.status is Status.WARN:
        warnings.warn(f"{result.node}: {result.check}: {result.evidence}", stacklevel=1)
    elif result.status is not Status.PASS:
        pytest.fail(f"{result.status.value}: {result.evidence}", pytrace=False)
