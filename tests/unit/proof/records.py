"""A record, changed in what a test is about."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.proof.ledger import Counts, Record, Result

_FIELDS = {
    "suite": "engine",
    "proves": "The engine holds.",
    "result": Result.PASSED,
    "date": datetime(2026, 11, 22, 15, 4, 5, 678, tzinfo=UTC),
    "commit": "0123456789abcdef0123456789abcdef01234567",
    "uncommitted": False,
    "machine": "2 cores of Intel Xeon, 8 GiB of memory, Debian GNU/Linux 12 (bookworm), kernel 6.1.0",
    "seconds": 3725.04,
    "cpu_seconds": 1200.4,
    "stolen": 0.0123,
    "memory_mib": 6144,
    "measured": {"lab up": "163 s", "rope": "7 m"},
    "tests": Counts(passed=12),
    "attempts": 1,
    "environment": {"RACKWRIGHT_TEST_ROUNDS": "40"},
    "paths": ("src", "long"),
    "digest": "d" * 64,
}


def record(**changes: object) -> Record:
    """A run that passed."""
    return Record.model_validate({**_FIELDS, **changes})
