"""Judges the three runs of the checkpoint stage. Pure."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rackwright.boundary import Refused, last_line
from rackwright.burnin.finding import Finding
from rackwright.status import Status
from rackwright.storage.received import LINE, Facts, results_of
from rackwright.storage.report import CheckpointResult
from rackwright.workload.protocol import Output

MODES = ("reference", "break", "resume")
KILLED = -int(signal.SIGKILL)


@dataclass(frozen=True)
class Run:
    """One of the three."""

    facts: tuple[Facts, ...] = ()
    exits: Mapping[int, int | None] = field(default_factory=dict)
    """Of each rank; below 0 the signal that ended it, None: it did not end in time."""
    missing: str | None = None
    """What PyTorch lacks."""
    errors: tuple[str, ...] = ()
    problem: str | None = None
    """Why the answer cannot be used."""

    @property
    def last(self) -> Facts | None:
        """What the first rank found in the end."""
        return self.facts[-1] if self.facts else None

    @property
    def why(self) -> str:
        """Why it came to nothing."""
        late = sorted(rank for rank, status in self.exits.items() if status is None)
        hung = f"ranks {', '.join(map(str, late))} did not end in time" if late else ""
        return self.problem or (self.errors[0] if self.errors else hung) or "it did not end"


def run_of(output: Output) -> Run:
    """Read the output of a run."""
    try:
        lines = results_of(LINE, output.text)
    except Refused as error:
        return Run(problem=f"unusable answer: {error}")
    exits = {
        int(rank): status
        for line in lines
        for rank, status in line.exits.items()
        if rank.isdigit() and len(rank) < 8
    }
    return Run(
        facts=tuple(line.facts for line in lines if line.facts is not None),
        exits=exits,
        missing=next((line.missing for line in lines if line.missing is not None), None),
        errors=tuple(f"rank {line.rank}: {line.error}" for line in lines if line.error is not None),
        problem=None if lines else f"{output.problem or 'no answer'} ({last_line(output.text)})",
    )


def judge(
    result: CheckpointResult, runs: Mapping[str, Run], most_percent: float | None
) -> tuple[CheckpointResult, tuple[Finding, ...]]:
    """The figures and the findings: FAIL if a save was lost or differs, UNKNOWN if that cannot be determined."""
    for mode in MODES:
        run = runs.get(mode)
        if run is None:
            return result, (_unknown(f"the run `{mode}` did not run"),)
        if run.missing is not None:
            return result, (_unknown(f"{run.missing}; see `storage_bench.torch` and `storage_bench.python`"),)
        if mode == "break":
            finding = _broken(result, run)
            if finding is not None:
                return result, (finding,)
            result = replace(result, save_seconds=run.facts[0].save_seconds)
        elif run.last is None or not run.last.digests:
            return result, (_lost(mode, run),)
    reference, broken, resumed = runs["reference"].last, runs["break"].facts[0], runs["resume"].last
    if reference is None or resumed is None:  # the loop above has returned then
        return result, (_unknown("a run reported no facts"),)
    result = replace(
        result,
        torch=resumed.torch,
        save_seconds=(*result.save_seconds, *resumed.save_seconds),
        load_seconds=resumed.load_seconds,
        loaded=resumed.loaded,
        partial_bytes=sum(resumed.partial.values()) if resumed.partial else None,
    )
    return result, (*_compared(result, reference, broken, resumed), *_share(result, most_percent))


def _broken(result: CheckpointResult, run: Run) -> Finding | None:
    """The run in which a rank dies has to have saved once, and to have lost that rank."""
    if not run.facts or run.facts[0].saved is None:
        return _unknown(f"the first save did not end: {run.why}")
    if any(one.survived for one in run.facts) or run.exits.get(result.killed_rank) != KILLED:
        ended = run.exits.get(result.killed_rank)
        return _unknown(
            f"rank {result.killed_rank} was not killed while it wrote (it ended with {ended}): {run.why}"
        )
    return None


def _lost(mode: str, run: Run) -> Finding:
    """A resume that fails although its program ran: checkpoints exist to prevent this."""
    failed = mode == "resume" and any("CheckpointException" in text for text in run.errors)
    text = f"the run `{mode}` failed: {run.why}"
    return Finding(Status.FAIL, f"checkpoint: {text}") if failed else _unknown(text)


def _compared(result: CheckpointResult, reference: Facts, broken: Facts, resumed: Facts) -> list[Finding]:
    found = []
    if resumed.loaded != broken.saved:
        said = f"checkpoint: {resumed.loaded} was loaded, but {broken.saved} was the last complete save"
        found.append(Finding(Status.FAIL, said))
    if not resumed.partial:
        found.append(
            _unknown(
                "the save in which the rank died left nothing, so it is unknown whether the rank died in mid-write"
            )
        )
    if resumed.matches is not True:
        found.append(
            Finding(
                Status.FAIL,
                f"checkpoint: the checksums of {resumed.loaded} differ from those that were saved",
            )
        )
    if resumed.digests != reference.digests:
        text = "checkpoint: training that resumed ends in a different state from uninterrupted training"
        found.append(Finding(Status.FAIL, text))
    if len(resumed.digests) != result.ranks:
        found.append(_unknown(f"{len(resumed.digests)} of {result.ranks} ranks returned a checksum"))
    return found


def _share(result: CheckpointResult, most_percent: float | None) -> list[Finding]:
    if result.percent is None or result.seconds is None:
        return [_unknown("no save was timed")]
    if most_percent is None or result.percent <= most_percent:
        return []
    said = (
        f"checkpoint: a save takes {result.seconds:.3g} s, {result.percent:.3g} % of the {result.interval_seconds:g} s "
        f"between two saves; the declared maximum is {most_percent:g} %"
    )
    return [Finding(Status.FAIL, said)]


def _unknown(text: str) -> Finding:
    return Finding(Status.UNKNOWN, f"checkpoint: {text}")
