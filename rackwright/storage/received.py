"""Validated answers of the programs on nodes; nothing is used before validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import Field, TypeAdapter

from rackwright.boundary import Adapter, Refused, printable, read_json, validated
from rackwright.model.options import Frozen
from rackwright.storage.programs.children import MARK
from rackwright.storage.programs.together import PHASES

T = TypeVar("T")
Count = Annotated[int, Field(ge=0, lt=2**63)]
Seconds = Annotated[float, Field(ge=0, lt=1e9)]
Text = Annotated[str, Field(max_length=4096)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Looked(Frozen):
    """A filesystem as one node sees it; with `hung` or `error` nothing else is known."""

    mounted: tuple[Text, Text] | None = None
    """Source and type."""
    free_bytes: Count = 0
    size_bytes: Count = 0
    free_files: Count = 0
    files: Count = 0
    """0: the filesystem has no limit."""
    removed: tuple[Text, ...] = ()
    hung: Seconds | None = None
    error: Text | None = None

    @property
    def trouble(self) -> str | None:
        """Why it was not done, or None."""
        if self.hung is not None:
            return f"the filesystem did not answer within {self.hung:g} s"
        return printable(self.error, 300) if self.error is not None else None


class FioAnswer(Frozen):
    """How fio ended on a node."""

    several_lines: ClassVar[frozenset[str]] = frozenset({"output"})

    exit_status: int | None = None
    output: Annotated[str, Field(max_length=2**17)] = ""
    hung: bool = False
    missing: Text | None = None


class Alone(Frozen):
    """A node alone."""

    write: FioAnswer | None = None
    read: FioAnswer | None = None
    error: Text | None = None


class Trouble(Frozen):
    """What one rank met."""

    node: Text
    kind: Literal["wrong", "hung", "error"]
    text: Text


class Phase(Frozen):
    """One phase: bytes or files, and seconds, of each node in the order in which the nodes were asked."""

    phase: Literal["write", "read", "compare", "create", "stat", "remove", "clean"]
    nodes: tuple[tuple[Count, Seconds], ...]

    @property
    def done(self) -> int:
        """Of all nodes."""
        return sum(done for done, _ in self.nodes)

    @property
    def seconds(self) -> float:
        """Of the slowest node."""
        return max((seconds for _, seconds in self.nodes), default=0.0)


class Together(Frozen):
    """All nodes at once."""

    phases: tuple[Phase, ...]
    errors: tuple[Trouble, ...] = ()
    errors_count: Count = 0
    direct: bool = False

    def phase(self, name: str) -> Phase | None:
        """One phase by name; None where the run did not come to it."""
        return next((one for one in self.phases if one.phase == name), None)


class Facts(Frozen):
    """What the first rank of a checkpoint run found."""

    digests: tuple[Digest, ...] = ()
    saved: Text | None = None
    save_seconds: tuple[Seconds, ...] = ()
    load_seconds: Seconds | None = None
    loaded: Text | None = None
    partial: dict[str, Count] = Field(default_factory=dict)
    matches: bool | None = None
    survived: bool = False
    torch: Annotated[str, Field(max_length=80)] = ""


class Line(Frozen):
    """One line of a checkpoint run."""

    facts: Facts | None = None
    missing: Text | None = None
    rank: Count | None = None
    error: Text | None = None
    exits: dict[str, int | None] = Field(default_factory=dict)


LOOKED: Adapter[Looked] = TypeAdapter(Looked)
ALONE: Adapter[Alone] = TypeAdapter(Alone)
TOGETHER: Adapter[Together] = TypeAdapter(Together)
LINE: Adapter[Line] = TypeAdapter(Line)


def results_of(adapter: Adapter[T], text: str) -> list[T]:
    """Every result in an output; Refused where one is not what the program prints."""
    return [
        validated(adapter, read_json(line.removeprefix(MARK)))
        for line in text.splitlines()
        if line.startswith(MARK)
    ]


def result_of(adapter: Adapter[T], text: str) -> T:
    """The only result in an output; Refused where there is none, or several."""
    found = results_of(adapter, text)
    if len(found) != 1:
        raise Refused(f"it contains {len(found)} results, not one")
    return found[0]


def together_of(text: str, nodes: Sequence[str]) -> Together:
    """A run of all nodes; Refused where its phases are not of these nodes, in their order."""
    found = result_of(TOGETHER, text)
    if any(len(phase.nodes) != len(nodes) for phase in found.phases):
        raise Refused(f"a phase is not of {len(nodes)} nodes")
    if tuple(phase.phase for phase in found.phases) != PHASES[: len(found.phases)]:
        raise Refused("its phases are not in their order")
    return found
