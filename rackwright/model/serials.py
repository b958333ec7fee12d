"""Serial numbers of machines, and placeholders on boards whose serial number was never set."""

from __future__ import annotations

import re

_NEVER_SET = re.compile(
    r"(.)\1*|0?1234567890?|none|n/?a|null|unknown|not (specified|available|applicable|set)|default string"
    r"|to be filled by o\.?e\.?m\.?|(system|chassis) serial (number|#)|serial ?number",
    re.IGNORECASE,
)
"""Placeholders that many boards share."""


def names_a_machine(serial: str | None) -> bool:
    """Whether a declared or reported serial number is real, not a placeholder."""
    return serial is not None and not _NEVER_SET.fullmatch(serial.strip())


def placeholder_mistake(serial: str) -> tuple[str, str] | None:
    """Why this is not a machine's serial number, and a hint; None if it may be one."""
    if names_a_machine(serial):
        return None
    return (
        f"`{serial}` is a vendor's placeholder, not a serial number: it does not identify a machine.",
        "remove it: the MAC addresses and the UUID that the BMC reports are compared instead",
    )
