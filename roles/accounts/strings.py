"""Text types of the accounts role: values that sssd.conf, sshd's settings and sudoers take literally."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, StringConstraints

from rackwright.model.text import mistake

_DN = re.compile(r"[A-Za-z][A-Za-z0-9.-]*=[^,=]+(,[A-Za-z][A-Za-z0-9.-]*=[^,=]+)*")
_DN_CHARACTERS = re.compile(r"[\w=,. @-]+")
_FILTER = re.compile(r"[\w=,. @+&|!<>~:*()-]+")
_HOME = re.compile(r"(/([A-Za-z0-9._-]|%[uUl])+)+")


def _server(uri: str) -> str:
    if uri.startswith(("ldapi:", "http:", "https:")) or "://" not in uri:
        raise mistake("Not the URI of an LDAP server.", "e.g. `ldaps://ldap1.example.com`")
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:  # a port above 65535
        raise mistake("Not a valid port.", "e.g. `ldaps://ldap1.example.com:636`") from None
    host = parts.hostname or ""
    if parts.scheme not in ("ldap", "ldaps") or not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", host):
        raise mistake("Not the URI of an LDAP server.", "e.g. `ldaps://ldap1.example.com`")
    if port == 0 or uri not in (f"{parts.scheme}://{host}", f"{parts.scheme}://{host}:{port}"):
        raise mistake(
            "A server is a scheme, a host and perhaps a port, in lower case, and nothing else.",
            "e.g. `ldaps://ldap1.example.com:636`; searches begin at `base`, the login is `bind`",
        )
    return uri


def _dn(text: str) -> str:
    if not _DN.fullmatch(text) or not _DN_CHARACTERS.fullmatch(text) or text != text.strip():
        raise mistake(
            "Not a distinguished name of letters, digits and `=,. @_-`.",
            "e.g. `ou=people,dc=example,dc=com`",
        )
    return text


def _filter(text: str) -> str:
    if not _FILTER.fullmatch(text) or not _is_one_group(text):
        raise mistake("Not an LDAP filter in parentheses.", "e.g. `(memberOf=cn=hpc,dc=example,dc=com)`")
    return text


def _is_one_group(text: str) -> bool:
    """Whether its first parenthesis is closed by its last character."""
    depth = 0
    for place, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth <= 0:
            return text.startswith("(") and place == len(text) - 1
    return False


def _home(text: str) -> str:
    steps = text.split("/")
    if not _HOME.fullmatch(text) or any(step in (".", "..") for step in steps):
        raise mistake("Not the absolute path of a home.", "e.g. `/home/%u`")
    if not ({"%u", "%U"} & set(re.findall("%.", text))):
        raise mistake("All users would have one home.", "e.g. `/home/%u`")
    return text


ServerUri = Annotated[str, AfterValidator(_server)]
DistinguishedName = Annotated[str, AfterValidator(_dn)]
Base = DistinguishedName
"""Where a search begins."""
Filter = Annotated[str, AfterValidator(_filter)]
"""As RFC 4515 writes it, without escapes."""
HomeTemplate = Annotated[str, AfterValidator(_home)]
"""override_homedir of sssd.conf(5), with its simplest sequences."""
Attribute = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,62}$")]
DirectoryUser = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]
DirectoryGroup = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]
"""A group whose name needs quoting neither in sudoers nor in sshd's patterns."""
