"""DNS messages (RFC 1035, 4.1): questions as bytes, and answers read back. What comes from a resolver is not trusted."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import IPv4Address

A, PTR = 1, 12
_TYPES = {A: "A", PTR: "PTR"}
_INTERNET = 1
_RECURSION_DESIRED, _IS_ANSWER = 0x0100, 0x8000
_CODES = {0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED"}
_MOST_JUMPS = 64
_POINTER, _HEADER = 0xC0, 12


class NoAnswerError(ValueError):
    """Bytes that are not an answer to the question."""


@dataclass(frozen=True)
class DnsQuestion:
    """A name, without the dot at the end, and what is asked of it."""

    name: str
    type: int = A

    def __str__(self) -> str:
        return f"{self.name} {_TYPES.get(self.type, self.type)}"

    def message(self, identity: int) -> bytes:
        """The question as it is sent."""
        labels = b"".join(bytes([len(label)]) + label.encode() for label in self.name.split("."))
        header = struct.pack(">6H", identity, _RECURSION_DESIRED, 1, 0, 0, 0)
        return header + labels + b"\0" + struct.pack(">2H", self.type, _INTERNET)


@dataclass(frozen=True)
class Reply:
    """What a resolver answers."""

    code: str
    """NOERROR, NXDOMAIN, SERVFAIL, REFUSED, ..."""
    values: tuple[str, ...] = ()
    """Addresses or names, sorted."""


def reverse(address: str) -> DnsQuestion:
    """The question for the name of an address."""
    return DnsQuestion(IPv4Address(address).reverse_pointer, PTR)


def read(message: bytes, question: DnsQuestion, identity: int) -> Reply:
    """The answer to this question; NoAnswerError where the bytes are something else."""
    try:
        return _read(message, question, identity)
    except (struct.error, IndexError) as error:
        raise NoAnswerError(f"{len(message)} bytes that end too early") from error


def _read(message: bytes, question: DnsQuestion, identity: int) -> Reply:
    found, flags, questions, answers, _, _ = struct.unpack_from(">6H", message)
    if found != identity or not flags & _IS_ANSWER:
        raise NoAnswerError("it is not the answer to this question")
    place = _HEADER
    for _ in range(questions):
        _, place = _name(message, place)
        place += 4
    values = []
    for _ in range(answers):
        _, place = _name(message, place)
        kind, _, _, length = struct.unpack_from(">2HIH", message, place)
        place += 10
        if place + length > len(message):
            raise IndexError
        if kind == question.type:
            values.append(_value(message, kind, place, length))
        place += length
    code = flags & 0x000F
    return Reply(_CODES.get(code, f"code {code}"), tuple(sorted(values)))


def _value(message: bytes, kind: int, place: int, length: int) -> str:
    if kind == PTR:
        return _name(message, place)[0]
    if length != 4:
        raise NoAnswerError(f"an address of {length} bytes")
    return str(IPv4Address(message[place : place + 4]))


def _name(message: bytes, place: int) -> tuple[str, int]:
    """A name, in lower case, and where the message goes on behind it."""
    labels: list[str] = []
    end: int | None = None
    for _ in range(_MOST_JUMPS):
        length = message[place]
        if length & _POINTER == _POINTER:
            end = place + 2 if end is None else end
            place = (length & ~_POINTER) << 8 | message[place + 1]
        elif length == 0:
            return ".".join(labels), place + 1 if end is None else end
        else:
            label = message[place + 1 : place + 1 + length]
            if length & _POINTER or len(label) < length:
                raise IndexError
            labels.append(label.decode("ascii", "backslashreplace").lower())
            place += 1 + length
    raise NoAnswerError("a name that never ends")
