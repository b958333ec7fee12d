"""What the checks of a node are about to ask, fetched in one execution before the first of them asks.

Checks are written as if every command went to the node by itself. Most of what they ask is the same
each time, so a run remembers what was asked of each node (hints, never answers) and the next one
sends those commands ahead in one batch, through the engine's helper. An answer is good for one
asking of one check, at its first attempt, for a minute of the run that fetched it. Everything else
goes to the node: what was not foreseen, what a check asks again, checks that wait for a claim to
come true, checks that act (`live=True`), checks of the whole cluster, and what a check of one node
asks of another.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed
from rackwright.factcache.answers import Answers, Asked
from rackwright.factcache.cache import FactCache
from rackwright.factcache.host_classes import host_class
from rackwright.model.cluster import Cluster
from rackwright.ssh import TIMED_OUT, RootShell
from rackwright.verify.selection import PlannedCheck

FRESH_SECONDS = 60.0
"""How long after it was fetched an answer may be used."""
_SLOW_SECONDS = 5.0
"""What takes longer is not sent ahead: everything else would wait for it."""
_BATCH_SECONDS = 120.0
_WORTH_A_BATCH = 3


@dataclass
class _Asking:
    """The check at hand, in the thread that asks it."""

    claim: str
    node: str
    first: bool
    """It is its first attempt."""
    used: set[str] = field(default_factory=set)


_asking: ContextVar[_Asking | None] = ContextVar("asking", default=None)


@contextmanager
def asked_by(planned: PlannedCheck, *, first: bool) -> Iterator[None]:
    """Within the block, this thread asks for a check that may be answered ahead."""
    check = planned.check
    foreseeable = check.scope == "node" and not check.live
    token = _asking.set(_Asking(_claim(planned), planned.node.name, first) if foreseeable else None)
    try:
        yield
    finally:
        _asking.reset(token)


def _claim(planned: PlannedCheck) -> str:
    return f"{planned.role}: {planned.check.name}"


class Ahead:
    """The foreseen commands and their answers, of one run."""

    def __init__(
        self, cluster: Cluster, shell: RootShell, checks: Sequence[PlannedCheck], folder: Path
    ) -> None:
        self._shell = shell
        self._factor = cluster.ssh.time_factor
        self._claims: dict[str, list[str]] = {}
        for planned in checks:
            if planned.check.scope == "node" and not planned.check.live:
                self._claims.setdefault(planned.node.name, []).append(_claim(planned))
        self._cache = FactCache(
            folder, {name: host_class(cluster.by_name[name]) for name in self._claims}, "questions only"
        )
        self._answers: dict[str, tuple[float, dict[str, CommandResult]]] = {}
        self._asked: dict[str, dict[str, list[str]]] = {name: {} for name in self._claims}

    def fetch(self, node: str) -> bool:
        """Ask a node what its checks asked last time; False if that was nothing or it cannot be done.

        ConnectionFailed if the node cannot be reached.
        """
        lines = list(dict.fromkeys(asked["command"] for asked in self._remembered(node)))
        if len(lines) < _WORTH_A_BATCH:
            return False
        questions: list[Asked] = [
            {"kind": "raw", "command": line, "seconds": _SLOW_SECONDS * self._factor} for line in lines
        ]
        answers = Answers(
            lambda command, stdin: self._shell.run(
                node, command, stdin=stdin, timeout=_BATCH_SECONDS * self._factor
            ),
            questions,
        )
        begun = time.monotonic()
        try:
            answers.fetch_all(None)
        except ConnectionFailed:
            raise
        except Exception:  # noqa: BLE001 - an unreadable answer predicts nothing; each check then asks by itself
            return False
        answered = ((line, answers.get(question)) for line, question in zip(lines, questions, strict=True))
        known = {line: result for line, result in answered if result and result.exit_status != TIMED_OUT}
        self._answers[node] = begun, known
        return bool(known)

    def answer(self, node: str, line: str) -> CommandResult | None:
        """The answer to a command of the check at hand; None if it must be run."""
        asking = _asking.get()
        if asking is None or not asking.first or asking.node != node or line in asking.used:
            return None
        begun, known = self._answers.get(node, (0.0, {}))
        if line not in known or time.monotonic() - begun > FRESH_SECONDS * self._factor:
            return None
        self._note(asking, line)
        return known[line]

    def ran(self, node: str, line: str, seconds: float) -> None:
        """A command was run by itself."""
        asking = _asking.get()
        if (
            asking is not None
            and asking.first
            and asking.node == node
            and seconds < _SLOW_SECONDS * self._factor
        ):
            self._note(asking, line)

    def save(self) -> None:
        """Remember what was asked, and what checks that this run left out asked before."""
        for node, asked in self._asked.items():
            if not asked:
                continue
            questions = [
                {"kind": "raw", "command": line, "claim": claim}
                for claim, lines in asked.items()
                for line in lines
            ]
            others = [one for one in self._cache.get(node).questions if one.get("claim") not in asked]
            self._cache.store(node, questions + others, None)
        self._cache.save()

    def _note(self, asking: _Asking, line: str) -> None:
        if line not in asking.used:
            asking.used.add(line)
            self._asked[asking.node].setdefault(asking.claim, []).append(line)

    def _remembered(self, node: str) -> list[Asked]:
        """Only what checks of this run asked that may still be asked ahead."""
        claims = self._claims.get(node)
        if not claims:
            return []
        return [one for one in self._cache.get(node).questions if one.get("claim") in claims]
