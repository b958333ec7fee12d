"""Queries and changes a node's machine owner keys (MOK) with mokutil over ssh. Texts: mokutil 0.6.0 and 0.7.2."""

from __future__ import annotations

import secrets
import string
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.serialization import Encoding

from rackwright.boundary import Refused, last_line
from rackwright.certificates.read import certificates_in, fingerprint
from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed, FirmwareError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.platforms import Capability, why_lacking
from rackwright.secrets.secret import Secret
from rackwright.ssh import Pool, RootShell
from rackwright.ssh.side_by_side import side_by_side

COUNTDOWN_SECONDS = 120
"""How long MokManager waits for a key press; its default of 10 is short for a console that comes late."""
_FILE_MAX = 16384
_PASSWORD_LENGTH = 16
_AT_ONCE = 64
_SECONDS = 60
"""Times ssh.time_factor."""
# The certificate is public. It is in the command, so that standard input is the password's alone.
_WITH_KEY = (
    "export LC_ALL=C; d=$(mktemp -d) || exit 1; trap 'rm -rf \"$d\"' EXIT; "
    'printf %s {key} | base64 -d >"$d/key.der" || exit 1; '
)
_TEST = 'mokutil --test-key "$d/key.der" 2>&1 </dev/null'
_REVOKE = "mokutil --revoke-import >/dev/null 2>&1 </dev/null"
_IMPORT = (
    _WITH_KEY
    + _REVOKE
    + f"; mokutil --timeout {COUNTDOWN_SECONDS} >/dev/null 2>&1 </dev/null; "
    + 'mokutil --import "$d/key.der" >&2; '
    + _TEST
)
_NOT_FOUND = (126, 127)


class KeyState(Enum):
    """What firmware knows of a key."""

    ENROLLED = "enrolled"
    TRUSTED = "trusted without being enrolled"
    REQUESTED = "not enrolled, and asked for"
    MISSING = "not enrolled"
    BLOCKED = "blocked"


_SAYS = (
    ("is already enrolled", KeyState.ENROLLED),
    ("is already in db", KeyState.TRUSTED),
    ("is already in the built-in trusted keyring", KeyState.TRUSTED),
    ("is already in the enrollment request", KeyState.REQUESTED),
    ("is not enrolled", KeyState.MISSING),
    ("is blocked in", KeyState.BLOCKED),
)


@dataclass(frozen=True)
class SigningKey:
    """The certificate of a key that modules are signed with."""

    name: str
    der: bytes
    sha1: bytes
    """As MokManager shows it."""
    sha256: str


def read_key(path: Path) -> SigningKey:
    """A certificate, DER or PEM; FirmwareError where the file is something else."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FirmwareError(f"Cannot read {path}: {error.strerror}.") from None
    try:
        certificate = _certificate(content)
    except (Refused, ValueError) as error:
        raise FirmwareError(
            f"{path} is not a valid certificate: {error}.",
            hint="use the certificate, e.g. /var/lib/dkms/mok.pub, not the private key: "
            "openssl x509 -in mok.pem -outform DER -out mok.der",
        ) from None
    der = certificate.public_bytes(Encoding.DER)
    return SigningKey(path.name, der, certificate.fingerprint(SHA1()), fingerprint(certificate))


def _certificate(content: bytes) -> x509.Certificate:
    if content.startswith(b"-----BEGIN"):
        found = certificates_in(content.decode("ascii", errors="replace"))
        if len(found) != 1:
            raise Refused(f"it contains {len(found)} certificates")
        return found[0]
    if len(content) > _FILE_MAX:
        raise Refused(f"it has more than {_FILE_MAX} bytes")
    try:
        return x509.load_der_x509_certificate(content)
    except ValueError:
        raise Refused("it is neither DER nor PEM") from None


def one_time_password() -> Secret:
    """What MokManager asks for: letters and digits, which every keyboard layout and terminal passes on."""
    letters = string.ascii_lowercase + string.digits
    return Secret("of the enrolment", "".join(secrets.choice(letters) for _ in range(_PASSWORD_LENGTH)))


def state_of(shell: RootShell, cluster: Cluster, node: str, key: SigningKey) -> KeyState:
    """What a node's firmware knows of the key; FirmwareError or ConnectionFailed where it is not known."""
    return _state(_run(shell, cluster, node, _with_key(key) + _TEST), node)


def request(
    shell: RootShell, cluster: Cluster, node: str, key: SigningKey, password: Secret
) -> CommandResult:
    """Have the next boot ask whether to enrol the key, with this password; an earlier request is dropped."""
    command = _IMPORT.replace("{key}", _encoded(key))
    answer = _run(shell, cluster, node, command, stdin=f"{password.reveal()}\n" * 2)
    if _state(answer, node) is not KeyState.REQUESTED:
        why = last_line(answer.stdout, answer.stderr).replace(password.reveal(), "(the password)")
        raise FirmwareError(f"{node} did not accept the request to enrol the key: {why}")
    return answer


def revoke(shell: RootShell, cluster: Cluster, node: str) -> None:
    """Drop the request, where one waits."""
    _run(shell, cluster, node, _REVOKE)


def survey(
    cluster: Cluster, nodes: Sequence[Node], key: SigningKey, *, shell: RootShell | None = None
) -> dict[str, KeyState | str]:
    """What each node's firmware knows of the key, or why that is not known."""

    def one(asked: RootShell, node: Node) -> KeyState | str:
        if (lacks := why_lacking(node.platform, Capability.KERNEL)) is not None:
            return f"out of scope: {lacks}"
        try:
            return state_of(asked, cluster, node.name, key)
        except (FirmwareError, ConnectionFailed) as error:
            return error.message

    def every(asked: RootShell) -> dict[str, KeyState | str]:
        with side_by_side(min(_AT_ONCE, len(nodes))) as threads:
            found = threads.map(lambda node: one(asked, node), nodes)
            return {node.name: state for node, state in zip(nodes, found, strict=True)}

    if shell is not None:
        return every(shell)
    with Pool(cluster) as pool:
        return every(pool)


def _run(
    shell: RootShell, cluster: Cluster, node: str, command: str, stdin: str | None = None
) -> CommandResult:
    return shell.run(node, command, stdin=stdin, timeout=_SECONDS * cluster.ssh.time_factor)


def _encoded(key: SigningKey) -> str:
    return b64encode(key.der).decode("ascii")


def _with_key(key: SigningKey) -> str:
    return _WITH_KEY.replace("{key}", _encoded(key))


def _state(answer: CommandResult, node: str) -> KeyState:
    if answer.exit_status in _NOT_FOUND or "mokutil: not found" in answer.stdout:
        raise FirmwareError(f"{node} has no mokutil.", hint="install the package mokutil there")
    found = next((state for words, state in _SAYS if words in answer.stdout), None)
    if found is None:
        why = last_line(answer.stdout, answer.stderr)
        raise FirmwareError(f"mokutil on {node} does not report whether the key is enrolled: {why}")
    return found
