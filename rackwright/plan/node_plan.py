"""What a run would do, and what it did: plain data, shown by processes that never load pyinfra."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rackwright import __version__
from rackwright.boundary import printable, printable_block, printable_lines
from rackwright.errors import ExitCode
from rackwright.plan.changes import Change

SCHEMA_VERSION = 1
_ERROR_MAX = 20_000
"""Characters of an error or a note."""


@dataclass(frozen=True)
class PlannedOperation:
    """One operation that would change something on one node."""

    role: str
    name: str
    changes: tuple[Change, ...]
    commands: tuple[str, ...]
    """As they would run, hidden values masked; what goes through stdin is not part of them."""

    def __post_init__(self) -> None:
        """Names and commands may hold text from a node: they become printable."""
        object.__setattr__(self, "role", printable(self.role))
        object.__setattr__(self, "name", printable(self.name))
        object.__setattr__(self, "commands", tuple(map(printable_lines, self.commands)))

    @property
    def disruptive(self) -> bool:
        """Whether it interrupts something that runs."""
        return any(change.disruptive for change in self.changes)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON data."""
        return {
            "role": self.role,
            "name": self.name,
            "disruptive": self.disruptive,
            "changes": [change.to_json() for change in self.changes],
            "commands": list(self.commands),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PlannedOperation:
        """Inverse of to_json."""
        changes = changes_from_json(data["changes"])
        return cls(data["role"], data["name"], changes, tuple(data["commands"]))


def changes_from_json(data: Iterable[Mapping[str, Any]]) -> tuple[Change, ...]:
    """Inverse of Change.to_json, for a list of them."""
    return tuple(Change(**{**change, "diff": tuple(change["diff"])}) for change in data)


def changes_text(changes: Iterable[Change]) -> str:
    """Changes in a few words, e.g. `running kernel 6.12.1 -> 6.12.107`."""
    return ", ".join(
        f"{change.target} {change.before or 'none'} -> {change.after or 'none'}" for change in changes
    )


def _make_printable(one: NodePlan | NodeOutcome, *names: str) -> None:
    for name in names:
        text = getattr(one, name)
        if text is not None:
            object.__setattr__(one, name, printable_block(text, _ERROR_MAX))


@dataclass(frozen=True)
class NodePlan:
    """What would change on one node, or why that is not known."""

    node: str
    operations: tuple[PlannedOperation, ...] = ()
    evaluated: int = 0
    """How many operations were compared with the node; 0 when its digest was unchanged."""
    error: str | None = None
    unreachable: bool = False
    executions: int = 0
    """Remote executions it took."""
    note: str | None = None
    reboot: tuple[Change, ...] = ()
    """What only a reboot brings; no operation carries it out."""
    after_reboot: tuple[str, ...] = ()
    """Operations, `ROLE: NAME`, that are due and cannot work before the reboot."""

    def __post_init__(self) -> None:
        """Text from a node becomes printable."""
        _make_printable(self, "error", "note")
        object.__setattr__(self, "after_reboot", tuple(map(printable, self.after_reboot)))

    @property
    def changes(self) -> int:
        """Number of operations that would change something."""
        return len(self.operations)

    @property
    def as_declared(self) -> bool:
        """Whether nothing is left to do there, a reboot included."""
        return self.error is None and not self.operations and not self.reboot

    def gated_on(self, operation: PlannedOperation) -> tuple[str, ...]:
        """What this operation triggers later on the same node: restarts and reloads."""
        changed = [change.target for change in operation.changes]
        return tuple(
            f"{later.role}: {later.name} ({change.target} {change.after})"
            for later in self.operations[self.operations.index(operation) + 1 :]
            for change in later.changes
            if any(change.is_because_of(target) for target in changed)
        )

    def to_json(self) -> dict[str, Any]:
        """As plain JSON data."""
        return {
            "node": self.node,
            "evaluated": self.evaluated,
            "unreachable": self.unreachable,
            "error": self.error,
            "executions": self.executions,
            "note": self.note,
            "reboot": [change.to_json() for change in self.reboot],
            "after_reboot": list(self.after_reboot),
            "operations": [
                {**operation.to_json(), "gates": list(self.gated_on(operation))}
                for operation in self.operations
            ],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> NodePlan:
        """Inverse of to_json."""
        operations = tuple(PlannedOperation.from_json(operation) for operation in data["operations"])
        reboot = changes_from_json(data["reboot"])
        waiting = tuple(data["after_reboot"])
        return cls(**{**data, "operations": operations, "reboot": reboot, "after_reboot": waiting})


@dataclass(frozen=True)
class PlanResult:
    """The plan of a run, by node in file order."""

    cluster: str
    file: str
    sha256: str
    nodes: dict[str, NodePlan]
    code: str = ""
    """Digest of everything a plan depends on besides the nodes: code, templates, secrets, cluster file."""
    roles: tuple[str, ...] | None = None
    """The roles the plan is limited to; None means all."""

    @property
    def changes(self) -> int:
        """Number of (node, operation) pairs that would change something."""
        return sum(plan.changes for plan in self.nodes.values())

    @property
    def reboots(self) -> dict[str, tuple[Change, ...]]:
        """What only a reboot brings, by node; nodes without are not in it."""
        return {name: plan.reboot for name, plan in self.nodes.items() if plan.reboot}

    @property
    def failed(self) -> tuple[NodePlan, ...]:
        """Nodes whose plan is not known."""
        return tuple(plan for plan in self.nodes.values() if plan.error is not None)

    @property
    def exit_code(self) -> ExitCode:
        """ERROR if a plan failed, UNKNOWN if a node was unreachable, else CHANGES_PENDING or CLEAN."""
        if any(not plan.unreachable for plan in self.failed):
            return ExitCode.ERROR
        if self.failed:
            return ExitCode.UNKNOWN
        return ExitCode.CHANGES_PENDING if self.changes or self.reboots else ExitCode.CLEAN

    def to_json(self) -> dict[str, Any]:
        """The document `rackwright plan --out` writes."""
        return {
            "schema": SCHEMA_VERSION,
            "rackwright": __version__,
            "cluster": self.cluster,
            "file": self.file,
            "file_sha256": self.sha256,
            "code": self.code,
            "roles": list(self.roles) if self.roles is not None else None,
            "changes": self.changes,
            "nodes": [plan.to_json() for plan in self.nodes.values()],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PlanResult:
        """Inverse of to_json; ValueError if it is not a plan document or has another schema version."""
        schema = data.get("schema") if isinstance(data, Mapping) else None
        if schema != SCHEMA_VERSION:
            raise ValueError(f"its schema version is {schema}, and this is {SCHEMA_VERSION}")
        try:
            nodes = {node["node"]: NodePlan.from_json(node) for node in data["nodes"]}
            roles = tuple(data["roles"]) if data["roles"] is not None else None
            return cls(data["cluster"], data["file"], data["file_sha256"], nodes, data["code"], roles)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a valid plan: {error}") from error


@dataclass(frozen=True)
class NodeOutcome:
    """What an apply did on one node."""

    node: str
    ok: bool
    operations: tuple[PlannedOperation, ...] = ()
    """Those that changed something, in order."""
    error: str | None = None
    """Failed operation with its last command and output, or why the node was lost."""
    unreachable: bool = False
    seconds: float = 0.0
    reboot: tuple[Change, ...] = ()
    """What only a reboot brings, as of the end of the apply."""

    def __post_init__(self) -> None:
        """Text from a node becomes printable."""
        _make_printable(self, "error")

    def to_json(self) -> dict[str, Any]:
        """As plain JSON data, without the differences that the plan has."""
        return {
            "node": self.node,
            "ok": self.ok,
            "changed": self.changed,
            "seconds": round(self.seconds, 2),
            "unreachable": self.unreachable,
            "error": self.error,
            "reboot": [change.to_json() for change in self.reboot],
        }

    @property
    def as_declared(self) -> bool:
        """Whether it is as declared now, with no reboot due."""
        return self.ok and not self.reboot

    @property
    def changed(self) -> int:
        """Number of operations that changed something."""
        return len(self.operations)


@dataclass(frozen=True)
class ApplyResult:
    """What an apply did, by node in file order."""

    cluster: str
    nodes: dict[str, NodeOutcome] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def reboots(self) -> dict[str, tuple[Change, ...]]:
        """What only a reboot brings, by node that is as declared apart from that."""
        return {name: outcome.reboot for name, outcome in self.nodes.items() if outcome.ok and outcome.reboot}

    @property
    def failed(self) -> tuple[NodeOutcome, ...]:
        """Nodes that are not as declared now, whether rebooted or not."""
        return tuple(outcome for outcome in self.nodes.values() if not outcome.ok)

    @property
    def exit_code(self) -> ExitCode:
        """ERROR if a node failed, UNKNOWN if one was unreachable, else CHANGES_PENDING for a reboot due, or CLEAN."""
        if self.interrupted or any(not outcome.unreachable for outcome in self.failed):
            return ExitCode.ERROR
        if self.failed:
            return ExitCode.UNKNOWN
        return ExitCode.CHANGES_PENDING if self.reboots else ExitCode.CLEAN
