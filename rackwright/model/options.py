"""Base classes of all role options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from rackwright.model.plain_text import refuse_unprintable
from rackwright.model.types import NodeRole, Workload

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node


class Frozen(BaseModel):
    """Immutable; unknown keys, line breaks and control characters in any text are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    several_lines: ClassVar[frozenset[str]] = frozenset()
    """Fields whose text may contain line feeds and tabs, e.g. a message of the day."""

    @field_validator("*")
    @classmethod
    def _is_one_line(cls, value: object, info: ValidationInfo) -> object:
        refuse_unprintable(value, several_lines=info.field_name in cls.several_lines)
        return value


class RoleOptions(Frozen):
    """Base of each role's options: `class SlurmOptions(RoleOptions)` in roles/slurm/options.py.

    A role runs on a node if the cluster file has a section for it under `roles:` and `runs_on`
    is true. Field descriptions feed the documentation and the JSON Schema.
    """

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset(NodeRole)
    """A group with none of these node roles cannot set options of this role."""
    workloads: ClassVar[frozenset[Workload]] = frozenset()
    """Workloads that the role belongs to: it does not run on nodes with another `workload:`. Empty: it belongs to none."""
    secrets: ClassVar[tuple[str, ...]] = ()
    """Names of the secrets that this role needs; generated on first use (see rackwright.secrets.store)."""
    moved: ClassVar[Mapping[str, str]] = {}
    """Keys that this role had in an earlier release (dotted if nested), and where each is now, e.g. `roles.dns`."""

    @property
    def supplied_secrets(self) -> tuple[str, ...]:
        """Names of secrets that the site adds to the store: passwords of other systems, never generated."""
        return ()

    drift: Literal["report", "repair"] = Field(
        default="report",
        description="What `rackwright drift --repair` does about drift of this role: report it, or repair it "
        "if that disrupts nothing that runs.",
    )

    def runs_on(self, node: Node) -> bool:
        """Whether the role runs on this node. Called once while the cluster is built: `node` has no options yet;
        afterwards `node.options` holds only the roles that run there.
        """
        return node.holds(*self.applies_to) and (not self.workloads or node.serves(self.workloads))

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Mistakes that only the resolved cluster reveals, e.g. an unknown node in a partition.

        Each is (path below the role's section such as `partitions[0].nodes`, a full sentence, a hint
        or None). Called once per distinct set of options, before any change.
        """
        return ()

    def warnings(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Like `problems`, for settings that are valid but rarely intended: `validate` prints them as warnings."""
        return ()

    def lock_problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Like `problems`, for the lock next to the cluster file, and other requirements of an installation.

        Not called if no lock is needed yet: by `rackwright lock` and the lab.
        """
        return ()
