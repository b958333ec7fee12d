"""Finds secrets in plaintext. The messages never repeat the value."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rackwright.clusterfile.report import Report
from rackwright.documents.document import DataPath
from rackwright.documents.syntax import SyntaxMistake
from rackwright.documents.yaml_data import Data
from rackwright.extra_lines import FIELD, split

_SECRET_KEY = re.compile(
    r"password|passwd|passphrase|secret|token|credential|(^|_)(private|munge|jwt|api|access)?_?key$",
    re.IGNORECASE,
)
_PASS = re.compile(r"pass$", re.IGNORECASE)
"""As Slurm names passwords."""
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----")
_AGE = re.compile(r"AGE-SECRET-KEY-1", re.IGNORECASE)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s@]*@")
_LONG = re.compile(r"[A-Za-z0-9+/_-]{160,}={0,2}")
_PUBLIC = re.compile(r"(ssh-|ecdsa-|sk-|age1)[a-z0-9]")
_PATH = re.compile(r"(~?/|\.{1,2}/)?[\w.@%~-]{1,64}(/[\w.@%-]{1,64})*")
_NAME_OF_A_SECRET = re.compile(r"[a-z][a-z0-9_]{0,50}_(password|key|token|secret)")
"""Option names for entries of the secrets store, e.g. `accounting_db_password`."""
_HARMLESS = frozenset(
    [
        "yes",
        "no",
        "on",
        "off",
        "true",
        "false",
        "none",
        "never",
        "always",
        "required",
        "optional",
        "prohibit-password",
    ]
)

_HINT = "remove it and treat it as leaked; rackwright generates secrets and keeps them encrypted"

_URL_MESSAGE = "The URL contains credentials."
_URL_HINT = "remove them and treat them as leaked; if the mirror requires a login, use a proxy that adds it"


def find_plaintext_secrets(report: Report) -> None:
    """Report every secret in plaintext, in values and in comments."""
    for path, value in _texts((), report.document.data):
        message = _why_secret(path, value)
        if message is not None:
            report.add_secret(path, message, _URL_HINT if message == _URL_MESSAGE else _HINT)
    _scan_comments(report)


def looks_secret(text: str) -> bool:
    """Whether a text, wherever it is, is key material or a URL with credentials."""
    found = _PEM.search(text) or _AGE.search(text) or _LONG.fullmatch("".join(text.split()))
    return found is not None or (_URL.search(text) is not None and not text.startswith("ssh://"))


def _texts(path: DataPath, value: Data) -> Iterator[tuple[DataPath, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts((*path, key), inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _texts((*path, index), inner)
    elif isinstance(value, str):
        yield path, value


def _why_secret(path: DataPath, value: str) -> str | None:
    if _PEM.search(value):
        return "Private key in plaintext."
    if _AGE.search(value):
        return "age identity in plaintext."
    if _URL.match(value):
        scheme, _, rest = value.partition("://")
        if scheme.lower() != "ssh" or ":" in rest.partition("@")[0]:
            return _URL_MESSAGE
    if len(path) > 2 and path[-3] == FIELD and _in_extra_line(value):
        return "Secret in plaintext."
    if _PUBLIC.match(value):
        return None
    if _LONG.fullmatch("".join(value.split())):
        return "This looks like key material in plaintext."
    key = next((part for part in reversed(path) if isinstance(part, str)), "")
    if _SECRET_KEY.search(key) and not _is_harmless(key, value):
        return "Secret in plaintext."
    return None


def _in_extra_line(line: str) -> bool:
    """Whether an extra line of a role's file sets a password or the like, `StoragePass=...`."""
    key, value = split(line)
    named = _SECRET_KEY.search(key) or _PASS.search(key)
    return bool(_URL.search(value)) or (named is not None and not _is_harmless(key, value))


def _is_harmless(key: str, value: str) -> bool:
    if not value or value.lower() in _HARMLESS or _NAME_OF_A_SECRET.fullmatch(value):
        return True
    names_a_file = "/" in value or key == "key" or key.endswith(("_file", "_path")) or _is_key_file(value)
    return names_a_file and len(value) <= 200 and _PATH.fullmatch(value) is not None


def _is_key_file(value: str) -> bool:
    """Whether the value names a file of public keys, such as `nvidia.asc` in `repository_key`."""
    return value.endswith((".asc", ".gpg", ".pub"))


def _scan_comments(report: Report) -> None:
    for number, line in enumerate(report.document.text.splitlines(), 1):
        start = line.find("#")
        if start >= 0 and (_PEM.search(line, start) or _AGE.search(line, start)):
            report.add_at(SyntaxMistake(number, start + 1, "Secret key in plaintext in a comment.", _HINT))
