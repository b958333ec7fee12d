"""Documents about plans, applies, drift and runs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from rackwright.plan.document import ChangeDocument
from rackwright.schemas.base import ClusterName, Document, ExitStatus, Part, Sha256


class Done(Part):
    """What became of one node."""

    node: str
    ok: bool = Field(description="Whether it is as declared, apart from a reboot that is due.")
    changed: int = Field(ge=0, description="Operations that changed something.")
    seconds: float
    unreachable: bool = Field(description="It could not be reached, or was lost.")
    error: str | None = Field(
        description="The failed operation with its last command and output; null: none."
    )
    reboot: tuple[ChangeDocument, ...] = Field(description="What only a reboot brings.")


class Apply(Document):
    """`apply`: what it did on each node. Without anything to do, or declined, `nodes` is empty."""

    kind: Literal["rackwright.apply"]
    cluster: str = ClusterName
    exit_code: int = ExitStatus
    run: str | None = Field(description="The run, as `rackwright runs` names it; null: nothing was changed.")
    planned_changes: int = Field(ge=0, description="Pairs of node and operation in the plan that was shown.")
    applied: bool = Field(description="Whether it was carried out: not declined, and not nothing to do.")
    interrupted: bool
    unknown: dict[str, str] = Field(description="Why a node's plan is not known, by node.")
    nodes: tuple[Done, ...] = Field(description="In the order of the cluster file.")
    notes: tuple[str, ...] = Field(
        description="Sentences for the operator, e.g. nodes that were left drained."
    )


class DriftOperation(Part):
    """An operation that would bring a drifted node back."""

    role: str
    name: str
    disruptive: bool
    changes: tuple[ChangeDocument, ...]
    commands: tuple[str, ...]


class DriftNode(Part):
    """One node."""

    node: str
    state: Literal["in sync", "drifted", "unreachable", "unknown"]
    error: str | None
    note: str | None
    evaluated: int = Field(
        ge=0, description="Operations that were compared; 0: its answers have the digest of its last sync."
    )
    last_in_sync: float | None = Field(
        description="Unix time of the last check that found it in sync; null: none."
    )
    reboot: tuple[ChangeDocument, ...]
    operations: tuple[DriftOperation, ...]


class Repair(Part):
    """What `--repair` did, by node."""

    repaired: dict[str, int] = Field(description="Operations that changed something.")
    left: dict[str, str] = Field(description="Why a node was not repaired.")


class Drift(Document):
    """`drift`: whether each node is as declared."""

    kind: Literal["rackwright.drift"]
    rackwright: str
    cluster: str = ClusterName
    file_sha256: str = Sha256
    checked_at: float = Field(description="Unix time.")
    seconds: float
    nodes: tuple[DriftNode, ...]
    repair: Repair | None = Field(default=None, description="Only with `--repair`.")


class RunSummary(Part):
    """One run."""

    run: str
    cluster: str
    state: str
    nodes: int
    failed: tuple[str, ...]
    left_drained: tuple[str, ...]
    by: str
    command: str


class Runs(Document):
    """`runs`: the runs that changed something, newest last."""

    kind: Literal["rackwright.runs"]
    runs: tuple[RunSummary, ...]


class OneRun(Document, RunSummary):
    """`runs ID`: one run with its journal."""

    kind: Literal["rackwright.run"]
    events: tuple[dict[str, Any], ...] = Field(
        description="The journal, an event a line: `event`, `at` and what belongs to it."
    )
