"""The document of an acceptance, `report.json`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from rackwright.schemas.base import ClusterName, Document, ExitStatus, Part, Sha256
from rackwright.schemas.measured import Burnin, Started, Storage, Verify
from rackwright.status import Status


class Stage(Part):
    """One stage."""

    name: str
    status: Status
    summary: str
    details: tuple[str, ...]
    seconds: float


class ShortOperation(Part):
    """An operation without its differences."""

    role: str
    name: str
    targets: tuple[str, ...]


class ShortNode(Part):
    """What would change on one node."""

    node: str
    error: str | None
    unreachable: bool
    reboot: str
    operations: tuple[ShortOperation, ...]


class ShortPlan(Part):
    """A plan without its differences."""

    changes: int
    nodes: tuple[ShortNode, ...]


class AppliedNode(Part):
    """What became of one node."""

    node: str
    ok: bool
    changed: int
    error: str | None


class Applied(Part):
    """The apply of an acceptance."""

    plan: ShortPlan
    nodes: tuple[AppliedNode, ...]


class OutOfScope(Part):
    """A check that was not made, and why."""

    role: str
    check: str
    node: str
    reason: str


class Accept(Document):
    """`accept`: report.json, the verdict with everything it rests on."""

    kind: Literal["rackwright.accept"]
    verdict: Literal["ACCEPTED", "REJECTED", "UNDECIDED"]
    exit_code: int = ExitStatus
    line: str = Field(description="The verdict in one line.")
    cluster: str = ClusterName
    file: str
    sha256: str = Sha256
    nodes: tuple[str, ...]
    started: str = Started
    seconds: float
    versions: dict[str, Any]
    stages: tuple[Stage, ...]
    applied: Applied | None
    second_plan: ShortPlan | None
    verify: Verify | None
    storage: Storage | None
    burnin: Burnin | None
    simulated_gpus: tuple[str, ...]
    out_of_scope: tuple[OutOfScope, ...]
