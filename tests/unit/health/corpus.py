"""Recorded documents, judged and compared with their labels.

    python -m tests.unit.health.corpus FOLDER [--all]        the table, and each document judged wrongly
    python -m tests.unit.health.corpus --write PAGE ...      put the figures of the own corpus into pages
    python -m tests.unit.health.corpus --words               a word for each document of the own corpus, as JSON

A healthy document must yield neither a FAIL that drains nor an UNKNOWN of a check that may drain; a
faulty one must get its declared action from one of its declared checks. What is only there to be
parsed must be read; what is ambiguous is shown and not counted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from rackwright.burnin.expectation import Expectation, judge_table
from rackwright.burnin.table import Unreadable, parse_nccl_tests
from rackwright.health.captured.judged import judge_capture
from rackwright.health.captured.kinds import KINDS, read_capture
from rackwright.health.expected import Expected
from rackwright.health.judge import hardest
from rackwright.health.probe.source import Unavailable
from rackwright.health.registry import CHECKS
from rackwright.health.verdict import Action, HealthResult
from rackwright.status import Status
from rackwright.workload.slurm.output import parse_nodes
from tests.unit.health.corpus_entries import OWN, Entry, beside, declared, load

READERS = {
    **{kind.name: kind for kind in KINDS},
    "lspci -vvv": next(kind for kind in KINDS if kind.name == "lspci"),
}
NOT_READ = {
    "rocm-smi": "the probe asks amd-smi",
    "docs/amd-smi-xgmi.txt": "a table; the probe asks for the topology as JSON",
}
"""Kinds and documents that are kept for a reader to come; the table shows them as not read."""
ROOT_MOUNT = "/dev/sda1 / ext4 rw,relatime 0 0\n"
"""Of an excerpt of mounts: what every node has beside it."""
Judge = Callable[[Expected, object], list[HealthResult]]


@dataclass(frozen=True)
class Outcome:
    """What became of one document."""

    entry: Entry
    unread: str = ""
    """Why it could not be read."""
    false_drain: bool = False
    unknown: bool = False
    missed: bool = False
    judged: bool = True
    """Whether any check judged it."""
    evidence: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        """Whether it is as the label says."""
        unread = self.unread and not {self.entry.kind, self.entry.file} & set(NOT_READ)
        return not (unread or self.false_drain or self.unknown or self.missed)

    @property
    def word(self) -> str:
        """One word for it."""
        words = {"unread": bool(self.unread), "false drain": self.false_drain, "miss": self.missed}
        return next((word for word, there in words.items() if there), "UNKNOWN" if self.unknown else "right")


def judge_entry(entry: Entry, text: str, judge: Judge = judge_capture) -> Outcome:
    """One document against its label."""
    if entry.kind == "nccl-tests":
        return _run(entry, text)
    if entry.kind == "scontrol show node":
        return Outcome(entry, judged=bool(parse_nodes(" ".join(text.split()))))
    unread = NOT_READ.get(entry.kind) or NOT_READ.get(entry.file)
    if unread or entry.kind not in READERS:
        return Outcome(entry, unread=unread or f"no reader for {entry.kind}", judged=False)
    if entry.kind == "mounts" and " / " not in text:
        text = ROOT_MOUNT + text
    try:
        capture = read_capture(text, READERS[entry.kind], beside(entry))
    except Unavailable as error:
        return Outcome(entry, unread=str(error))
    _ask_mounts(capture.document["sections"])
    if entry.label == "parse-only":
        return Outcome(entry, judged=False)
    return _compare(entry, judge(declared(entry, capture), capture))


def _ask_mounts(sections: dict) -> None:
    """What the probe would have met: a user's own FUSE mount refuses root, all others answer."""
    for mount in sections.get("mounts", {"data": {"mounts": []}})["data"]["mounts"]:
        user = mount["type"].startswith("fuse.")
        why = f"`stat -f {mount['target']}` exited 1: Permission denied" if user else None
        asked = (None, None, None) if user else (0.01, 10.0, 1.0)
        mount.update(zip(("seconds", "used_percent", "inodes_percent"), asked, strict=True), why=why)


