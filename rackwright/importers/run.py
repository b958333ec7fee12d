"""From a source that has been read to the text of a cluster file."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from rackwright.errors import ExitCode, RackwrightError
from rackwright.importers.drafting import draft
from rackwright.importers.records import MAX_NODES, ImportMistakes, Source
from rackwright.importers.resolve import resolve
from rackwright.importers.words import RoleNames
from rackwright.importers.writing import write
from rackwright.model.text import Domain, Label


@dataclass(frozen=True)
class Imported:
    """A cluster file and what became of the source."""

    text: str
    nodes: int
    groups: int
    missing: int
    files: tuple[str, ...]
    ignored: tuple[str, ...]


@dataclass(frozen=True)
class Choices:
    """What the command line adds to the source."""

    roles: RoleNames
    name: str | None = None
    domain: str | None = None


def import_source(source: Source, choices: Choices) -> Imported:
    """The cluster file of a source. Raises ImportMistakes with every mistake in it."""
    _check("--name", choices.name, TypeAdapter(Label), "e.g. `--name gpu-west`")
    _check("--domain", choices.domain, TypeAdapter(Domain), "e.g. `--domain hpc.example.com`")
    nodes = [] if source.mistakes and not source.records else resolve(source, choices.roles)
    if not nodes and not source.mistakes:
        source.mistakes.append("No node is in it.")
    if len(nodes) > MAX_NODES:
        source.mistakes.append(f"It has {len(nodes)} nodes; rackwright supports at most {MAX_NODES}.")
    if source.mistakes:
        raise ImportMistakes(source.what, source.mistakes)
    made = draft(source, nodes, name=choices.name, domain=choices.domain)
    written = write(made)
    return Imported(
        text=written.text,
        nodes=len(nodes),
        groups=len(made.groups),
        missing=written.missing,
        files=made.files,
        ignored=tuple(made.ignored),
    )


def _check(option: str, value: str | None, adapter: TypeAdapter[str], hint: str) -> None:
    if value is None:
        return
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        wrong = RackwrightError(f"{option}: {error.errors()[0]['msg']}", hint=hint)
        wrong.exit_code = ExitCode.USAGE
        raise wrong from None
