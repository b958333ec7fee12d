"""Secrets of a cluster: generated on first use, kept in one age-encrypted file per cluster.

`<stem>.secrets.age` beside the cluster file holds the values, encrypted to the identity in the
user's configuration folder and to every key in `<stem>.secrets.recipients` (one age public key a line),
so that a team shares one cluster. A recipient added there can read the store after the next command of
a user who can. Removing a line removes no recipient, who has seen the secrets: generate new ones.
"""

from __future__ import annotations

import fcntl
import hmac
import json
import os
import re
import secrets
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import NoReturn, Self

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pyrage import DecryptError, RecipientError, decrypt, encrypt  # type: ignore[import-untyped]
from pyrage.x25519 import Identity, Recipient  # type: ignore[import-untyped]

from rackwright.atomic_write import write_atomically
from rackwright.errors import SecretsError
from rackwright.model.cluster import Cluster
from rackwright.secrets.identity import identity_path, load_identities, reason

_VERSION = 1
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_LOCK_SECONDS = 30.0


def _url_safe(size: int) -> str:
    """Random text from `size` bytes that does not begin with `-`, so that no command takes it for a flag."""
    while True:
        text = secrets.token_urlsafe(size)
        if text[0].isalnum():
            return text


def _ssh_key() -> str:
    pem = (serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    return Ed25519PrivateKey.generate().private_bytes(*pem).decode()


_KINDS: tuple[tuple[re.Pattern[str], Callable[[], str]], ...] = (
    (re.compile(r"munge_key"), lambda: b64encode(secrets.token_bytes(1024)).decode()),
    (re.compile(r"(.*_)?jwt_key"), lambda: b64encode(secrets.token_bytes(32)).decode()),
    (re.compile(r"(.*_)?ssh_key"), _ssh_key),
    (re.compile(r"(.*_)?password"), lambda: _url_safe(24)),
    (re.compile(r".*"), lambda: _url_safe(32)),
)
"""By name: 1024 bytes and 32 bytes as base64, an OpenSSH private key, 32 url-safe characters, and 43
for everything else."""


class Secret:
    """A secret value. Its str(), repr() and format() are a mask; `reveal()` returns the value."""

    __slots__ = ("_value", "name")

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self._value = value

    def reveal(self) -> str:
        """The value: only for a file's content or a process's stdin."""
        return self._value

    def __repr__(self) -> str:
        return f"(secret {self.name})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return self.name == other.name and hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash(self.name)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} is not pickled; read it where it is needed.")


