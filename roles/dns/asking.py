"""Asks a resolver from a node: the node sends bytes and prints bytes, and everything is read here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rackwright.claims.check import CheckContext, Undetermined
from rackwright.roles.dns.options import DnsOptions
from rackwright.roles.dns.wire import DnsQuestion, NoAnswerError, Reply, read

SECONDS = 2.0
"""How long one answer may take."""
AT_ONCE = 200
"""Questions in one command: an argument list has room for 128 KiB."""
PROGRAM = """\
import socket, sys, time
source, server, seconds = sys.argv[1:4]
failed = 0
for question in sys.argv[4:]:
    if failed == 2:
        print("0", received, flush=True)
        continue
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    began = time.monotonic()
    try:
        s.settimeout(float(seconds))
        s.bind((source, 0))
        s.connect((server, 53))
        s.send(bytes.fromhex(question))
        received = s.recv(65535).hex()
        failed = 0
    except OSError as error:
        failed += 1
        received = "! " + (error.strerror or str(error) or type(error).__name__)
    print("%.3f" % (time.monotonic() - began), received, flush=True)
    s.close()
"""
"""Source address, server, seconds for each answer, questions in hex. Prints a line for each: seconds, then the answer in
hex or `!` and an error. Two failures in a row count for all further questions, each of which would cost the seconds."""


@dataclass(frozen=True)
class Answered:
    """The outcome of one question."""

    question: DnsQuestion
    seconds: float
    reply: Reply | None
    error: str = ""
    """Why there is no reply."""

    def __str__(self) -> str:
        if self.reply is None:
            return self.error
        return ", ".join(self.reply.values) if self.reply.values else self.reply.code


def ask(
    context: CheckContext[DnsOptions], server: str, questions: Sequence[DnsQuestion], source: str = "0.0.0.0"
) -> list[Answered]:
    """What a resolver answers to this node, in order. Undetermined where the node cannot ask."""
    found: list[Answered] = []
    for start in range(0, len(questions), AT_ONCE):
        some = questions[start : start + AT_ONCE]
        sent = [question.message(number).hex() for number, question in enumerate(some, 1)]
        arguments = (PROGRAM, source, server, f"{SECONDS:g}", *sent)
        lines = context.output(f"python3 -IS -c{' %s' * len(arguments)}", *arguments).splitlines()
        if len(lines) != len(some):
            raise Undetermined(f"the node printed {len(lines)} lines for {len(some)} questions to {server}")
        found += [
            answered(line, question, number)
            for number, (line, question) in enumerate(zip(lines, some, strict=True), 1)
        ]
        if found[-1].reply is None:
            break
    return found


def answered(line: str, question: DnsQuestion, number: int) -> Answered:
    """A line that PROGRAM printed."""
    seconds, _, received = line.partition(" ")
    try:
        took = float(seconds)
        if received.startswith("! "):
            return Answered(question, took, None, received[2:])
        return Answered(question, took, read(bytes.fromhex(received), question, number))
    except NoAnswerError as error:
        return Answered(question, took, None, f"sends no DNS answer: {error}")
    except ValueError as error:
        raise Undetermined(f"the node printed a line that cannot be read: {line[:80]!r}") from error
