"""Serial numbers and UUIDs that name one machine, and those that were never set."""

from __future__ import annotations

from uuid import UUID

from pydantic import TypeAdapter, ValidationError

from rackwright.model.install import MachineSerial
from rackwright.model.serials import names_a_machine

_SERIAL: TypeAdapter[str] = TypeAdapter(MachineSerial)
_UUIDS_NEVER_SET = frozenset(
    (
        UUID("03000200-0400-0500-0006-000700080009"),  # AMI's firmware, in both orders of its bytes
        UUID("00020003-0004-0005-0006-000700080009"),
        UUID("12345678-1234-5678-90ab-cddeefaabbcc"),
    )
)


def name_to_type(declared: str | None, reported: str | None, uuid: str | None) -> tuple[str | None, str]:
    """What an operator types to agree to a machine's erasure, and what it is called; None where it has no name.

    + reported: serial number as its BMC reports it, and `uuid` likewise
    """
    name = next((one for one in (declared, reported) if names_a_machine(one)), None)
    if name is None and machine_uuid(uuid) is not None:
        return uuid, "UUID"
    return name, "serial number"


def declarable(serial: str | None) -> str | None:
    """The serial number where a cluster file can have it; None where it cannot, or was never set."""
    if not names_a_machine(serial):
        return None
    try:
        return _SERIAL.validate_python(serial)
    except ValidationError:
        return None


def machine_uuid(text: str | None) -> UUID | None:
    """The UUID that the firmware or a BMC prints; None where it is not one, or was never set."""
    try:
        found = UUID(text or "")
    except ValueError:
        return None
    return None if len(set(found.bytes)) == 1 or found in _UUIDS_NEVER_SET else found


def same_uuid(one: str | None, other: str | None) -> bool:
    """Whether two UUIDs name one machine; some BMCs print the first three fields with their bytes reversed."""
    first, second = machine_uuid(one), machine_uuid(other)
    return first is not None and second is not None and second in (first, UUID(bytes=first.bytes_le))
