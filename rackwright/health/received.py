"""The probe's document as received from a node or a file, size-checked before it is judged."""

from __future__ import annotations

from typing import Any

from rackwright.boundary import Refused, read_json

DOCUMENT_MAX_BYTES = 4 * 2**20
"""A node with eight GPUs and a full kernel log sends about 200 KiB."""
LISTED_MAX = 4096
"""Elements of one list, because some checks are quadratic. A node with a thousand mounts is far below this."""


def read_document(text: str | bytes) -> Any:  # noqa: ANN401 - unchecked input
    """The parsed value, not yet validated as a document; raises Refused if it is too large or not JSON."""
    value = read_json(text, DOCUMENT_MAX_BYTES)
    members = [value]
    while members:
        one = members.pop()
        if isinstance(one, list) and len(one) > LISTED_MAX:
            raise Refused(f"it has a list of {len(one)} elements (most {LISTED_MAX})")
        members += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return value
