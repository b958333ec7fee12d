"""The fact helper as one text, as it is sent to nodes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_IMPORT = "from rackwright.factcache.helper_base import as_json, execute, sha256_hash, sha256_of_size\n"


@cache
def helper_text() -> str:
    """Its source: helper_base.py, then helper.py."""
    folder = Path(__file__).parent
    questions = (folder / "helper.py").read_text()
    if _IMPORT not in questions:
        raise ValueError("rackwright/factcache/helper.py does not import its base as helper_text() expects")
    return (folder / "helper_base.py").read_text() + questions.replace(_IMPORT, "")
