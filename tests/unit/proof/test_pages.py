"""What the pages say of a suite, and that the committed ones are up to date."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from rackwright.errors import RackwrightError
from tests.proof import pages
from tests.proof.ledger import Counts, Ledger, Passed, Result, save
from tests.proof.runner import ROOT
from tests.proof.suites import Tier
from tests.proof.tree import Tree
from tests.unit.proof.records import record


def test_the_committed_pages_are_up_to_date():
    for name, text in pages.rendered(ROOT).items():
        assert (ROOT / name).read_text() == text, f"{name} is out of date: run `make proof-pages`"


@pytest.fixture
def cell(repository, make_suite):
    """The last cell of README's table for a full run with these fields."""

    def last(**fields) -> str:
        suite, tree = make_suite(), Tree(repository.root)
        fields = {"digest": tree.digest(suite, Tier.FULL), **fields}
        ledger = Ledger().with_record(record(**fields), Tier.FULL)
        return pages.table(ledger, (suite,), tree).splitlines()[-1].split(" | ")[-1].removesuffix(" |")

    return last


@pytest.fixture
def rows(repository, make_suite):
    """docs/proof.md as rows: name, full, smoke."""

    def of(ledger: Ledger) -> dict[str, tuple[str, str]]:
        text = pages.page(ledger, (make_suite(),), Tree(repository.root)).partition("## engine")[2]
        return {
            row[1]: (row[2], row[3])
            for row in re.findall(r"^(\| (.+?) \| (.*?) ?\| (.*?) ?\|)$", text, re.MULTILINE)
        }

    return of


def test_a_suite_that_never_ran(repository, make_suite, rows):
    table = pages.table(Ledger(), (make_suite(),), Tree(repository.root))
    assert table.splitlines()[-1] == "| [`engine`](docs/proof.md#engine) | The engine holds. | not run |"
    assert rows(Ledger()) == {
        "result": ("not run", "not run"),
        "run it": ("`make proof SUITE=engine`", "`make proof SUITE=engine SMOKE=1`"),
    }


def test_a_smoke_run_is_no_full_run(repository, make_suite, rows):
    ledger = Ledger().with_record(record(), Tier.SMOKE)
    assert pages.table(ledger, (make_suite(),), Tree(repository.root)).endswith("| not run |")
    assert rows(ledger)["result"] == ("not run", "passed")
    assert rows(ledger)["tests"] == ("", "12 passed")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "passed 2026-11-22, unchanged since"),
        ({"digest": "0" * 64}, "passed 2026-11-22, files changed since"),
        ({"result": Result.FAILED}, "**failed** 2026-11-22, unchanged since; never passed"),
        (
            {
                "result": Result.TIMED_OUT,
                "digest": "0" * 64,
                "last_passed": Passed(date=datetime(2026, 10, 1, tzinfo=UTC), commit="a" * 40),
            },
            "**timed out** 2026-11-22, files changed since; last passed 2026-10-01",
        ),
    ],
)
def test_the_last_full_run_in_short(cell, fields, text):
    assert cell(**fields) == text


def test_a_section_has_all_of_a_run(rows):
    failed = record(
        result=Result.FAILED,
        reason="1 tests failed, 0 errors.",
        tests=Counts(passed=11, failed=1),
        uncommitted=True,
        attempts=2,
        failed_before=3,
        last_passed=Passed(date=datetime(2026, 10, 1, tzinfo=UTC), commit="a" * 40),
    )
    full = {name: cells[0] for name, cells in rows(Ledger().with_record(failed, Tier.FULL)).items()}
    assert full == {
        "result": "failed",
        "reason": "1 tests failed, 0 errors.",
        "last passed": "2026-10-01, commit aaaaaaaaaaaa",
        "ended (UTC)": "2026-11-22 15:04:05",
        "commit": "0123456789ab, with uncommitted changes",
        "files it depends on": "have changed since",
        "tests": "11 passed, 1 failed",
        "attempts": "2; 3 of the tests that passed had failed before",
        "time": "1 h 2 min",
        "CPU seconds": "1200",
        "CPU time stolen": "1.2%",
        "memory at its peak": "6144 MiB",
        "measured": "lab up: 163 s; rope: 7 m",
        "machine": record().machine,
        "run it": "`make proof SUITE=engine`",
    }


def test_writing_replaces_what_is_between_the_markers_and_is_stable(repository, make_suite):
    (repository.root / "docs").mkdir(exist_ok=True)
    save(repository.root / pages.LEDGER, Ledger().with_record(record(), Tier.FULL))
    pages.update(repository.root, (make_suite(),))
    readme = (repository.root / "README.md").read_text()
    assert readme.startswith(f"# Cluster\n\n{pages.BEGIN}\n| suite |")
    assert readme.endswith(f"{pages.END}\n\nThe rest.\n")
    assert "stale" not in readme
    assert "## engine" in (repository.root / pages.PAGE).read_text()
    before = {name: (repository.root / name).stat().st_mtime_ns for name in (pages.PAGE, pages.README)}
    pages.update(repository.root, (make_suite(),))
    assert before == {name: (repository.root / name).stat().st_mtime_ns for name in before}


def test_a_readme_without_the_markers_is_an_error(repository):
    repository.write("README.md", f"{pages.BEGIN}\n")
    with pytest.raises(RackwrightError, match="has no lines <!-- proof: begin --> and <!-- proof: end -->"):
        pages.rendered(repository.root)
