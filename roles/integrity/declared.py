"""What roles, the cluster file and the allow lists declare together for one node."""

from __future__ import annotations

import base64
from functools import lru_cache
from pathlib import Path

import paramiko

from rackwright.drift import paths as drift
from rackwright.drift import texts as drift_texts
from rackwright.facts.traces import SSHD_FOLDER, SUDOERS
from rackwright.facts.undeclared import Declared
from rackwright.lock.for_roles import has_stack
from rackwright.lock.lock_file import read_lock
from rackwright.model.authorized_keys import parse_key
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import HoldsPackages
from rackwright.model.logins import PRIVILEGED_GROUPS, AddsLogins, ComparesGroups, DeclaresLogins
from rackwright.roles.integrity.options import IntegrityOptions

_SSHD_OWN = {
    "authorizedkeyscommand": {"none"},
    "authorizedkeysfile": {".ssh/authorized_keys", ".ssh/authorized_keys .ssh/authorized_keys2"},
    "authorizedprincipalscommand": {"none"},
    "authorizedprincipalsfile": {"none"},
    "forcecommand": {"none"},
    "permitemptypasswords": {"no"},
    "permituserenvironment": {"no"},
    "trustedusercakeys": {"none"},
}
"""sshd's defaults, and Debian's where they are others: sshd_config(5), read 2026-11-23."""


def declared(cluster: Cluster, node: Node, options: IntegrityOptions) -> Declared:
    """What may be on a node."""
    logins = node.offers(DeclaresLogins)
    login = cluster.ssh.user
    administrators = logins.administrators if logins is not None else ()
    files = (*(logins.login_files if logins is not None else ()), *_added_files(node))
    groups = logins.root_groups if logins is not None else dict.fromkeys(PRIVILEGED_GROUPS, ())
    keys = {user: frozenset(lines) for user, lines in options.allowed_authorized_keys.items()}
    for user, lines in (logins.login_keys if logins is not None else {}).items():
        keys[user] = keys.get(user, frozenset()) | frozenset(lines)
    settings = {key: set(values) for key, values in _SSHD_OWN.items()}
    if logins is not None:
        settings |= {key: {value} for key, value in logins.sshd_settings.items()}
    for key, value in options.allowed_sshd_settings.items():
        settings.setdefault(key, set()).add(value)
    return Declared(
        login=login,
        port=cluster.ssh.port,
        users=tuple(sorted({login, *administrators, *options.allowed_authorized_keys})),
        keys=keys,
        key_prefixes={drift.USER: _drift_line(cluster)},
        login_key=login_key(cluster),
        key_files=frozenset(files),
        uid0=frozenset(options.allowed_uid0),
        system_logins=frozenset(options.allowed_system_logins),
        root_groups={
            group: frozenset({*names, *administrators, *options.allowed_group_members.get(group, ())})
            for group, names in groups.items()
        },
        compared_groups=frozenset().union(*_compared_groups(node)),
        sudoers=frozenset(files)
        | {drift.SUDOERS}
        | {f"{SUDOERS}.d/{name}" for name in options.allowed_sudoers},
        login_has_sudo=login in administrators,
        login_needs_sudo=login != "root" and cluster.ssh.become == "sudo",
        sshd_files=frozenset(files) | {f"{SSHD_FOLDER}/{name}" for name in options.allowed_sshd_includes},
        sshd_settings={key: frozenset(values) for key, values in settings.items()},
        sshd_match=frozenset(options.allowed_sshd_match),
        loose=frozenset(options.allowed_setuid),
        holds=frozenset(options.allowed_holds) | _holds(cluster, node),
        paths=options.setuid_paths,
    )


def _added_files(node: Node) -> list[str]:
    added = (one for one in node.options.values() if isinstance(one, AddsLogins))
    return [path for one in added for path in one.added_login_files]


def _compared_groups(node: Node) -> list[frozenset[str]]:
    return [one.compared_groups for one in node.options.values() if isinstance(one, ComparesGroups)]


def _drift_line(cluster: Cluster) -> str:
    """How the one key of the drift check begins: with it a key may run the check and nothing else."""
    marker = "KEY"
    text = drift_texts.authorized_keys(cluster, marker).splitlines()[-1]
    return text.partition(marker)[0]


def _holds(cluster: Cluster, node: Node) -> frozenset[str]:
    """Packages that roles hold on the node: those of the lock, and those of roles with separate versions."""
    found = {
        name
        for options in node.options.values()
        if isinstance(options, HoldsPackages)
        for name in options.held_packages(node)
    }
    if cluster.gpu_stack is not None and has_stack(node) and cluster.lock_path.is_file():
        group = read_lock(cluster).group_of(node)
        found |= set(group.packages) if group is not None else set()
    return frozenset(found)


def login_key(cluster: Cluster) -> str | None:
    """The fingerprint of the key that rackwright logs in with; None where only an agent or a passphrase has it."""
    key = cluster.ssh.key
    if key is None:
        return None
    try:
        changed = key.stat().st_mtime_ns
    except OSError:
        return _of_public(key.with_name(f"{key.name}.pub"))
    # a `.pub` beside it may be an older key's
    return _of_private(key, changed) or _of_public(key.with_name(f"{key.name}.pub"))


def _of_public(path: Path) -> str | None:
    try:
        parsed = parse_key(path.read_text().partition("\n")[0])
    except (OSError, ValueError):
        return None
    return parsed.fingerprint if parsed is not None else None


@lru_cache(maxsize=16)
def _of_private(key: Path, changed: int) -> str | None:
    """`changed` is the time of the file: another key under the same name is read again."""
    try:
        found = paramiko.PKey.from_path(key)
    except (OSError, paramiko.SSHException, ValueError, TypeError):
        return _public_part(key)  # a passphrase, or a kind of key that paramiko does not read
    parsed = parse_key(f"{found.get_name()} {found.get_base64()}")
    return parsed.fingerprint if parsed is not None else None


def _public_part(key: Path) -> str | None:
    """What OpenSSH's own format has of the public key without the passphrase (PROTOCOL.key, read 2026-11-23)."""
    try:
        lines = key.read_text().split("-----")[2].split()
        magic, _, rest = base64.b64decode("".join(lines), validate=True).partition(b"\0")
    except (OSError, ValueError, IndexError):
        return None
    fields = []
    for skipped in (0, 0, 0, 4):  # cipher, kdf, its options; the number of keys, the key
        size = int.from_bytes(rest[skipped : skipped + 4], "big")
        fields.append(rest[skipped + 4 : skipped + 4 + size])
        rest = rest[skipped + 4 + size :]
    kind = fields[-1][4 : 4 + int.from_bytes(fields[-1][:4], "big")].decode(errors="replace")
    parsed = parse_key(f"{kind} {base64.b64encode(fields[-1]).decode()}")
    return parsed.fingerprint if parsed is not None and magic == b"openssh-key-v1" else None
