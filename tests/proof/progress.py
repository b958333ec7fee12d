"""What a run has done so far: a line for each test that ended, in a file that outlives the process.

The last line may be half written, because a process may be killed at any moment.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.proof.machine import Usage

FILE_VARIABLE = "RACKWRIGHT_PROOF_PROGRESS"
ATTEMPT_VARIABLE = "RACKWRIGHT_PROOF_ATTEMPT"
"""Environment variable with the file that the plugin in pytest's process writes to."""
PASSED, FAILED, ERROR, SKIPPED = "passed", "failed", "error", "skipped"


@dataclass
class Summary:
    """Every attempt together."""

    outcomes: dict[str, str] = field(default_factory=dict)
    """The last outcome of each test."""
    failed_ever: set[str] = field(default_factory=set)
    collection_errors: set[str] = field(default_factory=set)
    """Of the last attempt."""
    attempts: int = 0
    measured: dict[str, str] = field(default_factory=dict)
    """What tests have recorded with pytest's record_property, by name."""
    usage: Usage = field(default_factory=Usage)

    def count(self, outcome: str) -> int:
        return sum(1 for one in self.outcomes.values() if one == outcome)

    @property
    def passed(self) -> set[str]:
        return {test for test, outcome in self.outcomes.items() if outcome == PASSED}


@dataclass(frozen=True)
class Progress:
    """The file of one suite, tier and digest."""

    path: Path

    def begin(self) -> int:
        """Open another attempt; its number."""
        number = self.summary().attempts + 1
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and not self.path.read_bytes().endswith(b"\n"):
            self._append("\n")
        self.note(number, Usage())
        return number

    def note(self, attempt: int, usage: Usage, **event: Any) -> None:
        """Append what an attempt has used since it began, and a test or a file that ended."""
        self._append(json.dumps({"attempt": attempt, **event, "usage": asdict(usage)}) + "\n")

    def summary(self) -> Summary:
        """Everything the file has, without what is damaged."""
        summary, used = Summary(), dict[int, Usage]()
        for event in self._events():
            attempt = event["attempt"]
            used[attempt] = Usage(**event["usage"])
            if attempt > summary.attempts:
                summary.attempts = attempt
                summary.collection_errors.clear()
            if "test" in event:
                summary.outcomes[event["test"]] = event["outcome"]
                summary.measured |= event.get("measured", {})
                if event["outcome"] in (FAILED, ERROR):
                    summary.failed_ever.add(event["test"])
            elif "not_collected" in event:
                summary.collection_errors.add(event["not_collected"])
        summary.usage = sum(used.values(), Usage())
        return summary

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)

    def _append(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)

    def _events(self) -> list[dict[str, Any]]:
        try:
            lines = self.path.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return []
        events = []
        for line in lines:
            try:
                event = json.loads(line)
                Usage(**event["usage"])
                event["attempt"] + 0
            except (ValueError, KeyError, TypeError):
                continue  # half written
            events.append(event)
        return events
