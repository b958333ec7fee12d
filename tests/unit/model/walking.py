"""Walks the models of the cluster file and where a text may stand in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator
from pydantic.fields import FieldInfo


def models_below(
    model: type[BaseModel], seen: set[type[BaseModel]] | None = None
) -> Iterator[type[BaseModel]]:
    """A model and all that its fields hold."""
    seen = set() if seen is None else seen
    if model in seen:
        return
    seen.add(model)
    yield model
    for field in model.model_fields.values():
        for inner in _models(field.annotation):
            yield from models_below(inner, seen)


def free_texts(model: type[BaseModel]) -> Iterator[str]:
    """Fields whose text has no pattern and no validator: `name`, `name[]`, `name{}` and `name{key}`."""
    decorators = model.__pydantic_decorators__.field_validators.values()
    validated = {name for decorator in decorators for name in decorator.info.fields}
    for name, field in model.model_fields.items():
        if name not in validated and not _binds(field.metadata):
            yield from _free(field.annotation, name)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


def _binds(metadata: Any) -> bool:
    return any(
        _binds(one.metadata)
        if isinstance(one, FieldInfo)
        else isinstance(one, AfterValidator | BeforeValidator) or getattr(one, "pattern", None)
        for one in metadata
    )


def _free(annotation: Any, place: str) -> Iterator[str]:
    if annotation is str:
        yield place
    elif hasattr(annotation, "__metadata__"):
        if not _binds(annotation.__metadata__):
            yield from _free(annotation.__origin__, place)
    elif get_origin(annotation) is dict:
        key, value = get_args(annotation)
        yield from _free(key, place + "{key}")
        yield from _free(value, place + "{}")
    elif get_origin(annotation) is not Literal:
        listed = get_origin(annotation) in (tuple, list, frozenset, set)
        for inner in get_args(annotation):
            yield from _free(inner, place + "[]" * listed)
