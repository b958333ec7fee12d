"""Documents of `--json`: each begins with its kind and version, and has a schema (`rackwright schema NAME`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import typer

VERSION = 1


def print_document(name: str, content: Mapping[str, Any]) -> None:
    """Print a document of rackwright.schemas by its name; content that has its own version keeps it."""
    document = {"kind": f"rackwright.{name}", "version": VERSION, **content}
    typer.echo(json.dumps(checked(name, document), indent=2))


def checked(name: str, document: dict[str, Any]) -> dict[str, Any]:
    """The document; tests replace this by a check against its schema, which takes too long for every command."""
    del name
    return document
