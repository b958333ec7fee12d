"""docs/proof.json: the last run of each tier of each suite."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from rackwright.errors import RackwrightError
from rackwright.lab.state import write_text
from tests.proof.suites import Tier


class Result(StrEnum):
    """How a run ended."""

    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed out"


def _to_the_second(date: datetime) -> datetime:
    return date.astimezone(UTC).replace(microsecond=0)


Date = Annotated[AwareDatetime, AfterValidator(_to_the_second)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Counts(_Model):
    """Tests by outcome."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0


class Passed(_Model):
    """An earlier run that passed."""

    date: Date
    commit: str


class Record(_Model):
    """One run of one tier, in as many attempts as it took."""

    suite: str
    proves: str
    result: Result
    reason: str | None = None
    """Why it is not a pass, a full sentence."""
    date: Date
    """When it ended."""
    commit: str
    uncommitted: bool
    """Files that the suite depends on differed from that commit."""
    machine: str
    seconds: float
    cpu_seconds: float
    """What the whole machine spent meanwhile."""
    stolen: float = Field(ge=0, le=1)
    """The share of the machine's CPU time that its hypervisor gave to others."""
    memory_mib: int | None = None
    """The most memory in use at one time, beyond what the machine had in use before. Older records have none."""
    measured: dict[str, str] | None = None
    """What its tests measured, by name, with units."""
    tests: Counts
    attempts: int = Field(ge=1)
    failed_before: int = 0
    """Tests that passed in this attempt and had failed in an earlier one, on the same files."""
    environment: dict[str, str]
    paths: tuple[str, ...]
    digest: str
    last_passed: Passed | None = None
    """Only in a record of a run that did not pass."""


class Ledger(_Model):
    """All records: by suite, then by tier."""

    version: Literal[1] = 1
    suites: dict[str, dict[Tier, Record]] = {}

    def record(self, suite: str, tier: Tier) -> Record | None:
        return self.suites.get(suite, {}).get(tier)

    def with_record(self, record: Record, tier: Tier) -> Ledger:
        """The ledger with this record in place of the tier's older one, whose pass is remembered."""
        if record.result is not Result.PASSED and (old := self.record(record.suite, tier)) is not None:
            passed = Passed(date=old.date, commit=old.commit) if old.result is Result.PASSED else None
            record = record.model_copy(update={"last_passed": passed or old.last_passed})
        tiers = {**self.suites.get(record.suite, {}), tier: record}
        return Ledger(suites={**self.suites, record.suite: tiers})


def load(path: Path) -> Ledger:
    """The ledger; an empty one where there is no file."""
    try:
        return Ledger.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Ledger()
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise RackwrightError(
            f"{path} is damaged: {place + ': ' if place else ''}{first['msg']}",
            hint=f"`git checkout -- {path.name}` in its folder restores the committed one; after a merge "
            "conflict keep the record with the later date",
        ) from None


def save(path: Path, ledger: Ledger) -> None:
    """Replace the file atomically; suites by name, tiers and fields in a fixed order."""
    document: dict[str, Any] = ledger.model_dump(mode="json", exclude_none=True)
    document["suites"] = {
        name: {tier: tiers[tier] for tier in Tier if tier in tiers}
        for name, tiers in sorted(document["suites"].items())
    }
    write_text(path, json.dumps(document, indent=2) + "\n")
