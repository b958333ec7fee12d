"""docs/proof.md, and the table in README: rendered from the ledger and the tree, never from today's date."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

from rackwright.durations import duration
from rackwright.errors import RackwrightError
from rackwright.lab.state import write_text
from tests.proof import ledger as ledgers
from tests.proof.ledger import Ledger, Record, Result
from tests.proof.suites import SMOKE_TARGET_SECONDS, SUITES, Suite, Tier
from tests.proof.tree import Tree

LEDGER, PAGE, README = "docs/proof.json", "docs/proof.md", "README.md"
BEGIN, END = "<!-- proof: begin -->", "<!-- proof: end -->"
_INTRODUCTION = f"""\
# Proof

Some of what rackwright claims takes too long to test with every change. `make proof` tests it in suites and
writes their results to `{LEDGER}`. This page is made from that file by `make proof-pages`; do not edit it.

| command | what it runs |
|---|---|
| `make proof` | every suite that has not passed on the present files |
| `make proof SUITE=NAME` | one suite |
| `make proof SMOKE=1` | the smoke tiers, a small part of each suite; target: {duration(SMOKE_TARGET_SECONDS)} on an idle machine |
| `make proof SMOKE=1 SINCE=origin/main` | the smoke tiers of the suites that a change touches |
| `make proof SUITE=NAME AGAIN=1` | the whole suite, although it has passed |
| `make proof-status` | prints the age of each result |

A run that was interrupted or has failed continues where it stopped: tests that passed on the same files are not
repeated, and times are summed over the attempts. A run in which a test was skipped, or none ran, is not a pass.
CPU seconds are those of the whole machine during the run. The stolen share is the CPU time that the hypervisor
gave to other virtual machines. Memory is what the whole machine had in use beyond what it had before the run.
"""


def update(root: Path, suites: tuple[Suite, ...] = SUITES) -> None:
    """Write both pages."""
    for name, text in rendered(root, suites).items():
        if not (root / name).exists() or (root / name).read_text() != text:
            write_text(root / name, text)


def rendered(root: Path, suites: tuple[Suite, ...] = SUITES) -> dict[str, str]:
    """The whole text of both pages, by path."""
    ledger, tree = ledgers.load(root / LEDGER), Tree(root)
    return {
        PAGE: page(ledger, suites, tree),
        README: _between_markers((root / README).read_text(), table(ledger, suites, tree)),
    }


def table(ledger: Ledger, suites: tuple[Suite, ...], tree: Tree) -> str:
    """A line for each suite: what it proves, and its last full run."""
    lines = ["| suite | what it proves | last full run |", "|---|---|---|"]
    for suite in suites:
        record = ledger.record(suite.name, Tier.FULL)
        lines.append(
            f"| [`{suite.name}`]({PAGE}#{suite.name}) | {suite.proves} | {_in_short(record, suite, tree)} |"
        )
    return "\n".join(lines)


def page(ledger: Ledger, suites: tuple[Suite, ...], tree: Tree) -> str:
    """docs/proof.md."""
    return "\n".join([_INTRODUCTION, *(_section(ledger, suite, tree) for suite in suites)])


def changed(record: Record, suite: Suite, tier: Tier, tree: Tree) -> bool:
    """Whether the run was on other files, or was run in another way."""
    return record.digest != tree.digest(suite, tier)


def _in_short(record: Record | None, suite: Suite, tree: Tree) -> str:
    if record is None:
        return "not run"
    since = "files changed since" if changed(record, suite, Tier.FULL, tree) else "unchanged since"
    if record.result is Result.PASSED:
        return f"passed {record.date:%Y-%m-%d}, {since}"
    passed = f"last passed {record.last_passed.date:%Y-%m-%d}" if record.last_passed else "never passed"
    return f"**{record.result}** {record.date:%Y-%m-%d}, {since}; {passed}"


def _section(ledger: Ledger, suite: Suite, tree: Tree) -> str:
    runs = {tier: ledger.record(suite.name, tier) for tier in Tier}
    cells = {name: [cell(runs[tier], suite, tier, tree) for tier in Tier] for name, cell in _ROWS.items()}
    rows = [f"| {name} | {' | '.join(values)} |" for name, values in cells.items() if any(values)]
    return "\n".join(
        [
            f"## {suite.name}",
            "",
            _wrapped(suite.proves),
            "",
            "| | full | smoke |",
            "|---|---|---|",
            *rows,
            "",
            _wrapped(f"Depends on {', '.join(f'`{path}`' for path in sorted(suite.paths))}."),
            "",
        ]
    )


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 110, break_on_hyphens=False, break_long_words=False)


Cell = Callable[[Record | None, Suite, Tier, Tree], str]


def _of_record(text: Callable[[Record], str]) -> Cell:
    """A cell that is empty without a run."""
    return lambda record, suite, tier, tree: "" if record is None else text(record)


def _files(record: Record | None, suite: Suite, tier: Tier, tree: Tree) -> str:
    if record is None:
        return ""
    return "have changed since" if changed(record, suite, tier, tree) else "unchanged since"


def _tests(record: Record) -> str:
    counted = {
        "passed": record.tests.passed,
        "failed": record.tests.failed,
        "errors": record.tests.errors,
        "skipped": record.tests.skipped,
    }
    return ", ".join(f"{count} {what}" for what, count in counted.items() if count) or "none ran"


def _attempts(record: Record) -> str:
    if record.attempts == 1:
        return ""
    return f"{record.attempts}; {record.failed_before} of the tests that passed had failed before"


def _last_passed(record: Record) -> str:
    passed = record.last_passed
    return "" if passed is None else f"{passed.date:%Y-%m-%d}, commit {passed.commit[:12]}"


def _memory(record: Record) -> str:
    return "" if record.memory_mib is None else f"{record.memory_mib} MiB"


def _measured(record: Record) -> str:
    return "; ".join(f"{name}: {value}" for name, value in (record.measured or {}).items())


_ROWS: dict[str, Cell] = {
    "result": lambda record, suite, tier, tree: "not run" if record is None else str(record.result),
    "reason": _of_record(lambda record: record.reason or ""),
    "last passed": _of_record(_last_passed),
    "ended (UTC)": _of_record(lambda record: f"{record.date:%Y-%m-%d %H:%M:%S}"),
    "commit": _of_record(
        lambda record: record.commit[:12] + (", with uncommitted changes" * record.uncommitted)
    ),
    "files it depends on": _files,
    "tests": _of_record(_tests),
    "attempts": _of_record(_attempts),
    "time": _of_record(lambda record: duration(record.seconds)),
    "CPU seconds": _of_record(lambda record: f"{record.cpu_seconds:.0f}"),
    "CPU time stolen": _of_record(lambda record: f"{record.stolen:.1%}"),
    "memory at its peak": _of_record(_memory),
    "measured": _of_record(_measured),
    "machine": _of_record(lambda record: record.machine),
    "run it": lambda record, suite, tier, tree: (
        f"`make proof SUITE={suite.name}{' SMOKE=1' * (tier is Tier.SMOKE)}`"
    ),
}
"""Rows of a suite's table; one that is empty for both tiers is left out."""


def _between_markers(text: str, content: str) -> str:
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise RackwrightError(
            f"{README} has no lines {BEGIN} and {END}.", hint="put them where the table of proofs belongs"
        )
    return f"{before}{BEGIN}\n{content}\n{END}{after}"
