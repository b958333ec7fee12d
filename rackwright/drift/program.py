"""The one file a node gets: the engine's fact helper with the drift check as its end."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import rackwright
from rackwright.factcache.helper_text import helper_text

_IMPORT = "from rackwright.factcache.helper import QUESTIONS, answer\n"
_END = '\nif __name__ == "__main__":'


@cache
def program() -> str:
    """Its text. The helper's source is the engine's own, so that both give the same answers."""
    package = Path(rackwright.__file__).parent
    helper, _, _ = helper_text().partition(_END)
    check = (package / "drift" / "node.py").read_text()
    if _IMPORT not in check:
        raise ValueError("rackwright/drift/node.py does not import the helper as program() expects")
    # -I: neither the caller's environment nor its folder may bring modules of its own
    return f"#!/usr/bin/python3 -I\n{helper}\n\n{check.replace(_IMPORT, '')}"
