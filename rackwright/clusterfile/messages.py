"""Turns Pydantic's errors into plain sentences, with a hint where possible."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import ErrorDetails

from rackwright.clusterfile.patterns import in_words
from rackwright.documents.nearest import MANY, nearest, short, suggest


@dataclass(frozen=True, slots=True)
class Sentence:
    """What is wrong and what to do."""

    message: str
    hint: str | None = None
    about_key: bool = False
    """The mistake is in the key, not in its value."""


Context = dict[str, Any]

_PLAIN: dict[str, tuple[str, str | None]] = {
    "bool": ("Expected true or false.", "write `true` or `false`"),
    "int_from_float": ("Expected a whole number.", None),
    "int": ("Expected a whole number.", None),
    "float": ("Expected a number.", None),
    "finite_number": ("Expected a finite number.", None),
    "string": ("Expected text.", "put it in quotes"),
    "list": ("Expected a list.", "write `[a, b]`, or one `- item` per line"),
    "tuple": ("Expected a list.", "write `[a, b]`, or one `- item` per line"),
    "set": ("Expected a list.", "write `[a, b]`, or one `- item` per line"),
    "frozen_set": ("Expected a list.", "write `[a, b]`, or one `- item` per line"),
    "dict": ("Expected a mapping.", "write `key: value` lines below it"),
    "mapping": ("Expected a mapping.", "write `key: value` lines below it"),
    "model": ("Expected a mapping.", "write `key: value` lines below it"),
    "model_attributes": ("Expected a mapping.", "write `key: value` lines below it"),
    "path": ("Expected a path.", "e.g. `/scratch`"),
    "date": ("Expected a date.", "e.g. `2026-11-20`"),
    "date_from_datetime": ("Expected a date.", "e.g. `2026-11-20`"),
    "time_delta": ("Expected a duration.", "e.g. `PT30M`"),
    "url": ("Not a valid http or https URL.", "e.g. `http://mirror.example.com/debian`"),
    "ip_v4_address": ("Not a valid IPv4 address.", "e.g. `10.1.0.11`"),
    "ip_v4_network": ("Not a valid IPv4 network.", "e.g. `10.1.0.0/16`"),
    "ip_any_address": ("Not a valid IP address.", "e.g. `10.1.0.11`"),
    "ip_any_network": ("Not a valid IP network.", "e.g. `10.1.0.0/16`"),
}


def _bound(words: str, name: str) -> Callable[[Context], Sentence]:
    return lambda context: Sentence(f"The number must be {words} {_number(context[name])}.")


def _number(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _length(context: Context, few: bool) -> Sentence:
    if few:
        count = context["min_length"]
        return Sentence("The list is empty." if count == 1 else f"The list needs at least {count} entries.")
    return Sentence(f"The list may have at most {context['max_length']} entries.")


def _choice(context: Context) -> Sentence:
    allowed = re.findall(r"'([^']*)'", context["expected"]) or [context["expected"]]
    if len(allowed) == 1 and context["expected"].isdigit():
        return Sentence(f"Only {context['expected']} is allowed here.")
    if len(allowed) > MANY:
        return Sentence(
            f"Not one of the {len(allowed)} allowed values.",
            suggest(context["input"], allowed, what="allowed"),
        )
    return Sentence(f"Not one of: {', '.join(allowed)}.", nearest(context["input"], allowed))


_BY_TYPE: dict[str, Callable[[Context], Sentence]] = {
    "greater_than": _bound("more than", "gt"),
    "greater_than_equal": _bound("at least", "ge"),
    "less_than": _bound("less than", "lt"),
    "less_than_equal": _bound("at most", "le"),
    "multiple_of": _bound("a multiple of", "multiple_of"),
    "too_short": lambda context: _length(context, few=True),
    "too_long": lambda context: _length(context, few=False),
    "string_too_short": lambda context: Sentence(
        "The text is empty."
        if context["min_length"] == 1
        else f"The text needs at least {context['min_length']} characters."
    ),
    "string_too_long": lambda context: Sentence(
        f"The text may have at most {context['max_length']} characters."
    ),
    "string_pattern_mismatch": lambda context: Sentence(*in_words(context["pattern"])),
    "enum": _choice,
    "literal_error": _choice,
    "union_tag_not_found": lambda context: Sentence(
        f"The key {context['discriminator'].replace(chr(39), '`')} is missing."
    ),
    "union_tag_invalid": lambda context: Sentence(
        f"The key {context['discriminator'].replace(chr(39), '`')} is not one of: "
        f"{context['expected_tags'].replace(chr(39), '')}."
    ),
    "mistake": lambda context: Sentence(context["message"], context["hint"]),
    "value_error": lambda context: Sentence(_sentence(str(context["error"]))),
    "assertion_error": lambda context: Sentence(_sentence(str(context["error"]))),
}


def explain(errors: Sequence[ErrorDetails], known: Sequence[str]) -> list[Sentence]:
    """Sentences for the errors of one value; `known` are the keys of its mapping.

    A value that fits no member of a union has one error for each member. Errors in its content are
    preferred to errors in its type; if several remain, they become one sentence.
    """
    sentences = {_one(error, known): error["type"].endswith("_type") for error in errors}
    relevant = [sentence for sentence, about_type in sentences.items() if not about_type] or list(sentences)
    if len(relevant) == 1:
        return relevant
    forms = "; or: ".join(
        sentence.message.rstrip(".") + (f" ({sentence.hint})" if sentence.hint else "")
        for sentence in relevant
    )
    return [Sentence("The value matches none of the accepted forms.", forms)]


def _one(error: ErrorDetails, known: Sequence[str]) -> Sentence:
    kind = error["type"]
    key = short(error["loc"][-1]) if error["loc"] else ""
    if kind == "missing":
        return Sentence(f"The key `{key}` is missing.", about_key=True)
    if kind == "extra_forbidden":
        return Sentence(f"Unknown key `{key}`.", suggest(key, known, what="known keys"), about_key=True)
    if kind in _BY_TYPE:
        return _BY_TYPE[kind]({**error.get("ctx", {}), "input": error["input"]})
    for suffix in ("_type", "_parsing", "_parsing_size", "_from_datetime_inexact", "_scheme", ""):
        stem = kind.removesuffix(suffix)
        if kind.endswith(suffix) and stem in _PLAIN:
            message, hint = _PLAIN[stem]
            scalar = not isinstance(error["input"], list | dict)
            return Sentence(message, hint if scalar or stem != "string" else None)
    return Sentence(_sentence(error["msg"]))


def _sentence(text: str) -> str:
    text = text.strip() or "The value is not valid"
    return text if text.endswith((".", "!", "?")) else text[0].upper() + text[1:] + "."
