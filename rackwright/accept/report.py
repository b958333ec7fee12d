"""Result of an acceptance, and the document it is stored as."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from rackwright.accept.stages import StageResult
from rackwright.burnin.report import BurninReport
from rackwright.claims.check import CheckResult
from rackwright.engine.run import Applied
from rackwright.errors import ExitCode
from rackwright.model.ranges import fold
from rackwright.plan.node_plan import PlanResult, changes_text
from rackwright.status import Status
from rackwright.storage.report import BenchReport
from rackwright.verify.report import VerifyReport

DOCUMENT_VERSION = 1


class Verdict(StrEnum):
    """The one word."""

    ACCEPTED = "ACCEPTED"
    REJECTED = "REJECTED"
    UNDECIDED = "UNDECIDED"


@dataclass(frozen=True)
class AcceptReport:
    """Every stage and what it found."""

    cluster: str
    file: str
    sha256: str
    """Of the cluster file's bytes."""
    nodes: tuple[str, ...]
    started: datetime
    """UTC."""
    seconds: float
    stages: tuple[StageResult, ...]
    versions: dict[str, str]
    applied: Applied | None = None
    second_plan: PlanResult | None = None
    """None: not run, or the apply's own plan was empty already."""
    verified: VerifyReport | None = None
    benched: BenchReport | None = None
    """None: not run, or no filesystem is declared that can be measured."""
    burnt_in: BurninReport | None = None
    simulated: tuple[str, ...] = ()
    """Nodes whose GPUs are the lab's invention."""

    @property
    def verdict(self) -> Verdict:
        """REJECTED when a stage failed, UNDECIDED when something is unknown, else ACCEPTED."""
        statuses = {stage.status for stage in self.stages}
        if Status.FAIL in statuses:
            return Verdict.REJECTED
        decided = statuses <= {Status.PASS, Status.WARN} and bool(statuses)
        return Verdict.ACCEPTED if decided else Verdict.UNDECIDED

    @property
    def exit_code(self) -> ExitCode:
        """0 accepted, 3 rejected, 4 undecided."""
        codes = {Verdict.REJECTED: ExitCode.CHECK_FAILED, Verdict.UNDECIDED: ExitCode.UNKNOWN}
        return codes.get(self.verdict, ExitCode.CLEAN)

    @property
    def out_of_scope(self) -> tuple[CheckResult, ...]:
        """Everything that was not examined because the declared platform cannot have it."""
        results = self.verified.results if self.verified is not None else ()
        return tuple(result for result in results if result.status is Status.OUT_OF_SCOPE)

    @property
    def line(self) -> str:
        """The verdict with what qualifies it: ACCEPTED: lab, 3 nodes, 7 things out of scope."""
        things = f"{len(self.out_of_scope)} thing{'' if len(self.out_of_scope) == 1 else 's'} out of scope"
        words = [f"{len(self.nodes)} node{'' if len(self.nodes) == 1 else 's'}", things]
        if self.simulated:
            words.append(f"GPUs simulated on {fold(self.simulated)}")
        reasons = [stage for stage in self.stages if stage.status in (Status.FAIL, Status.UNKNOWN)]
        if reasons:
            words.append(f"because of {', '.join(stage.name.value for stage in reasons)}")
        return f"{self.verdict.value}: {self.cluster}, {', '.join(words)}"

    def to_json(self) -> dict[str, Any]:
        """The versioned document behind report.json."""
        return {
            "kind": "rackwright.accept",
            "version": DOCUMENT_VERSION,
            "verdict": self.verdict.value,
            "exit_code": int(self.exit_code),
            "line": self.line,
            "cluster": self.cluster,
            "file": self.file,
            "sha256": self.sha256,
            "nodes": list(self.nodes),
            "started": self.started.isoformat(timespec="seconds"),
            "seconds": round(self.seconds, 2),
            "versions": self.versions,
            "stages": [_stage_json(stage) for stage in self.stages],
            "applied": _applied_json(self.applied) if self.applied is not None else None,
            "second_plan": plan_json(self.second_plan) if self.second_plan is not None else None,
            "verify": self.verified.to_json() if self.verified is not None else None,
            "storage": self.benched.to_json() if self.benched is not None else None,
            "burnin": self.burnt_in.to_json() if self.burnt_in is not None else None,
            "simulated_gpus": list(self.simulated),
            "out_of_scope": [
                {"role": result.role, "check": result.check, "node": result.node, "reason": result.evidence}
                for result in self.out_of_scope
            ],
        }


def plan_json(plan: PlanResult) -> dict[str, Any]:
    """A plan in short: what would change where; the differences themselves stay in `plan --out`."""
    return {
        "changes": plan.changes,
        "nodes": [
            {
                "node": node.node,
                "error": node.error,
                "unreachable": node.unreachable,
                "reboot": changes_text(node.reboot),
                "operations": [
                    {
                        "role": operation.role,
                        "name": operation.name,
                        "targets": [f"{change.kind} {change.target}" for change in operation.changes],
                    }
                    for operation in node.operations
                ],
            }
            for node in plan.nodes.values()
        ],
    }


def _stage_json(stage: StageResult) -> dict[str, Any]:
    return {
        "name": stage.name.value,
        "status": stage.status.value,
        "summary": stage.summary,
        "details": list(stage.details),
        "seconds": round(stage.seconds, 2),
    }


def _applied_json(applied: Applied) -> dict[str, Any]:
    result = applied.result
    return {
        "plan": plan_json(applied.plan),
        "nodes": [
            {"node": name, "ok": outcome.ok, "changed": outcome.changed, "error": outcome.error}
            for name, outcome in (result.nodes.items() if result is not None else ())
        ],
    }