class SecretStore:
    """The secrets of one cluster file. Safe for threads and for several processes at once."""

    def __init__(self, cluster_file: Path) -> None:
        self._folder = cluster_file.absolute().parent
        self._path = self._folder / f"{cluster_file.stem}.secrets.age"
        self._recipients_path = self._folder / f"{cluster_file.stem}.secrets.recipients"
        self._values: dict[str, str] = {}
        self._lock = Lock()

    def get(self, name: str) -> Secret:
        """The secret of that name, generated and stored if it does not exist yet.

        Raises SecretsError when the store or the identity cannot be used.
        """
        if not _NAME.fullmatch(name):
            raise SecretsError(f"{name[:64]!r} is not a secret's name: use lower-case words joined by `_`.")
        with self._lock:
            if name not in self._values:
                self._values = self._read_or_generate(name)
            return Secret(name, self._values[name])

    def missing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the names that the store lacks, sorted."""
        values, _ = self._read(load_identities())
        return tuple(sorted(set(names) - set(values)))

    def put(self, name: str, value: str) -> None:
        """Store a value that was not generated here, replacing any other of that name."""
        if not _NAME.fullmatch(name):
            raise SecretsError(f"{name[:64]!r} is not a secret's name: use lower-case words joined by `_`.")
        identities = load_identities()
        with self._lock, _locked(self._folder):
            values, recipients = self._read(identities)
            if values.get(name) != value:
                values = {**values, name: value}
                self._write(values, {*recipients, str(identities[0].to_public()), *self._team()})
            self._values = values

    def mask(self, text: str) -> str:
        """The text with every secret that this process has read replaced by its mask."""
        with self._lock:
            known = sorted(self._values.items(), key=lambda item: -len(item[1]))
        for name, value in known:
            text = text.replace(value, f"(secret {name})")
        return text

    def _read_or_generate(self, name: str) -> dict[str, str]:
        identities = load_identities()
        with _locked(self._folder):
            values, recipients = self._read(identities)
            wanted = {*recipients, str(identities[0].to_public()), *self._team()}
            if name in values and wanted == recipients:
                return values
            if name not in values:
                values = {**values, name: _generate(name)}
            self._write(values, wanted)
            return values

    def _read(self, identities: list[Identity]) -> tuple[dict[str, str], set[str]]:
        """Values by name, and the recipients the file is encrypted to; both empty without a file."""
        try:
            encrypted = self._path.read_bytes()
        except FileNotFoundError:
            return {}, set()
        except OSError as error:
            raise SecretsError(f"{self._path} cannot be read: {reason(error)}.") from None
        try:
            content = json.loads(decrypt(encrypted, identities))
        except DecryptError as error:
            raise self._unreadable(error) from None
        except ValueError:
            content = None
        if not _is_store(content):
            raise SecretsError(
                f"{self._path} was not written by this version of rackwright.",
                hint="use the version that wrote it, or restore the file from a backup",
            )
        return dict(content["secrets"]), set(content["recipients"])

    def _unreadable(self, error: DecryptError) -> SecretsError:
        if "No matching keys" in str(error):
            return SecretsError(
                f"{self._path} is not encrypted to the identity in {identity_path()}.",
                hint="restore the identity that wrote it, or ask a user who can read it to add your "
                f"public key to {self._recipients_path.name} and run any rackwright command",
            )
        return SecretsError(
            f"{self._path} is damaged and cannot be decrypted.", hint="restore it from a backup"
        )

    def _write(self, values: dict[str, str], recipients: Iterable[str]) -> None:
        keys = sorted(recipients)
        content = json.dumps({"version": _VERSION, "recipients": keys, "secrets": values})
        encrypted = encrypt(content.encode(), [Recipient.from_str(key) for key in keys])
        try:
            write_atomically(self._path, encrypted)
        except OSError as error:
            raise SecretsError(f"{self._path} cannot be written: {reason(error)}.") from None

    def _team(self) -> set[str]:
        try:
            lines = self._recipients_path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return set()
        except (OSError, UnicodeDecodeError):
            raise SecretsError(f"{self._recipients_path} cannot be read as text.") from None
        keys = set()
        for number, line in enumerate(lines, 1):
            key = line.partition("#")[0].strip()
            if not key:
                continue
            try:
                keys.add(str(Recipient.from_str(key)))
            except RecipientError:
                raise SecretsError(
                    f"{self._recipients_path}:{number} is not an age public key.",
                    hint="one `age1...` key a line; never a secret key",
                ) from None
        return keys


@cache
def _store_at(cluster_file: Path) -> SecretStore:
    return SecretStore(cluster_file)


def store_of(cluster: Cluster) -> SecretStore:
    """The store next to the cluster file (`<stem>.secrets.age`); one per file and process."""
    return _store_at(cluster.path)


def _generate(name: str) -> str:
    return next(make() for pattern, make in _KINDS if pattern.fullmatch(name))


def _is_store(content: object) -> bool:
    return (
        isinstance(content, dict)
        and content.get("version") == _VERSION
        and isinstance(content.get("secrets"), dict)
        and isinstance(content.get("recipients"), list)
    )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder: no other process changes a store in it meanwhile."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise SecretsError(
                        f"Another process holds the lock on the secrets in {folder}."
                    ) from None
                time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)
