"""The answers of one node, fetched in one execution instead of one per fact.

While a deploy is evaluated every command is a fact's. The questions of earlier runs are sent in one
batch (see rackwright.factcache.helper) and answered from it; a new question is executed by itself
and prefetched next time. While a plan is applied, a command that is not a known question changes the
node: earlier answers are dropped, and the questions up to the next planned change are fetched again
in one batch.

A node without a working Python is asked one by one. One whose helper ends well and prints something other
than answers is broken or hostile: Refused, which the caller turns into that node's error.
"""

from __future__ import annotations

import base64
import binascii
import json
import marshal
import re
import threading
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from rackwright.boundary import Refused, decompressed, last_line, printable, read_json
from rackwright.command import CommandResult
from rackwright.node_programs import FACT_HELPER, one_text

Asked = dict[str, Any]
Ask = Callable[[str, bytes], CommandResult]
"""(command, stdin) -> result, run with the node's privileges."""
AnswerLines = list[Any]
"""[exit status, lines of output, lines of errors]."""

_BOOT = (
    "python3 -IS -c 'import sys,zlib;r=sys.stdin.buffer;"
    'exec(compile(zlib.decompress(r.read(int(r.readline()))),"rackwright","exec"))\''
)
_WORTH_A_BATCH = 3
"""Starting Python on the node costs about as much as two or three single executions."""
_NO_PYTHON = (126, 127)
_DIGEST = re.compile("[0-9a-f]{64}")
_STATUS_MAX = 2**31
_reading = threading.Lock()
"""One reply is decompressed and read at a time: 64 threads must not hold 64 large ones at once."""


def key_of(question: Asked) -> str:
    """Identifies a question."""
    return json.dumps(question, sort_keys=True)


@cache
def _helper() -> bytes:
    source = zlib.compress(one_text(FACT_HELPER).encode(), 9)
    return f"{len(source)}\n".encode() + source


def pack(questions: Sequence[Asked]) -> bytes:
    """Questions as the helper reads them: plain data in marshal's oldest format, which every Python reads."""
    return zlib.compress(marshal.dumps(json.loads(json.dumps(list(questions))), 2), 6)


@dataclass(frozen=True)
class Reply:
    """What the helper sent."""

    digest: str | None
    """Of the answers; None: they are the expected ones, and none is in it."""
    answers: list[AnswerLines] = field(default_factory=list)
    """As many as were asked."""


def read_reply(text: str, count: int, *, may_be_same: bool) -> Reply:
    """The helper's reply to `count` questions; Refused where it is anything else.

    `may_be_same`: it was given a digest that its answers may still have.
    """
    try:
        packed = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise Refused(f"it is not what the fact helper prints: {printable(text, 80)}") from None
    data = read_json(decompressed(packed))
    if may_be_same and data == {"same": True}:
        return Reply(None)
    if not isinstance(data, dict) or data.keys() != {"digest", "answers"}:
        raise Refused("it has no digest and answers")
    digest, answers = data["digest"], data["answers"]
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise Refused("its digest is not a SHA-256")
    if not isinstance(answers, list) or len(answers) != count:
        raise Refused(f"it has not {count} answers, as many as were asked")
    if not all(map(_is_answer, answers)):
        raise Refused("an answer is not an exit status with lines of output and of errors")
    return Reply(digest, answers)


def _is_answer(one: Any) -> bool:  # noqa: ANN401 - JSON data
    if not isinstance(one, list) or len(one) != 3:
        return False
    status, out, err = one
    return (
        type(status) is int
        and abs(status) < _STATUS_MAX
        and all(
            isinstance(lines, list) and all(isinstance(line, str) for line in lines) for lines in (out, err)
        )
    )


