"""What all tests share: a collector of garbage that leaves alone what stays until the end."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    """Thousands of collected tests and their modules live to the end: never look through them again."""
    gc.collect()
    gc.freeze()