def _compare(entry: Entry, results: list[HealthResult]) -> Outcome:
    hard = [one for one in results if one.status is Status.FAIL and one.action.rank >= Action.DRAIN.rank]
    unknown = [one for one in results if one.status is Status.UNKNOWN and may_drain(one)]
    healthy, faulty = entry.label == "healthy", entry.label == "faulty"
    return Outcome(
        entry,
        false_drain=healthy and bool(hard),
        unknown=healthy and bool(unknown),
        missed=faulty and not _caught(entry, results),
        judged=any(one.status is not Status.OUT_OF_SCOPE for one in results),
        evidence=tuple(
            f"{one.check} {one.status.value} {one.action.value}: {one.evidence}" for one in hard + unknown
        ),
    )


def may_drain(result: HealthResult) -> bool:
    """Whether a FAIL of its check takes a node out."""
    return CHECKS[result.check].action.rank >= Action.DRAIN.rank


def _caught(entry: Entry, results: list[HealthResult]) -> bool:
    """By one of its checks, with its action, and nothing harder asked for."""
    failed = [one for one in results if one.status is Status.FAIL]
    if entry.expect is None:
        return any(one.action.rank >= Action.DRAIN.rank for one in failed)
    action = Action(entry.expect["action"])
    by = [one for one in failed if one.check in entry.expect["checks"] and one.action is action]
    return bool(by) and hardest(failed) is action


def _run(entry: Entry, text: str) -> Outcome:
    """A table of nccl-tests is sound, or nothing is known of the run."""
    ranks = sum(line.lstrip("# 0123456789:").startswith("Rank ") for line in text.splitlines())
    collective = "alltoall" if "alltoall" in entry.file + entry.why else "all_reduce"
    try:
        table = parse_nccl_tests(text)
        expected = Expectation((table.collective or collective).removesuffix("_perf"), ranks, (), ())
        found = [finding.text for finding in judge_table(table, expected)]
    except Unreadable as error:
        found = [str(error)]
    broken = entry.label == "broken run"
    return Outcome(
        entry, unknown=bool(found) and not broken, missed=broken and not found, evidence=tuple(found)
    )


def judge_folder(folder: Path, judge: Judge = judge_capture) -> list[Outcome]:
    """Every document of a folder."""
    entries = load(folder)
    return [judge_entry(one, (folder / one.file).read_text(errors="replace"), judge) for one in entries]


def lines(outcomes: Iterable[Outcome], *, everything: bool) -> list[str]:
    """Each document judged wrongly, or every one."""
    found = []
    for one in outcomes:
        if everything or not one.right:
            found.append(f"{one.word:12} {one.entry.label:10} {one.entry.file}: {one.entry.why[:90]}")
            found += [f"             {text[:170]}" for text in (one.evidence or (one.unread,))[:6] if text]
    return found


def main(arguments: list[str]) -> int:
    """Print the table, or write it into pages."""
    from tests.unit.health.corpus_table import before, table, written

    if arguments[:1] == ["--write"]:
        outcomes = judge_folder(OWN)
        for page in map(Path, arguments[1:]):
            page.write_text(written(page.read_text(), outcomes))
        return 0
    folder = next((Path(one) for one in arguments if not one.startswith("--")), OWN)
    earlier = before() if folder == OWN else {}
    outcomes = judge_folder(folder)
    if "--words" in arguments:
        sys.stdout.write(json.dumps({one.entry.file: one.word for one in outcomes}, indent=0) + "\n")
        return 0
    shown = lines(outcomes, everything="--all" in arguments)
    sys.stdout.write(table(outcomes, earlier) + "\n" + "\n".join(shown) + "\n")
    return 0 if all(one.right for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
