"""What every role's options have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from rackwright.model.plain_text import refuse_unprintable
from rackwright.model.types import NodeRole

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node


class Frozen(BaseModel):
    """Immutable; an unknown key is an error, and so is a line break or control character in any text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    several_lines: ClassVar[frozenset[str]] = frozenset()
    """Fields whose text may hold line feeds and tabs, e.g. a message of the day."""

    @field_validator("*")
    @classmethod
    def _is_one_line(cls, value: object, info: ValidationInfo) -> object:
        refuse_unprintable(value, several_lines=info.field_name in cls.several_lines)
        return value


class RoleOptions(Frozen):
    """Base of each role's options: `class SlurmOptions(RoleOptions)` in roles/slurm/options.py.

    A role runs on a node when the cluster file has a section for it under `roles:` and `runs_on`
    is true. Field descriptions become the documentation and the JSON Schema.
    """

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset(NodeRole)
    """A group that holds none of these cannot have options of this role."""
    secrets: ClassVar[tuple[str, ...]] = ()
    """Names of the secrets this role needs; generated on first use (see rackwright.secrets.store)."""
    moved: ClassVar[Mapping[str, str]] = {}
    """Keys that this role had in an earlier release, with dots where nested, and where each is now, e.g. `roles.dns`."""

    @property
    def supplied_secrets(self) -> tuple[str, ...]:
        """Names of the secrets that the site puts into the store: passwords of others, never generated here."""
        return ()

    drift: Literal["report", "repair"] = Field(
        default="report",
        description="What `rackwright drift --repair` does about drift of this role: report it, or repair it "
        "where that disrupts nothing that runs.",
    )

    def runs_on(self, node: Node) -> bool:
        """Whether the role runs on this node. Called once, when the cluster is built: `node` has no options yet;
        afterwards `node.options` holds only the roles that run there.
        """
        return node.holds(*self.applies_to)

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Mistakes that need the resolved cluster to be found, e.g. an unknown node in a partition.

        Each is (path below the role's section such as `partitions[0].nodes`, a full sentence, a hint
        or None). Called once per distinct set of options, before anything is changed.
        """
        return ()

    def warnings(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """As `problems`, of what is allowed and rarely meant: `validate` prints it, nothing is refused."""
        return ()

    def lock_problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """As `problems`, about the lock beside the cluster file, and what else only an installation needs.

        Not called where no lock is needed yet: `rackwright lock` and the lab.
        """
        return ()
