"""Rules for BIOS attributes: the registry that a BMC publishes, and which values it forbids."""

from __future__ import annotations

from collections.abc import Mapping

from rackwright.bmc.documents import Document, document, last_part, link, links, listed, number, sub, text
from rackwright.bmc.redfish_tree import Tree
from rackwright.bmc.target import NoAnswer
from rackwright.documents.nearest import listed as in_words
from rackwright.documents.nearest import nearest
from rackwright.errors import BmcError

_REGISTRIES_MAX = 128


def read_registry(tree: Tree, bios: Document) -> dict[str, Document]:
    """Attribute to its registry entry; empty if the BMC publishes no readable registry."""
    name = text(bios, "AttributeRegistry")
    if name is None:
        return {}
    try:
        paths = links(tree.optional(link(tree.session.root(), "Registries")), "Members")[:_REGISTRIES_MAX]
        there = {last_part(path): path for path in paths}
        path = there.get(name) or next(
            (path for one, path in there.items() if name.split(".")[0] == one.split(".")[0]), None
        )
        places = [*listed(tree.optional(path), "Location")]
        english = [one for one in places if (text(one, "Language") or "en").startswith("en")] or places
        uri = next((found for one in english if (found := text(one, "Uri")) is not None), None)
        registry = tree.optional(uri)
    except NoAnswer:
        raise
    except BmcError:  # e.g. it is compressed: then the BMC itself rejects wrong values
        return {}
    entries = listed(sub(registry, "RegistryEntries"), "Attributes")
    return {name: one for one in entries if (name := text(one, "AttributeName")) is not None}


def refusals(
    changes: Mapping[str, object], now: Mapping[str, object], registry: Mapping[str, Document]
) -> dict[str, str]:
    """Attribute to the reason why it cannot have this value.

    + now: the BIOS's current attributes
    + registry: their rules; empty: unknown
    """
    found = {}
    for name, value in changes.items():
        if name not in now and name not in registry:
            found[name] = "this BIOS does not have the attribute" + _near(name, [*now, *registry])
        elif (why := _refused(document(registry.get(name)), value)) is not None:
            found[name] = why
    return found


def _refused(entry: Document, value: object) -> str | None:
    kind = (text(entry, "Type") or "").lower()
    if entry.get("ReadOnly") is True or entry.get("Immutable") is True:
        return "it is read-only"
    if kind == "password":
        return "it is a password, which must not be in a cluster file"
    if kind == "enumeration":
        values = [one for item in listed(entry, "Value") if (one := text(item, "ValueName")) is not None]
        return None if not values or value in values else f"{value} is not one of: {in_words(values)}"
    if kind == "boolean":
        return None if isinstance(value, bool) else f"{value} is not true or false"
    if kind == "integer":
        return _not_within(entry, value)
    if kind == "string" and not isinstance(value, str):
        return f"{value} is not text: put it in quotes"
    return None


def _not_within(entry: Document, value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return f"{value} is not a whole number"
    lower, upper = number(entry, "LowerBound"), number(entry, "UpperBound")
    if lower is not None and value < lower:
        return f"{value} is less than {lower:g}"
    return f"{value} is more than {upper:g}" if upper is not None and value > upper else None


def _near(name: str, known: list[str]) -> str:
    hint = nearest(name, known)
    return "" if hint is None else f"; {hint.rstrip('?')}"
