"""Every message about every field: an example where one helps, and never a regular expression."""

from __future__ import annotations

import re
import typing
from functools import cache

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

import rackwright.clusterfile.file as cluster_file
from rackwright.clusterfile.messages import explain
from rackwright.clusterfile.patterns import PATTERNS, in_words
from rackwright.clusterfile.roles import options_class, role_names

WRONG = ("14d", "14 days", "!!", "", 3.5, -1, "x" * 300, [], {}, True, None)
REGULAR_EXPRESSION = re.compile(r"\\[dwsAZ.]|\(\?|\[\^|\[[A-Za-z0-9]-[A-Za-z0-9]|\]\{\d|[*+?]\$|\^\[|\.\*")


def _models(model, seen):
    if model in seen:
        return
    seen.add(model)
    for field in model.model_fields.values():
        _walk(field.annotation, seen)


def _walk(annotation, seen):
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        _models(annotation, seen)
    for inner in typing.get_args(annotation):
        _walk(inner, seen)


@cache
def _said():
    """(message, hint) to the field and the value that it is about."""
    seen, said = set(), {}
    for model in vars(cluster_file).values():
        if isinstance(model, type) and issubclass(model, BaseModel):
            _models(model, seen)
    for role in role_names():
        _models(options_class(role), seen)
    for model in seen:
        for name, field in model.model_fields.items():
            adapter = TypeAdapter(field.rebuild_annotation())
            for value in WRONG:
                try:
                    adapter.validate_python(value)
                except ValidationError as error:
                    for sentence in explain(error.errors(), ()):
                        said.setdefault(
                            (sentence.message, sentence.hint), f"{model.__name__}.{name}: {value!r:.40}"
                        )
    return said


def test_the_walk_reaches_what_it_should():
    assert len(_said()) > 250
    assert ("Not a valid time of day.", "e.g. `22:00`") in _said()


def test_no_message_holds_a_regular_expression():
    # ranges of nodes are the one thing with brackets that operators write
    plain = {pair: where for pair, where in _said().items() if "gpu[" not in str(pair)}
    wrong = [
        f"{where}: {pair}"
        for pair, where in plain.items()
        if REGULAR_EXPRESSION.search(" ".join(filter(None, pair)))
    ]
    assert wrong == []


def test_the_search_finds_one():
    for pattern in PATTERNS:
        if "[" in pattern:
            assert REGULAR_EXPRESSION.search(pattern), pattern


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_has_an_example_that_matches(pattern):
    _, hint = in_words(pattern)
    assert re.search(pattern, hint.removeprefix("e.g. `").removesuffix("`"))


def test_a_prefix_length_is_added_to_an_address_alone():
    said = {message: hint for message, hint in _said() if message == "The prefix length is missing."}
    assert said == {"The prefix length is missing.": "e.g. `10.1.0.0/16`"}
