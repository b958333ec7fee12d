"""Host key checks, and messages for refused connections."""

from __future__ import annotations

from pathlib import Path

import paramiko
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey

from rackwright.boundary import printable
from rackwright.errors import ConnectionFailed
from rackwright.ssh.known_hosts import HostKey, host_name, read_known_hosts

KEY_ALGORITHMS = {
    "ssh-ed25519": ("ssh-ed25519",),
    "ecdsa-sha2-nistp256": ("ecdsa-sha2-nistp256",),
    "ecdsa-sha2-nistp384": ("ecdsa-sha2-nistp384",),
    "ecdsa-sha2-nistp521": ("ecdsa-sha2-nistp521",),
    "ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256"),
}
"""Host key type as in known_hosts -> signature algorithms to request from the server."""


class OnlyKnownKeys(paramiko.MissingHostKeyPolicy):
    """Accepts a server only if it presents one of these keys.

    paramiko's own table holds one key per type; during a host key rotation a host has two.
    """

    def __init__(self, keys: list[paramiko.PKey]) -> None:
        self._keys = keys

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Called by paramiko for every server, because its own table is left empty."""
        if key not in self._keys:
            raise paramiko.BadHostKeyException(hostname, key, self._keys[0])


def algorithms_not_for(keys: list[paramiko.PKey]) -> list[str]:
    """Host key algorithms to refuse, so that the server presents a key of a type listed in known_hosts."""
    wanted = {algorithm for key in keys for algorithm in KEY_ALGORITHMS.get(key.get_name(), ())}
    known = [name for names in KEY_ALGORITHMS.values() for name in names]
    return ["ssh-rsa", *(name for name in known if name not in wanted)]  # ssh-rsa: signed with SHA-1


def parse_jump_host(text: str) -> tuple[str, str, int]:
    """Split `user@host[:port]` (IPv6 in brackets) into user, host, port; ConnectionFailed if malformed."""
    user, at, rest = text.rpartition("@")
    if rest.startswith("["):
        host, _, port_text = rest[1:].partition("]")
        port_text = port_text.removeprefix(":")
    else:
        host, _, port_text = rest.partition(":")
    if not at or not user or not host or not (port_text or "22").isdigit():
        raise ConnectionFailed(f"Not a valid jump host: {text!r}.", hint="write user@host or user@host:port")
    return user, host, int(port_text or "22")


def known_keys(path: Path, label: str, host: str, port: int, *, in_lab: bool) -> list[paramiko.PKey]:
    """The trusted keys of a host in a known_hosts file, in file order; ConnectionFailed if there are none."""
    name = host_name(host, port)
    try:
        known = read_known_hosts(path)
    except OSError as error:
        raise ConnectionFailed(
            f"Cannot check the host key of {label}: {path}: {error.strerror}.",
            hint=_hint(path, host, port, in_lab),
        ) from error
    keys = [key for entry in known.keys(name) if (key := _decode(name, entry)) is not None]
    if not keys:
        revoked = any(entry in known.revoked for entry in known.named(name))
        why = "all of its known keys are revoked" if revoked else f"no key is listed for {name}"
        raise ConnectionFailed(
            f"The host key of {label} is unknown: {why} in {path}.", hint=_hint(path, host, port, in_lab)
        )
    return keys


def _decode(name: str, key: HostKey) -> paramiko.PKey | None:
    try:
        entry = HostKeyEntry.from_line(f"{name} {key.kind} {key.key}")
    except (InvalidHostKey, paramiko.SSHException, ValueError):
        return None  # damaged or of an unknown type: ignore the line
    return entry.key if entry is not None else None


def _hint(path: Path, host: str, port: int, in_lab: bool) -> str:
    if in_lab:
        return "is the rack up? check with `rackwright lab status`"
    option = "" if port == 22 else f"-p {port} "
    return f"compare the fingerprint on the console, then run: ssh-keyscan {option}{host} >> {path}"


def refusal(error: Exception, label: str, known_hosts: Path, user: str, key: Path | None) -> ConnectionFailed:
    """What paramiko's error means, and what to do about it."""
    if isinstance(error, paramiko.BadHostKeyException):
        return ConnectionFailed(
            f"The host key of {label} has changed: the server presents {printable(error.key.get_name(), 60)} "
            f"{error.key.fingerprint}, "
            f"but {known_hosts} has {error.expected_key.fingerprint}. Possible man-in-the-middle attack.",
            hint=f"if the node was reinstalled, check the fingerprint and replace its line in {known_hosts}",
        )
    if isinstance(error, paramiko.ssh_exception.IncompatiblePeer):
        return ConnectionFailed(
            f"{label} and rackwright share no common SSH algorithm: {in_words(error)}.",
            hint=f"does the node still have a host key of a type listed in {known_hosts}?",
        )
    if isinstance(error, paramiko.AuthenticationException):
        shown = str(key) if key is not None else "any key of the ssh agent or ~/.ssh"
        return ConnectionFailed(
            f"{label} refused user {user} with {shown}: {in_words(error)}.",
            hint="is the public key in that user's authorized_keys?",
        )
    return ConnectionFailed(
        f"The SSH session with {label} could not be opened: {in_words(error)}.",
        hint="is sshd running, and below its connection limit (MaxStartups)?",
    )


def in_words(error: BaseException) -> str:
    """The error's message as one printable line, never empty; part of it may come from the peer."""
    said = error.strerror if isinstance(error, OSError) else None
    return printable(said or str(error) or type(error).__name__, 300)
