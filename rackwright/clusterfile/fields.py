"""The keys that a model accepts at a path, found by walking its annotations."""

from __future__ import annotations

from typing import Any, TypeAlias, get_args

from pydantic import BaseModel

from rackwright.documents.document import DataPath

Annotation: TypeAlias = Any
"""The annotation of a field."""


def known_keys(model: type[BaseModel], path: DataPath) -> tuple[str, ...]:
    """Keys of the mapping at a path in a model; empty if any key is allowed."""
    kinds: list[Annotation] = [model]
    for part in path:
        kinds = [inner for kind in kinds for inner in _inner(kind, part)]
    return tuple(
        dict.fromkeys(
            field.alias or name
            for kind in kinds
            if _is_model(kind)
            for name, field in kind.model_fields.items()
        )
    )


def may_have_lines(model: type[BaseModel], path: DataPath) -> bool:
    """Whether the value at a path in a model may span lines (one of `several_lines`)."""
    kinds: list[Annotation] = [model]
    allowed = False
    for part in path:
        owners = [kind for kind in kinds if _is_model(kind) and part in kind.model_fields]
        if owners:  # items of a list or mapping share the field's setting
            allowed = any(part in getattr(kind, "several_lines", ()) for kind in owners)
        kinds = [inner for kind in kinds for inner in _inner(kind, part)]
    return allowed


def _inner(kind: Annotation, part: str | int) -> list[Annotation]:
    """The types one step further down."""
    if _is_model(kind):
        field = kind.model_fields.get(str(part))
        return [] if field is None else _flatten(field.annotation)
    arguments = get_args(kind)
    return [] if not arguments else _flatten(arguments[-1] if arguments[-1] is not ... else arguments[0])


def _flatten(kind: Annotation) -> list[Annotation]:
    """Members of unions, and the type inside Annotated; lists and tuples stay whole."""
    if hasattr(kind, "__metadata__"):
        return _flatten(kind.__origin__)
    arguments = get_args(kind)
    origin = getattr(kind, "__origin__", None)
    if arguments and origin is None:  # X | Y
        return [inner for argument in arguments for inner in _flatten(argument)]
    return [kind]


def _is_model(kind: Annotation) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
