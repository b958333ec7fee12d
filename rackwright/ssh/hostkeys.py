"""Which host keys are known, and what a refused connection means in words."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import paramiko
from paramiko.hostkeys import HostKeyEntry, HostKeys, InvalidHostKey

from rackwright.errors import ConnectionFailed

KEY_ALGORITHMS = {
    "ssh-ed25519": ("ssh-ed25519",),
    "ecdsa-sha2-nistp256": ("ecdsa-sha2-nistp256",),
    "ecdsa-sha2-nistp384": ("ecdsa-sha2-nistp384",),
    "ecdsa-sha2-nistp521": ("ecdsa-sha2-nistp521",),
    "ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256"),
}
"""Host key type as known_hosts names it -> signature algorithms to ask the server for."""


class OnlyKnownKeys(paramiko.MissingHostKeyPolicy):
    """Accepts a server that shows one of the keys given, and no other, ever.

    paramiko's own table holds one key per type; a host in the middle of a key change has two.
    """

    def __init__(self, keys: list[paramiko.PKey]) -> None:
        self._keys = keys

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Called by paramiko for every server, because its own table is left empty."""
        if key not in self._keys:
            raise paramiko.BadHostKeyException(hostname, key, self._keys[0])


def algorithms_not_for(keys: list[paramiko.PKey]) -> list[str]:
    """Host key algorithms to refuse, lest the server shows a key of a type nobody can judge."""
    wanted = {algorithm for key in keys for algorithm in KEY_ALGORITHMS.get(key.get_name(), ())}
    known = [name for names in KEY_ALGORITHMS.values() for name in names]
    return ["ssh-rsa", *(name for name in known if name not in wanted)]  # ssh-rsa: signed with SHA-1


def parse_jump_host(text: str) -> tuple[str, str, int]:
    """`user@host[:port]` (IPv6 in brackets) as user, host, port; ConnectionFailed when malformed."""
    user, at, rest = text.rpartition("@")
    if rest.startswith("["):
        host, _, port_text = rest[1:].partition("]")
        port_text = port_text.removeprefix(":")
    else:
        host, _, port_text = rest.partition(":")
    if not at or not user or not host or not (port_text or "22").isdigit():
        raise ConnectionFailed(f"The jump host {text!r} is not of the form user@host[:port].")
    return user, host, int(port_text or "22")


def known_keys(path: Path, label: str, host: str, port: int, *, in_lab: bool) -> list[paramiko.PKey]:
    """The keys a known_hosts file holds for a host, in file order; ConnectionFailed if none.

    Reads plain and hashed names. Wildcard patterns and @cert-authority lines do not count, and a
    key that a @revoked line names is left out. Only matching lines are decoded: a file of
    thousands of hosts is read once, until it changes.
    """
    name = host if port == 22 else f"[{host}]:{port}"
    try:
        lines = _lines_about(path, path.stat().st_mtime_ns).about(name)
    except OSError as error:
        raise ConnectionFailed(
            f"The host key of {label} cannot be checked: {path}: {error.strerror}.",
            hint=_hint(path, host, port, in_lab),
        ) from error
    keys: list[paramiko.PKey] = []
    revoked: list[paramiko.PKey] = []
    for number, marker, fields in lines:
        if marker == "@revoked":
            revoked += _decode(fields, number)
        elif marker is None:
            keys += _decode(fields, number)
    trusted = [key for key in keys if key not in revoked]
    if not trusted:
        why = "every key known for it is revoked" if keys else f"there is no key of {name}"
        raise ConnectionFailed(
            f"The host key of {label} is unknown: {why} in {path}.", hint=_hint(path, host, port, in_lab)
        )
    return trusted


_Line = tuple[int, str | None, list[str]]
"""Number, marker and fields of a line."""


class _KnownHosts:
    """A known_hosts file by name, so that a thousand connections do not each read a thousand lines."""

    def __init__(self, text: str) -> None:
        self._plain: dict[str, list[_Line]] = {}
        self._others: list[_Line] = []
        for number, line in enumerate(text.splitlines(), 1):
            fields = line.split()
            marker = fields.pop(0) if fields and fields[0].startswith("@") else None
            if len(fields) < 3 or fields[0].startswith("#"):
                continue
            told = (number, marker, fields)
            if marker or "|1|" in fields[0]:
                self._others.append(told)
            else:
                for name in fields[0].split(","):
                    self._plain.setdefault(name, []).append(told)

    def about(self, name: str) -> list[_Line]:
        """Lines that name a host, and lines with a marker, in file order."""
        others = [line for line in self._others if line[1] or _is_hash_of(line[2][0], name)]
        return sorted([*self._plain.get(name, []), *others], key=lambda line: line[0])


@lru_cache(maxsize=4)
def _lines_about(path: Path, changed_ns: int) -> _KnownHosts:
    return _KnownHosts(path.read_text(encoding="utf-8", errors="replace"))


def _is_hash_of(field: str, name: str) -> bool:
    return any(
        entry == name or (entry.startswith("|1|") and HostKeys.hash_host(name, entry) == entry)
        for entry in field.split(",")
    )


def _decode(fields: list[str], number: int) -> list[paramiko.PKey]:
    try:
        entry = HostKeyEntry.from_line(" ".join(fields[:3]), number)
    except (InvalidHostKey, paramiko.SSHException, ValueError):
        return []  # a line nobody can read vouches for nothing
    return [entry.key] if entry is not None and entry.key is not None else []


def _hint(path: Path, host: str, port: int, in_lab: bool) -> str:
    if in_lab:
        return "is the rack up? `rackwright lab status`"
    option = "" if port == 22 else f"-p {port} "
    return f"compare the fingerprint at the console, then: ssh-keyscan {option}{host} >> {path}"


def refusal(error: Exception, label: str, known_hosts: Path, user: str, key: Path | None) -> ConnectionFailed:
    """What paramiko's refusal means, as a sentence with a way on."""
    if isinstance(error, paramiko.BadHostKeyException):
        return ConnectionFailed(
            f"The host key of {label} has changed: it shows {error.key.get_name()} {error.key.fingerprint}, "
            f"{known_hosts} has {error.expected_key.fingerprint}. Somebody may stand in between.",
            hint=f"if the node was reinstalled, check the fingerprint and replace its line in {known_hosts}",
        )
    if isinstance(error, paramiko.ssh_exception.IncompatiblePeer):
        return ConnectionFailed(
            f"{label} and rackwright have no way to talk in common: {error}.",
            hint=f"does the node still have a host key of a type that {known_hosts} knows?",
        )
    if isinstance(error, paramiko.AuthenticationException):
        shown = str(key) if key is not None else "any key of the ssh agent or ~/.ssh"
        return ConnectionFailed(
            f"{label} refused user {user} with {shown}: {error}.",
            hint="is the public key in that user's authorized_keys?",
        )
    cause = str(error) or type(error).__name__
    return ConnectionFailed(
        f"The ssh session with {label} could not be opened: {cause}.",
        hint="is sshd answering, and not out of connections (MaxStartups)?",
    )


def in_words(error: BaseException) -> str:
    """The error in words, never empty."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
