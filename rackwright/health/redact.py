"""Replaces the names in a document so that it still judges the same: for a vendor, a forum or a bug report.

Replaced by pseudonyms: host and domain names, IP and MAC addresses, GUIDs and GIDs, serial numbers, UUIDs, user and
process names, user numbers, mount sources, paths outside the operating system, and such words in kernel messages,
kernel arguments and error texts. The same value has the same pseudonym in every document of one export, so that
duplicates stay duplicates. The key is random and never saved, so names cannot be guessed from the pseudonyms.

Kept, because judging needs them: models, versions, PCI addresses, counters, device, interface and unit names.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from rackwright.boundary import Refused
from rackwright.health.redact_text import PATTERNS, SYSTEM_FOLDERS

IDENTITIES = frozenset(("uuid", "serial", "mac", "node_guid", "system_guid", "port_guid", "cluster"))
"""Keys whose value is an identity; the pseudonym keeps its shape."""
HOSTS = frozenset(("node", "hostname"))
HOSTS_MAX = 100
"""Limit of host names in one document; a real node writes one or two, of itself."""
HOST_MAX_CHARACTERS = 253
"""Length limit of a fully qualified name (RFC 1123)."""
ADDRESSES = frozenset(("ipv4", "ipv6", "addresses", "default_gateways", "reference"))
TECHNICAL = frozenset(
    (
        "version",
        "vbios",
        "inforom",
        "gsp",
        "firmware",
        "bios",
        "driver_version",
        "cuda_version",
        "os_version",
        "kernel",
    )
)
"""Keys whose value could be mistaken for an address."""
PROCESSES = frozenset(("processes", "waiting"))
ARGUMENTS = frozenset(
    ("root", "ip", "nfsroot", "hostname", "systemd.hostname", "ds", "url", "resume", "cloud-config-url")
)
"""Kernel arguments that name the node, its disks or where it boots from."""
LINK_LOCAL, MAPPED = "fe80:0000:0000:0000:", "0000:0000:0000:0000:0000:ffff:"


_HOST = re.compile(rf"(?=.{{1,{HOST_MAX_CHARACTERS}}}\Z)[\w-]+(?:\.[\w-]*)*")
_LABEL = re.compile(r"[\w-]+")
_DOMAIN = re.compile(r"\.([\w-]+)[\w.-]*")
_MEMBER = re.compile("[a-z_]+")
"""A key of the document format, which a host may share as its name."""


class Redactor:
    """Pseudonyms of one export.

    `hosts` are names to replace in every document. Names from a document are replaced in that document only, because
    a node may claim any name. Equal names still get equal pseudonyms.
    """

    def __init__(self, key: bytes | None = None, hosts: Iterable[str] = ()) -> None:
        self._key = key or secrets.token_bytes(32)
        self._known = frozenset(hosts)
        self._hosts: dict[str, str] = {}
        self._domains: frozenset[str] = frozenset()

    def document(self, raw: dict[str, Any]) -> dict[str, Any]:
        """The document with every name replaced. Host names are collected first: they occur in free text too.

        Raises Refused if there are more than a node can have, or one is not a host name.
        """
        self._learn(_hosts_of(raw))
        redacted: dict[str, Any] = self._value(raw, ())
        return redacted

    def _learn(self, names: frozenset[str]) -> None:
        """The pseudonym of each host by its first label, and the domains that do not begin like a word."""
        names |= self._known
        parts = [name.split(".", 2) for name in names]
        self._hosts = {label: self.word("node", label) for label, *_ in parts}
        self._domains = frozenset(domain[0] for _, *domain in parts if domain and domain[0])

    def _value(self, value: Any, keys: tuple[str, ...]) -> Any:  # noqa: ANN401
        if isinstance(value, dict):
            return {self._member(key): self._value(inner, (*keys, key)) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._value(inner, keys) for inner in value]
        if not isinstance(value, str) or not value:
            return value
        return self._string(value, keys)

    def _string(self, value: str, keys: tuple[str, ...]) -> str:
        key, section = keys[-1] if keys else "", keys[1] if len(keys) > 1 else ""
        if key in TECHNICAL:
            return value
        if key in ADDRESSES or key == "server":
            return self.address(value)
        if key in HOSTS:
            return self.word("node", value.partition(".")[0])
        if key in IDENTITIES:
            return self.shaped(value)
        if key == "gid":
            return self._gid(value)
        if key == "name" and PROCESSES.intersection(keys):
            return self.word("process", value)
        if section == "mounts" and key in ("target", "source"):
            return self.path(value) if key == "target" or value.startswith("/dev/") else self._source(value)
        if key == "command_line":
            return self._argument(value)
        return self.text(value)

    def text(self, value: str) -> str:
        """Free text: known patterns, then host names."""
        for kind, pattern in PATTERNS:
            value = pattern.sub(partial(self._found, kind), value)
        return self._without_hosts(value)

    def _member(self, key: str) -> str:
        return key if _MEMBER.fullmatch(key) else self.text(key)

    def _without_hosts(self, value: str) -> str:
        """The text with a pseudonym for each host, including its domain."""
        made: list[str] = []
        at = 0
        for label in _LABEL.finditer(value):
            pseudonym = self._hosts.get(label.group())
            if pseudonym is None or label.start() < at:
                continue
            made += value[at : label.start()], pseudonym
            at = label.end()
            domain = _DOMAIN.match(value, at)
            if domain is not None and ("a" <= domain[1][0] <= "z" or domain[1] in self._domains):
                at = domain.end()
        return "".join([*made, value[at:]])

    def _found(self, kind: str, found: re.Match[str]) -> str:
        whole, value = found.group(0), found.group("value")
        begin, end = found.start("value") - found.start(0), found.end("value") - found.start(0)
        return whole[:begin] + self._pseudonym(kind, value) + whole[end:]

    def _pseudonym(self, kind: str, value: str) -> str:
        if kind == "shape":
            return self.shaped(value)
        if kind == "address":
            return self.address(value)
        if kind == "path":
            return self.path(value)
        return str(self._number(value)) if kind == "number" else self.word(kind, value)

    def word(self, kind: str, value: str) -> str:
        """A pseudonym such as `process-3fa2c1d0`; existing pseudonyms and kernel placeholders stay."""
        if value in ("<unknown>", "'<unknown>'") or re.fullmatch(
            r"(?:node|process|host|path)-[0-9a-f]{8}", value
        ):
            return value
        return f"{kind}-{self._digest(kind, value).hex()[:8]}"

    def shaped(self, value: str) -> str:
        """Digits for digits, letters for letters; all zeros stay, since they mean unset."""
        if not value.strip("0:-.xX"):
            return value
        prefix = next((one for one in ("GPU-", "MIG-", "0x") if value.startswith(one)), "")
        rest, letters = value[len(prefix) :], "0123456789abcdef"
        is_hex = re.fullmatch("[0-9a-fA-F:.-]+", rest) is not None
        stream = self._digest("shape", value.lower()) + self._digest("shape", value.lower() + "/")
        made = ""
        for at, char in enumerate(rest):
            byte = stream[at % len(stream)]
            if char.isdigit() and not (is_hex and re.search("[a-fA-F:-]", rest)):
                made += str(byte % 10)
            elif is_hex and char in "0123456789abcdefABCDEF":
                made += letters[byte % 16].upper() if char.isupper() else letters[byte % 16]
            elif char.isalpha():
                made += chr(ord("A" if char.isupper() else "a") + byte % 26)
            else:
                made += char
        return prefix + made

    def _gid(self, value: str) -> str:
        kept = next((one for one in (LINK_LOCAL, MAPPED) if value.startswith(one)), "")
        return kept + self.shaped(value[len(kept) :])

    def address(self, value: str) -> str:
        """An IPv4 address becomes one of the benchmark network 198.18.0.0/15; a name or an IPv6 address becomes a word."""
        if not re.fullmatch(r"\d{1,3}(\.\d{1,3}){3}", value):
            return self.word("host", value)
        if value.startswith(("127.", "0.", "255.", "198.18.", "198.19.")):
            return value
        one, two, three = self._digest("address", value)[:3]
        return f"198.{18 + one % 2}.{two}.{three % 254 + 1}"

    def path(self, value: str) -> str:
        """An operating system path stays as it is; any other keeps its first folder, the rest becomes pseudonyms."""
        if not value.startswith("/") or value == "/":
            return value
        first, *rest = value[1:].split("/")
        if first in SYSTEM_FOLDERS and not value.startswith(("/dev/mapper/", "/run/user/")):
            return self._shapes(value)
        return "/" + "/".join([first, *(self.word("path", part) for part in rest if part)])

    def _shapes(self, value: str) -> str:
        for kind, pattern in PATTERNS:
            if kind == "shape":
                value = pattern.sub(partial(self._found, kind), value)
        return value

    def _source(self, value: str) -> str:
        """A mount source such as `nfs1:/home/ada`; the name of an in-memory filesystem stays."""
        host, mark, path = value.partition(":")
        if mark:
            return self.word("host", host) + mark + self.path(path)
        return self.path(value) if value.startswith("/") else value

    def _argument(self, value: str) -> str:
        key, mark, rest = value.partition("=")
        return f"{key}={self.word('path', rest)}" if mark and key in ARGUMENTS else self.text(value)

    def _number(self, value: str) -> int:
        return 100000 + int.from_bytes(self._digest("number", value)[:2], "big")

    def _digest(self, kind: str, value: str) -> bytes:
        return hmac.new(self._key, f"{kind}\0{value}".encode(), hashlib.sha256).digest()


def _hosts_of(raw: Any) -> frozenset[str]:  # noqa: ANN401 - any JSON value
    """The hosts that a document names."""
    names: set[str] = set()
    for name in _named(raw):
        if not _HOST.fullmatch(name):
            raise Refused(
                f"it names a host {name[:80]!r}, but host names consist of letters, digits, `-` and `.`"
            )
        names.add(name)
        if len(names) > HOSTS_MAX:
            raise Refused(f"it names more than {HOSTS_MAX} hosts")
    return frozenset(names)


def _named(value: Any) -> Iterator[str]:  # noqa: ANN401
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in HOSTS and isinstance(inner, str) and inner:
                yield inner
            yield from _named(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _named(inner)
