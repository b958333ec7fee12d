"""Validates one section of the file, reports every mistake and keeps what is valid."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rackwright.clusterfile.fields import known_keys
from rackwright.clusterfile.messages import Sentence, explain
from rackwright.clusterfile.report import Report
from rackwright.documents.document import DataPath
from rackwright.documents.yaml_data import Data
from rackwright.model.options import RoleOptions
from rackwright.model.plain_text import REFUSED

ModelT = TypeVar("ModelT", bound=BaseModel)

_ROUNDS = 3


def read_section(report: Report, model: type[ModelT], raw: Data, path: DataPath) -> ModelT | None:
    """The section as `model`; invalid values are reported and dropped if the rest is valid without them.

    None if nothing is valid. Checks on a partly valid section call `report.clean(...)` before they report
    something as missing.
    """
    first = True
    for _ in range(_ROUNDS):
        try:
            return model.model_validate(raw)
        except ValidationError as error:
            errors = error.errors(include_url=False)
        if first:
            note_errors(report, model, raw, path, errors)
            first = False
        raw = _without(raw, errors)
        if not isinstance(raw, dict):
            return None
    return None


def note_errors(
    report: Report,
    model: type[BaseModel],
    raw: Data,
    path: DataPath,
    errors: list[ErrorDetails],
) -> None:
    """Report pydantic's errors of one validation, each at the value that caused it."""
    grouped: dict[DataPath, list[ErrorDetails]] = {}
    for error in errors:
        if error["type"] == REFUSED:
            continue  # a scan of the whole file has already reported such text
        grouped.setdefault(data_path(raw, error), []).append(error)
    for below, group in grouped.items():
        if group[0]["type"] == "too_short" and any(
            other[: len(below)] == below != other for other in grouped
        ):
            continue  # pydantic counts only the valid items; the others are already reported
        sentences = _moved(model, below, group) or explain(group, known_keys(model, below[:-1]))
        for sentence in sentences:
            report.add(path + below, sentence.message, sentence.hint, key=sentence.about_key)


def _moved(model: type[BaseModel], below: DataPath, errors: list[ErrorDetails]) -> list[Sentence]:
    """Message for a key that moved to another role in an earlier release; empty if it did not."""
    if not issubclass(model, RoleOptions) or errors[0]["type"] != "extra_forbidden":
        return []
    place = model.moved.get(".".join(str(part) for part in below))
    if place is None:
        return []
    message = f"`{below[-1]}` has moved to `{place}`."
    return [Sentence(message, f"declare it under `{place}` and remove it here", about_key=True)]


def data_path(raw: Data, error: ErrorDetails) -> DataPath:
    """Location of the error in the data, without names of union members and validators."""
    path: list[str | int] = []
    value = raw
    parts = error["loc"]
    for index, part in enumerate(parts):
        if isinstance(value, dict) and str(part) in value and part != "[key]":
            value = value[str(part)]
            path.append(str(part))
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
            path.append(part)
        elif index == len(parts) - 1 and error["type"] == "missing" and isinstance(value, dict):
            path.append(part)
    return tuple(path)


def _without(raw: Data, errors: list[ErrorDetails]) -> Data:
    """A copy without the invalid values: drops second-level keys if possible, else first-level ones."""
    if not isinstance(raw, dict):
        return None
    copy = dict(raw)
    for error in errors:
        path = data_path(raw, error)
        if not path:
            return None
        head = path[0]
        inner = copy.get(str(head))
        if len(path) > 1 and isinstance(inner, dict) and error["type"] != "missing" and path[1] in inner:
            copy[str(head)] = {key: value for key, value in inner.items() if key != path[1]}
        else:
            copy.pop(str(head), None)
    return copy
