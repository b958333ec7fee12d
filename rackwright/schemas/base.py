"""What all documents share."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rackwright.status import Status

Version = Field(
    description="Version of this document: it rises when a field is taken away or means something else."
)
ClusterName = Field(description="`cluster.name`.")
ExitStatus = Field(description="Exit status of the command.")
Sha256 = Field(pattern="^[0-9a-f]{64}$", description="SHA-256 of the cluster file.")


class Part(BaseModel):
    """Part of a document: every field is there, and no other is."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Open(BaseModel):
    """Part of a document with further fields, of the cluster file or of one kind of thing alone."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)


class Document(Part):
    """What a command prints; a subclass has `kind`, a literal."""

    version: Literal[1] = Version


class Finding(Part):
    """A status and why."""

    status: Status
    text: str


class Reason(Part):
    """Why a node has no answer."""

    error: str


def schema_of(model: type[Document], title: str) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a document."""
    schema = model.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": title}


def check(model: type[Document], text: str) -> None:
    """ValueError with the first mistake and its place, if the JSON is not a document of this model."""
    try:
        model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the document"
        raise ValueError(f"{place}: {first['msg']}") from None