@dataclass
class Answers:
    """The questions of one node and their answers, as far as they are known."""

    ask: Ask
    prefetched: list[Asked] = field(default_factory=list)
    """In the order in which the last evaluation asked them."""
    packed: bytes | None = None
    """`prefetched` as it is sent, where it was packed once for many nodes."""
    in_order: list[Asked] = field(default_factory=list)
    """The questions of this evaluation so far."""
    asker: Callable[[], str] = str
    """Names the current operation, `role | name`."""
    askers: list[str] = field(default_factory=list)
    """The operation behind each of `in_order`."""
    boundaries: list[int] = field(default_factory=list)
    """Counts of questions asked by the end of each operation that would change something."""
    digest: str | None = None
    """Of all prefetched answers."""
    note: str | None = None
    """Why questions are executed one by one on this node; None: they are not."""
    executions: int = 0
    _known: dict[str, CommandResult] = field(default_factory=dict)
    _places: dict[str, int] = field(default_factory=dict)
    """Position of each question in `in_order`."""
    _position: int = 0
    _applying: bool = False

    def fetch_all(self, expect: str | None) -> bool:
        """Fetch every prefetched answer; True if they still have the digest `expect`. Refused: see read_reply."""
        if not self.prefetched:
            return False
        reply = self._batch(self.packed or pack(self.prefetched), expect, len(self.prefetched))
        if reply is None:
            return False
        if reply.digest is None:
            return True
        self.digest = reply.digest
        self._note_answers(self.prefetched, reply.answers)
        return False

    @property
    def whole(self) -> bool:
        """Whether the digest covers exactly the questions that were asked."""
        return self.digest is not None and self.in_order == self.prefetched

    def mark_change(self) -> None:
        """The operation just evaluated would change something."""
        self.boundaries.append(len(self.in_order))

    def begin_apply(self) -> None:
        """From now on answers may be stale, and commands may be changes."""
        self._applying = True
        self._position = 0
        self._known.clear()

    def is_question(self, question: Asked) -> bool:
        """Whether it only reads: everything while planning, what was asked then while applying."""
        if not self._applying or question["kind"] != "shell":
            return True
        return key_of(question) in self._places

    def forget(self) -> None:
        """The node was changed."""
        self._known.clear()

    def get(self, question: Asked) -> CommandResult | None:
        """The answer, fetched with what will be asked next; None if it must be executed by itself."""
        key = key_of(question)
        if not self._applying:
            if key not in self._places:
                self._places[key] = len(self.in_order)
                self.in_order.append(question)
                self.askers.append(self.asker())
            return self._known.get(key)
        if key not in self._known:
            self._fetch_ahead(key)
        return self._known.get(key)

    def learn(self, question: Asked, result: CommandResult) -> None:
        """Keep the answer of a question that was executed by itself."""
        self._known[key_of(question)] = result

    def _fetch_ahead(self, key: str) -> None:
        """While applying: everything up to the next planned change, which is where answers end."""
        start = self._places.get(key, -1)
        if start < self._position:
            return
        end = next((mark for mark in self.boundaries if mark > start), len(self.in_order))
        self._position = start
        ahead = self.in_order[start:end]
        if len(ahead) < _WORTH_A_BATCH:
            return
        reply = self._batch(pack(ahead), None, len(ahead))
        if reply is not None:
            self._note_answers(ahead, reply.answers)

    def _batch(self, packed: bytes, expect: str | None, count: int) -> Reply | None:
        if self.note is not None:
            return None
        result = self.ask(_BOOT, _helper() + f"{expect or '-'}\n".encode() + packed)
        self.executions += 1
        if result.exit_status in _NO_PYTHON:
            self.note = "no python3 on the node: answered by plain executions"
            return None
        if result.exit_status != 0:
            output = last_line(result.stdout, result.stderr)
            self.note = f"the fact helper exited {result.exit_status} with the output {output}: answered by plain executions"
            return None
        try:
            with _reading:
                return read_reply(result.stdout, count, may_be_same=expect is not None)
        except Refused as refused:
            raise Refused(f"its answer is invalid: {refused}") from None

    def _note_answers(self, questions: Sequence[Asked], answers: Sequence[AnswerLines]) -> None:
        for question, (status, out, err) in zip(questions, answers, strict=True):
            self._known[key_of(question)] = CommandResult(
                question["command"], status, "\n".join(out), "\n".join(err)
            )
