"""No model takes a line break, a control character or an invisible one in any of its texts."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from rackwright.clusterfile.file import ClusterFile, NodeGroup
from rackwright.clusterfile.roles import options_class, role_names
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.plain_text import REFUSED, mistake_in, texts_in
from tests.unit.model.walking import models_below

REFUSED_TEXTS = {
    "a\nTrusted: yes": ("The text contains a line break.", "write it on one line, in quotes"),
    "a\n": (
        "The text ends with a line break.",
        "write it on one line, in quotes; a block after `|` or `>` ends with a line break",
    ),
    "a\rb": ("The text contains a line break.", "write it on one line, in quotes"),
    "a\x85b": ("The text contains a line break.", "write it on one line, in quotes"),
    "a\u2028b": ("The text contains a line break.", "write it on one line, in quotes"),
    "a\tb": ("The text contains a tab.", "use a space"),
    "a\x1b[2K": ("The text contains the control character \\x1b.", "remove it"),
    "a\0": ("The text contains the control character \\x00.", "remove it"),
    "a\u200bb": (
        "The text contains the invisible character \\u200b.",
        "remove it; retype the text if it was pasted",
    ),
    "a\u202eb": (
        "The text contains the invisible character \\u202e.",
        "remove it; retype the text if it was pasted",
    ),
}


class Inner(Frozen):
    """A model below another."""

    name: str


class Options(RoleOptions):
    """A role of a user, built in Python."""

    several_lines: ClassVar[frozenset[str]] = frozenset({"greeting"})

    name: str = ""
    greeting: str = ""
    words: tuple[str, ...] = ()
    mapping: dict[str, dict[str, str]] = Field(default_factory=dict)
    path: Path = Path("/")
    inner: Inner | None = None
    either: int | str = 0


@pytest.mark.parametrize(("text", "sentence"), REFUSED_TEXTS.items(), ids=ascii)
def test_what_is_refused(text, sentence):
    assert mistake_in(text) == sentence


@pytest.mark.parametrize("text", ["", "Zürich, 東京 😀", "a b", "\u00a0", "e\u0301", 'a"b\\c$(d)`e`;#%'])
def test_what_is_not(text):
    assert mistake_in(text) is None


@pytest.mark.parametrize("text", REFUSED_TEXTS, ids=ascii)
@pytest.mark.parametrize(
    "given",
    [
        lambda text: {"name": text},
        lambda text: {"words": ("a", text)},
        lambda text: {"mapping": {"a": {"b": text}}},
        lambda text: {"mapping": {"a": {text: "b"}}},
        lambda text: {"path": f"/{text}"},
        lambda text: {"inner": {"name": text}},
        lambda text: {"either": text},
    ],
)
def test_a_model_built_in_python_refuses_it(text, given):
    with pytest.raises(ValidationError) as caught:
        Options(**given(text))
    assert [error["type"] for error in caught.value.errors()] == [REFUSED]
    assert all(sign.isprintable() or sign == "\n" for sign in str(caught.value.errors()[0]["msg"]))


def test_where_it_is_in_a_field_with_several_texts():
    with pytest.raises(ValidationError, match=r"The text at `a.b` contains a tab"):
        Options(mapping={"a": {"b": "\t"}})


def test_an_exception_is_for_line_feeds_and_tabs_in_its_field_alone():
    assert Options(greeting="Welcome\n\tto lab\n").greeting == "Welcome\n\tto lab\n"
    for text in ("\x1b[2J", "a\rb", "a\u2028b"):
        with pytest.raises(ValidationError):
            Options(greeting=text)
    with pytest.raises(ValidationError):
        Options(greeting="a\nb", name="a\nb")


def test_which_options_take_several_lines():
    """A new one is listed here, with the reason why its text cannot become configuration.

    Values of an add-on's chart are given to helm as JSON on its standard input.
    """
    roots = (ClusterFile, NodeGroup, *map(options_class, role_names()))
    assert {
        (model.__name__, name)
        for root in roots
        for model in models_below(root)
        for name in getattr(model, "several_lines", ())
    } == {("Addon", "values")}


@given(st.text(max_size=20))
def test_what_is_taken_is_one_line_for_every_reader(text):
    if mistake_in(text) is None:
        assert len(text.splitlines()) <= 1
        assert "\0" not in text
        text.encode()


def test_every_text_of_plain_data_is_looked_at():
    data = {"a": ["b", {"c": "d"}], "e": 1, "f": ("g",)}
    assert {text for _, text, _ in texts_in(data)} == set("abcdefg")
