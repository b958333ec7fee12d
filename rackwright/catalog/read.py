"""The SKU catalogue: data files in this package, one per vendor or family."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from pydantic import TypeAdapter

from rackwright.documents.document import parse_document
from rackwright.model.sku import Sku, SkuEntry

_ENTRIES = TypeAdapter(dict[str, SkuEntry])


@cache
def catalogue() -> dict[str, Sku]:
    """Every SKU that rackwright ships, by name."""
    found: dict[str, Sku] = {}
    for file in sorted(files("rackwright.catalog").iterdir(), key=lambda file: file.name):
        if not file.name.endswith(".yaml"):
            continue
        document = parse_document(file.read_bytes(), file.name)
        for name, entry in _ENTRIES.validate_python(document.data).items():
            found[name] = Sku(name=name, **dict(entry))
    return found
