"""What all tests share: nothing is looked for again that cannot have changed since the last test."""

from __future__ import annotations

import gc
import sys
from functools import cache


def pytest_collection_finish() -> None:
    """Thousands of collected tests and their modules live to the end: the collector of garbage skips them.

    pyinfra reads the metadata of every installed package to find its connectors, for each plan anew.
    """
    connectors = sys.modules.get("pyinfra.api.connectors")
    if connectors is not None:
        connectors.entry_points = cache(connectors.entry_points)
    gc.collect()
    gc.freeze()
