"""What all tests share."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    """Thousands of collected tests and their modules live to the end: the collector of garbage skips them."""
    gc.collect()
    gc.freeze()
