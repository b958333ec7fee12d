"""Reasons why a machine must not be powered on and written: all at once, each from actual readings."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.bmc.interface import BmcIdentity, Power
from rackwright.install.record import Record
from rackwright.install.serials import machine_uuid, name_to_type
from rackwright.model.cluster import Node
from rackwright.model.serials import names_a_machine

_WHERE = {
    "serial number": "read it off the machine's label",
    "UUID": "`rackwright bmc status FILE --json` prints it",
}


@dataclass(frozen=True)
class Seen:
    """Readings of a machine before anything is done to it."""

    identity: BmcIdentity
    power: Power
    secure_boot: bool | None
    """Secure Boot state from its BMC; None: not reported."""
    answers: bool
    """Whether the node's address answers on the SSH port."""


@dataclass(frozen=True)
class Refusal:
    """The reason, and what to do."""

    message: str
    hint: str


def refusals(
    node: Node, seen: Seen, record: Record, typed_serial: str | None, mode: str = "install"
) -> list[Refusal]:
    """Reasons against installing, erasing or discovering a node; discovery writes nothing.

    + typed_serial: what the operator typed to confirm the reinstall or erasure of this node; None: nothing
    """
    if mode == "discover":
        return [*_port(node, seen.identity), *_running(node, seen)]
    found = [*_identity(node, seen.identity), *_running(node, seen), *_secure_boot(node, seen)]
    if mode == "erase":
        found += _to_be_erased(node, seen.identity, typed_serial)
    elif record.was_ready:
        found += _was_ready(node, seen.identity, typed_serial)
    return found


def _identity(node: Node, identity: BmcIdentity) -> list[Refusal]:
    """Whether the BMC belongs to the declared machine; a MAC address without other confirmation is not enough."""
    found = []
    hint = "check the BMCs' cables and addresses: two may be swapped, or the machine was replaced"
    if node.serial is not None and identity.serial is not None and node.serial != identity.serial:
        found.append(
            Refusal(
                f"its BMC belongs to machine {identity.serial}, but serial {node.serial} is declared", hint
            )
        )
    if node.mac is not None and identity.macs and node.mac not in identity.macs:
        macs = ", ".join(sorted(identity.macs))
        found.append(Refusal(f"its BMC's machine has the MACs {macs}, but {node.mac} is declared", hint))
    by_serial = names_a_machine(identity.serial)
    if not by_serial and machine_uuid(identity.uuid) is None:
        reported = "no serial number" if identity.serial is None else f"the serial number {identity.serial!r}"
        found.append(
            Refusal(
                f"its BMC reports {reported} and no UUID, so the booted machine could not be identified",
                "set it with the vendor's tool: a MAC address alone is not trusted",
            )
        )
    elif not (by_serial and node.serial is not None) and (node.mac is None or not identity.macs):
        declare = f"`serials: [{identity.serial}]`, if its label matches" if by_serial else "`macs:`"
        found.append(
            Refusal(
                "neither its serial number nor a MAC that its BMC reports is declared, so the machine cannot be identified",
                f"declare it: {declare}",
            )
        )
    return found


def _port(node: Node, identity: BmcIdentity) -> list[Refusal]:
    if node.mac is None and not identity.macs:
        return [
            Refusal(
                "neither its declaration nor its BMC has a MAC, which its agent needs to find its network port",
                "declare it with `macs:`, or in the column mac of `machines`",
            )
        ]
    return []


def _running(node: Node, seen: Seen) -> list[Refusal]:
    found = []
    if seen.power is not Power.OFF:
        found.append(
            Refusal(
                f"its power is {seen.power}, and a running machine is never reset",
                f"once nothing on it is needed: rackwright bmc power FILE soft --limit {node.name}",
            )
        )
    if seen.answers:
        found.append(
            Refusal(
                "its address answers on the SSH port",
                "it is already running, or another machine has its address",
            )
        )
    return found


def _secure_boot(node: Node, seen: Seen) -> list[Refusal]:
    found = []
    install = node.install
    if install is not None and seen.secure_boot is not None and seen.secure_boot is not install.secure_boot:
        state, wanted = ("on", "off") if seen.secure_boot else ("off", "on")
        found.append(
            Refusal(
                f"Secure Boot is {state}, but {wanted} is declared",
                f"turn it {wanted} in the firmware, or declare `secure_boot: {str(seen.secure_boot).lower()}`",
            )
        )
    return found


def _was_ready(node: Node, identity: BmcIdentity, typed: str | None) -> list[Refusal]:
    name, what = name_to_type(node.serial, identity.serial, identity.uuid)
    if typed is not None:
        return _typed(typed, name, what)
    return [
        Refusal(
            "it is already installed",
            f"to erase it, type its {what}: --reinstall {node.name}={name or 'SERIAL'}",
        )
    ]


def _to_be_erased(node: Node, identity: BmcIdentity, typed: str | None) -> list[Refusal]:
    """An erasure is always confirmed with what is read off the machine, so it is not printed here."""
    name, what = name_to_type(node.serial, identity.serial, identity.uuid)
    if typed is not None:
        return _typed(typed, name, what)
    option = f"--serial {node.name}={'UUID' if what == 'UUID' else 'SERIAL'}"
    return [Refusal(f"its {what} was not given", f"to erase all its disks: {option}; {_WHERE[what]}")]


def _typed(typed: str, name: str | None, what: str) -> list[Refusal]:
    return [] if typed == name else [Refusal(f"{typed} is not its {what}", _WHERE[what])]
