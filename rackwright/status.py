"""Results of checks: of roles, of health, of burn-ins. Also runs on nodes."""

from __future__ import annotations

from enum import Enum


class Status(str, Enum):  # noqa: UP042 - StrEnum is of Python 3.11
    """The result of one check."""

    PASS = "PASS"
    WARN = "WARN"
    FAIL = "FAIL"
    UNKNOWN = "UNKNOWN"
    OUT_OF_SCOPE = "OUT OF SCOPE"
    DISABLED = "DISABLED"
    """A health check that the site switched off; no other check can be."""

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(str(self.value), spec)
