"""DNS messages: questions as sent, answers as resolvers send them, and bytes that are neither."""

from __future__ import annotations

import struct

import pytest

from rackwright.roles.dns.wire import PTR, DnsQuestion, NoAnswerError, Reply, read, reverse

QUESTION = DnsQuestion("head1.lab.test")
BACK = reverse("10.78.0.10")


def reply(question: DnsQuestion, *answers: tuple[int, bytes], code: int = 0, identity: int = 1) -> bytes:
    """An answer as unbound sends it: the question again, and names as pointers to it."""
    asked = question.message(identity)[12:]
    header = struct.pack(">6H", identity, 0x8180 | code, 1, len(answers), 0, 0)
    records = b"".join(
        b"\xc0\x0c" + struct.pack(">2HIH", kind, 1, 300, len(data)) + data for kind, data in answers
    )
    return header + asked + records


def test_the_question_as_it_is_sent():
    assert QUESTION.message(7).hex() == (
        "000701000001000000000000" + "0568656164310" + "36c61620474657374000001" + "0001"
    )
    assert str(BACK) == "10.0.78.10.in-addr.arpa PTR"


def test_addresses_are_read_and_sorted():
    message = reply(QUESTION, (1, bytes([10, 78, 0, 11])), (5, b"\xc0\x0c"), (1, bytes([10, 78, 0, 10])))
    assert read(message, QUESTION, 1) == Reply("NOERROR", ("10.78.0.10", "10.78.0.11"))


def test_a_name_may_point_back_into_the_message():
    name = b"\x05HEAD1\x03lab\x04test\0"
    assert read(reply(BACK, (PTR, name)), BACK, 1) == Reply("NOERROR", ("head1.lab.test",))
    arpa = 12 + len(b"\x0210\x01\x30\x0278\x0210\x07in-addr")
    assert read(reply(BACK, (PTR, b"\x05head1" + struct.pack(">H", 0xC000 | arpa))), BACK, 1) == Reply(
        "NOERROR", ("head1.arpa",)
    )


@pytest.mark.parametrize(("code", "name"), [(3, "NXDOMAIN"), (2, "SERVFAIL"), (5, "REFUSED"), (9, "code 9")])
def test_codes(code, name):
    assert read(reply(QUESTION, code=code), QUESTION, 1) == Reply(name)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\0" * 11,
        QUESTION.message(1),  # the question itself
        reply(QUESTION, identity=2),
        reply(QUESTION, (1, bytes(16))),
        reply(QUESTION, (1, bytes(4)))[:-1],
        reply(BACK, (PTR, b"\xc0\x3b")),  # a pointer to itself or beyond
        reply(BACK, (PTR, b"\x3fshort")),
        reply(QUESTION)[:12] + b"\xc0\x0c",
    ],
)
def test_what_is_no_answer_is_refused(message):
    question = BACK if b"\x04arpa" in message else QUESTION
    with pytest.raises(NoAnswerError):
        read(message, question, 1)


def test_every_truncation_is_refused_or_read():
    whole = reply(BACK, (PTR, b"\x05head1\x03lab\x04test\0"))
    for end in range(len(whole)):
        with pytest.raises(NoAnswerError):
            read(whole[:end], BACK, 1)
