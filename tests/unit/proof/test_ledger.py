"""docs/proof.json: what is written is read back, and a damaged file is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from rackwright.errors import RackwrightError
from tests.proof.ledger import Ledger, Result, load, save
from tests.proof.suites import Tier
from tests.unit.proof.records import record


def test_no_file_is_an_empty_ledger(tmp_path):
    assert load(tmp_path / "proof.json") == Ledger()


def test_what_is_saved_is_loaded(tmp_path):
    file = tmp_path / "proof.json"
    ledger = Ledger()
    for name in ("b", "a"):
        for tier in (Tier.SMOKE, Tier.FULL):
            ledger = ledger.with_record(record(suite=name), tier)
    save(file, ledger)
    assert load(file) == ledger
    text = file.read_text()
    assert text.endswith("}\n")
    document = json.loads(text)
    assert [(name, list(tiers)) for name, tiers in document["suites"].items()] == [
        ("a", ["full", "smoke"]),
        ("b", ["full", "smoke"]),
    ]
    assert document["version"] == 1
    assert document["suites"]["a"]["full"]["date"] == "2026-11-22T15:04:05Z"
    assert list(tmp_path.iterdir()) == [file]
    save(file, load(file))
    assert file.read_text() == text


def test_a_failed_run_replaces_the_record_and_remembers_the_pass():
    old = Ledger().with_record(record(), Tier.FULL)
    failed = record(result=Result.FAILED, date=datetime(2026, 11, 23, tzinfo=UTC), commit="f" * 40)
    for _ in range(2):
        old = old.with_record(failed, Tier.FULL)
        now = old.record("engine", Tier.FULL)
        assert now.result is Result.FAILED
        assert now.last_passed.commit == record().commit
        assert now.last_passed.date == record().date
    assert old.with_record(record(), Tier.FULL).record("engine", Tier.FULL).last_passed is None


def test_a_failed_run_without_an_earlier_pass_has_none():
    ledger = Ledger().with_record(record(result=Result.TIMED_OUT), Tier.FULL)
    assert ledger.record("engine", Tier.FULL).last_passed is None
    assert ledger.record("engine", Tier.SMOKE) is None


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "Invalid JSON"),
        ('{"version": 2, "suites": {}}', "version: Input should be 1"),
        ('{"version": 1, "suites": {"a": {"full": {"suite": "a"}}}}', "suites.a.full.proves: Field required"),
        ('{"version": 1, "suites": {"a": {"whole": {}}}}', "suites.a.whole"),
        ("<<<<<<< HEAD\n{}", "Invalid JSON"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, text, what):
    file = tmp_path / "proof.json"
    file.write_text(text)
    with pytest.raises(RackwrightError) as error:
        load(file)
    assert error.value.message.startswith(f"{file} is damaged: ")
    assert what in error.value.message
    assert "git checkout -- proof.json" in error.value.hint
    assert file.read_text() == text
