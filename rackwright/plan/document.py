"""plan.json as a document: what every field means, its JSON Schema, and a check of a document against it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rackwright.errors import RackwrightError
from rackwright.plan.changes import Kind
from rackwright.plan.node_plan import PlanResult


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ChangeDocument(_Document):
    """One difference between what is declared and what is there."""

    kind: Kind = Field(description="What it is a change of; docs/plan.md has before and after of each.")
    target: str = Field(description="A path, package, unit, key or entity name.")
    before: str | None = Field(description="What is there; null: nothing.")
    after: str | None = Field(description="What will be there; null: it is removed. Secrets: `(sensitive)`.")
    diff: tuple[str, ...] = Field(
        description="Unified diff of a text file, one line each, at most 2000; empty when only mode or owner "
        "changes, when the file is sensitive, and when it is binary or over 1 MiB."
    )
    because: str | None = Field(
        description="What causes it: `PATH changes` in this run, or `PATH is newer than the running unit`."
    )
    disruptive: bool = Field(description="Interrupts something that runs: a restart, a stop, a removal.")
    erases: str | None = Field(
        description="Serial of the disk whose content it destroys; `apply` has it typed. null: of none."
    )


class OperationDocument(_Document):
    """One operation that would change something; operations are in the order in which they run."""

    role: str = Field(description="The role it belongs to.")
    name: str = Field(description="What it does.")
    disruptive: bool = Field(description="Whether one of its changes is; a worker is drained first.")
    changes: tuple[ChangeDocument, ...]
    commands: tuple[str, ...] = Field(
        description="Shell commands as they would run, as root. Content and secrets go through stdin and are "
        "no part of them."
    )
    gates: tuple[str, ...] = Field(
        description="What it makes happen later on this node, `ROLE: NAME (UNIT restarted|reloaded)`; without "
        "this operation that would not be in the plan."
    )


class NodeDocument(_Document):
    """One node; `error` is why its plan is not known."""

    node: str
    evaluated: int = Field(
        ge=0, description="Operations that were compared; 0: its answers have the digest of its last sync."
    )
    unreachable: bool = Field(description="It could not be reached, or was lost; `error` is the cause.")
    error: str | None = Field(description="Why its plan is not known; null: it is known.")
    executions: int = Field(ge=0, description="Remote executions that it took.")
    note: str | None = Field(description="Why they were more than one, where the node is the reason.")
    reboot: tuple[ChangeDocument, ...] = Field(
        description="What only a reboot brings, each of kind `reboot`; `apply --reboot` reboots the node once."
    )
    after_reboot: tuple[str, ...] = Field(
        description="Operations, `ROLE: NAME`, that are due and cannot work before the reboot; "
        "`apply --reboot` plans them again after it."
    )
    operations: tuple[OperationDocument, ...]


class PlanDocument(_Document):
    """What `rackwright plan --out plan.json` writes and `rackwright apply --plan plan.json` carries out."""

    version: Literal[1] = Field(alias="schema", description="Version of this schema.")
    rackwright: str = Field(description="Version of rackwright that made it.")
    cluster: str = Field(description="`cluster.name`.")
    file: str = Field(description="Path of the cluster file.")
    file_sha256: str = Field(pattern="^[0-9a-f]{64}$", description="SHA-256 of the cluster file.")
    code: str = Field(
        pattern="^[0-9a-f]{64}$",
        description="SHA-256 of all else a plan depends on: code, templates, secrets file, known host keys.",
    )
    roles: tuple[str, ...] | None = Field(description="The roles it is limited to; null: all.")
    changes: int = Field(ge=0, description="Pairs of node and operation that would change something.")
    nodes: tuple[NodeDocument, ...] = Field(description="In the order of the cluster file.")


def plan_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the plan document."""
    schema = PlanDocument.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "rackwright plan"}


def check_plan(document: Mapping[str, Any]) -> None:
    """ValueError with the first mistake and its place, if the document does not match the schema."""
    try:
        PlanDocument.model_validate_json(json.dumps(document))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the document"
        raise ValueError(f"{place}: {first['msg']}") from None


def read_plan(path: Path) -> PlanResult:
    """The plan of a file that `plan --out` wrote; RackwrightError where it is not one."""
    try:
        document = json.loads(path.read_text())
        check_plan(document)
        return PlanResult.from_json(document)
    except (OSError, ValueError) as error:
        raise RackwrightError(
            f"The plan {path} cannot be used: {error}.",
            hint="make one with: rackwright plan FILE --out plan.json",
        ) from error
