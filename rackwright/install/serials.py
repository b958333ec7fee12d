"""Serial numbers and UUIDs that identify one machine, and placeholders that were never set."""

from __future__ import annotations

from uuid import UUID

from pydantic import TypeAdapter, ValidationError

from rackwright.model.install import MachineSerial
from rackwright.model.serials import names_a_machine

_SERIAL: TypeAdapter[str] = TypeAdapter(MachineSerial)
_UUIDS_NEVER_SET = frozenset(
    (
        UUID("03000200-0400-0500-0006-000700080009"),  # AMI's firmware, in both byte orders
        UUID("00020003-0004-0005-0006-000700080009"),
        UUID("12345678-1234-5678-90ab-cddeefaabbcc"),
    )
)


def name_to_type(declared: str | None, reported: str | None, uuid: str | None) -> tuple[str | None, str]:
    """What an operator types to confirm a machine's erasure, and its kind; None if the machine has no identifier.

    + reported: serial number from its BMC, and `uuid` likewise
    """
    name = next((one for one in (declared, reported) if names_a_machine(one)), None)
    if name is None and machine_uuid(uuid) is not None:
        return uuid, "UUID"
    return name, "serial number"


def declarable(serial: str | None) -> str | None:
    """The serial number if it is valid in a cluster file; None if not, or if it was never set."""
    if not names_a_machine(serial):
        return None
    try:
        return _SERIAL.validate_python(serial)
    except ValidationError:
        return None


def machine_uuid(text: str | None) -> UUID | None:
    """The UUID from the firmware or a BMC; None if it is invalid or was never set."""
    try:
        found = UUID(text or "")
    except ValueError:
        return None
    return None if len(set(found.bytes)) == 1 or found in _UUIDS_NEVER_SET else found


def same_uuid(one: str | None, other: str | None) -> bool:
    """Whether two UUIDs identify one machine; some BMCs print the first three fields byte-reversed."""
    first, second = machine_uuid(one), machine_uuid(other)
    return first is not None and second is not None and second in (first, UUID(bytes=first.bytes_le))
