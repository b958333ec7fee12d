"""The probe's document as a node sent it, or as it was saved: limited before it is judged."""

from __future__ import annotations

from typing import Any

from rackwright.boundary import Refused, read_json

DOCUMENT_MAX_BYTES = 4 * 2**20
"""A node with eight GPUs and a full kernel log sends some 200 KiB."""
LISTED_MAX = 4096
"""Elements of one list: some checks compare each with each. A node with a thousand mounts is far below."""


def read_document(text: str | bytes) -> Any:  # noqa: ANN401 - whatever was received
    """The value, not yet known to be a document; Refused where it is too large or not JSON."""
    value = read_json(text, DOCUMENT_MAX_BYTES)
    members = [value]
    while members:
        one = members.pop()
        if isinstance(one, list) and len(one) > LISTED_MAX:
            raise Refused(f"it has a list of {len(one)} elements, and {LISTED_MAX} are read at most")
        members += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return value
