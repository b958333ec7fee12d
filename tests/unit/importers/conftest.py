"""The program as people run it, in this process."""

from __future__ import annotations

from tests.unit.cli.conftest import rackwright

__all__ = ["rackwright"]
