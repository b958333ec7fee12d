"""Content of the encrypted secrets file of a cluster, and its encryption."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pyrage import decrypt, encrypt  # type: ignore[import-untyped]
from pyrage.x25519 import Identity, Recipient  # type: ignore[import-untyped]


class Content(BaseModel):
    """All secrets of one cluster and who may read them. Frozen: a change is a new one."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)

    version: Literal[2] = 2
    cluster: str
    """Name of the cluster that the secrets belong to."""
    id: str = Field(default_factory=lambda: secrets.token_hex(16))
    """Made once: regenerated secrets have another one."""
    recipients: frozenset[str] = Field(default=frozenset())
    """age public keys that can decrypt the file."""
    secrets: dict[str, str] = Field(default_factory=dict)
    pending: dict[str, str] = Field(default_factory=dict)
    """New values of rotations that have not reached the point of no return."""
    previous: dict[str, str] = Field(default_factory=dict)
    """Old values of rotations that are past it and not finished."""
    changed: dict[str, str] = Field(default_factory=dict)
    """When a value was last generated or put, as `2026-11-23T10:00:00+00:00`."""
    seen_by_removed: dict[str, frozenset[str]] = Field(default_factory=dict)
    """Removed recipients that have seen the present value, by the secret's name."""


class NotAStore(ValueError):  # noqa: N818 - reads as a sentence
    """What was decrypted is not a store."""


def encrypted(content: Content) -> bytes:
    """The file's bytes, readable by every recipient."""
    data = content.model_dump_json().encode()
    result: bytes = encrypt(data, [Recipient.from_str(key) for key in sorted(content.recipients)])
    return result


def decrypted(data: bytes, identities: Iterable[Identity], cluster: str) -> Content:
    """The content; pyrage's DecryptError where it cannot be decrypted, NotAStore where it is something else.

    + cluster: name that the secrets of version 1, which has none, are taken to belong to
    """
    text = decrypt(data, list(identities))
    try:
        document = json.loads(text)
        if isinstance(document, dict) and document.get("version") == 1:
            document = {**document, "version": 2, "cluster": cluster, "id": ""}  # the next write makes an id
        return Content.model_validate_json(json.dumps(document))
    except ValueError:  # of json, and pydantic's
        raise NotAStore from None
