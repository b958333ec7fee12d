"""Pydantic's errors as sentences of ours, with a hint where there is one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import ErrorDetails

from rackwright.documents.nearest import short, suggest


@dataclass(frozen=True, slots=True)
class Sentence:
    """What is wrong and what to do."""

    message: str
    hint: str | None = None
    about_key: bool = False
    """The mistake is the key itself, not its value."""


Context = dict[str, Any]

_PLAIN: dict[str, tuple[str, str | None]] = {
    "bool": ("A yes or no is expected here.", "write `true` or `false`"),
    "int_from_float": ("A whole number is expected here.", None),
    "int": ("A whole number is expected here.", None),
    "float": ("A number is expected here.", None),
    "finite_number": ("A finite number is expected here.", None),
    "string": ("Text is expected here.", "quote it to keep it text"),
    "list": ("A list is expected here.", "write `[a, b]`, or one `- item` a line"),
    "tuple": ("A list is expected here.", "write `[a, b]`, or one `- item` a line"),
    "set": ("A list is expected here.", "write `[a, b]`, or one `- item` a line"),
    "frozen_set": ("A list is expected here.", "write `[a, b]`, or one `- item` a line"),
    "dict": ("A mapping is expected here.", "write `key: value` lines below it"),
    "mapping": ("A mapping is expected here.", "write `key: value` lines below it"),
    "model": ("A mapping is expected here.", "write `key: value` lines below it"),
    "model_attributes": ("A mapping is expected here.", "write `key: value` lines below it"),
    "path": ("A path is expected here.", None),
    "date": ("A date is expected here.", "write YYYY-MM-DD"),
    "date_from_datetime": ("A date is expected here.", "write YYYY-MM-DD"),
    "time_delta": ("A duration is expected here.", "e.g. `PT30M`"),
    "url": ("This is no URL.", "e.g. `http://mirror.example.com/debian`"),
    "ip_v4_address": ("This is no IPv4 address.", "e.g. `10.1.0.11`"),
    "ip_v4_network": ("This is no IPv4 network.", "e.g. `10.1.0.0/16`"),
    "ip_any_address": ("This is no IP address.", "e.g. `10.1.0.11`"),
    "ip_any_network": ("This is no IP network.", "e.g. `10.1.0.0/16`"),
}


def _bound(words: str, name: str) -> Callable[[Context], Sentence]:
    return lambda context: Sentence(f"The number must be {words} {context[name]}.")


def _length(context: Context, few: bool) -> Sentence:
    if few:
        count = context["min_length"]
        return Sentence("The list is empty." if count == 1 else f"The list needs at least {count} entries.")
    return Sentence(f"The list may have at most {context['max_length']} entries.")


def _choice(context: Context) -> Sentence:
    allowed = re.findall(r"'([^']*)'", context["expected"]) or [context["expected"]]
    if len(allowed) == 1 and context["expected"].isdigit():
        return Sentence(f"Only {context['expected']} is allowed here.")
    return Sentence("This is none of the allowed values.", _allowed(context, allowed))


def _allowed(context: Context, allowed: Sequence[str]) -> str | None:
    return suggest(context["input"], allowed, what="allowed")


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
    "string_pattern_mismatch": lambda context: Sentence(
        "The text does not have the form that is asked for.", f"form: {context['pattern']}"
    ),
    "enum": _choice,
    "literal_error": _choice,
    "union_tag_not_found": lambda context: Sentence(
        f"The key {context['discriminator'].replace(chr(39), '`')} is missing, which says what this is."
    ),
    "union_tag_invalid": lambda context: Sentence(
        f"The key {context['discriminator'].replace(chr(39), '`')} has none of the allowed values.",
        f"allowed: {context['expected_tags'].replace(chr(39), '')}",
    ),
    "mistake": lambda context: Sentence(context["message"], context["hint"]),
    "value_error": lambda context: Sentence(_sentence(str(context["error"]))),
    "assertion_error": lambda context: Sentence(_sentence(str(context["error"]))),
}


def explain(errors: Sequence[ErrorDetails], known: Sequence[str]) -> list[Sentence]:
    """Sentences for the errors of one value; `known` are the keys of the mapping it stands in.

    A value that fits no member of a union has one error for each member. What is wrong in its content
    is more telling than what is wrong with its type; where several remain they become one sentence.
    """
    sentences = {_one(error, known): error["type"].endswith("_type") for error in errors}
    told = [sentence for sentence, about_type in sentences.items() if not about_type] or list(sentences)
    if len(told) == 1:
        return told
    forms = "; or: ".join(
        sentence.message.rstrip(".") + (f" ({sentence.hint})" if sentence.hint else "") for sentence in told
    )
    return [Sentence("This fits none of the forms that may stand here.", forms)]


def _one(error: ErrorDetails, known: Sequence[str]) -> Sentence:
    kind = error["type"]
    key = short(error["loc"][-1]) if error["loc"] else ""
    if kind == "missing":
        return Sentence(f"The key `{key}` is missing.", about_key=True)
    if kind == "extra_forbidden":
        return Sentence(
            f"The key `{key}` is not known here.", suggest(key, known, what="known keys"), about_key=True
        )
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
    text = text.strip() or "This value is not accepted"
    return text if text.endswith((".", "!", "?")) else text[0].upper() + text[1:] + "."
