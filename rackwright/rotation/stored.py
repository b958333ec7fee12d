"""The steps of a rotation in the store, each of which survives a kill.

    begin    the new value is kept as `pending`; everything still uses the old one
    commit   the new value is the secret, the old one is kept as `previous`: the point of no return
    finish   `previous` is removed: no node needs it

Every step is safe to repeat.
"""

from __future__ import annotations

from rackwright.errors import SecretsError
from rackwright.secrets.content import Content
from rackwright.secrets.secret import generate
from rackwright.secrets.store import SecretStore, with_values


def is_unfinished(store: SecretStore, name: str) -> bool:
    """Whether a rotation of the secret is past the point of no return; SecretsError for an unknown secret."""
    content = store.content()
    if name not in content.secrets:
        raise SecretsError(
            f"{store.path} has no secret {name} to rotate.",
            hint="its secrets are: " + (", ".join(sorted(content.secrets)) or "none"),
        )
    return name in content.previous


def begin(store: SecretStore, name: str) -> str:
    """The value that the secret will have: that of a rotation that was interrupted, or a new one."""

    def pending(content: Content) -> Content:
        if name in content.previous or name in content.pending:
            return content
        return content.model_copy(update={"pending": {**content.pending, name: generate(name)}})

    content = store.update(pending)
    return content.secrets[name] if name in content.previous else content.pending[name]


def commit(store: SecretStore, name: str) -> None:
    """The pending value becomes the secret."""

    def committed(content: Content) -> Content:
        if name not in content.pending:
            return content
        pending = {key: value for key, value in content.pending.items() if key != name}
        previous = {**content.previous, name: content.secrets[name]}
        changed = with_values(content, {name: content.pending[name]})
        return changed.model_copy(update={"pending": pending, "previous": previous})

    store.update(committed)


def finish(store: SecretStore, name: str) -> None:
    """The old value is forgotten."""

    def finished(content: Content) -> Content:
        kept = {key: value for key, value in content.previous.items() if key != name}
        return content.model_copy(update={"previous": kept})

    store.update(finished)
