"""Serial numbers of machines, and what boards carry whose serial number was never set."""

from __future__ import annotations

import re

_NEVER_SET = re.compile(
    r"(.)\1*|0?1234567890?|none|n/?a|null|unknown|not (specified|available|applicable|set)|default string"
    r"|to be filled by o\.?e\.?m\.?|(system|chassis) serial (number|#)|serial ?number",
    re.IGNORECASE,
)
"""What many boards carry alike."""


def names_a_machine(serial: str | None) -> bool:
    """Whether a serial number, as it is declared or as the firmware or a BMC prints it, is one."""
    return serial is not None and not _NEVER_SET.fullmatch(serial.strip())


def placeholder_mistake(serial: str) -> tuple[str, str] | None:
    """Why this is not the serial number of a machine, and a hint; None where it may be one."""
    if names_a_machine(serial):
        return None
    return (
        f"`{serial}` is what boards carry whose serial number was never set: it names no machine.",
        "leave it out: the MAC addresses and the UUID that the BMC reports are compared instead",
    )
