"""Serial numbers that name one machine, and those that were never set."""

from __future__ import annotations

import re

from pydantic import TypeAdapter, ValidationError

from rackwright.model.install import MachineSerial

_NEVER_SET = re.compile(
    r"(.)\1*|0?1234567890?|none|n/?a|null|unknown|not (specified|available|applicable|set)|default string"
    r"|to be filled by o\.?e\.?m\.?|(system|chassis) serial (number|#)|serial ?number",
    re.IGNORECASE,
)
"""What many boards carry alike."""
_SERIAL: TypeAdapter[str] = TypeAdapter(MachineSerial)


def names_a_machine(serial: str | None) -> bool:
    """Whether a serial number, as the firmware or a BMC prints it, is one."""
    return serial is not None and not _NEVER_SET.fullmatch(serial.strip())


def declarable(serial: str | None) -> str | None:
    """The serial number where a cluster file can have it; None where it cannot, or was never set."""
    if not names_a_machine(serial):
        return None
    try:
        return _SERIAL.validate_python(serial)
    except ValidationError:
        return None
