"""Keys: the administrator's, the nodes' own, and the known_hosts file which makes ssh strict from the start."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab import state
from rackwright.lab.process import run
from rackwright.lab.spec import NodeSpec, RackSpec


def ensure_admin_key(key: Path) -> str:
    """The public half of the administrator's key; makes an ed25519 key where there is none."""
    if not key.exists():
        _make_folder(key.parent)
        # Made elsewhere and put in place whole, so that an interrupted `up` leaves no half a key.
        with tempfile.TemporaryDirectory() as folder:
            public_half = make_key(Path(folder, "key"), "rackwright-lab")
            state.write_text(key.with_name(key.name + ".pub"), f"{public_half}\n")
            state.write_text(key, Path(folder, "key").read_text(), 0o600)
        for path in (key, key.with_name(key.name + ".pub")):
            _give_to_owner_of(key.parent, path)
    public = run(["ssh-keygen", "-y", "-P", "", "-f", str(key)], timeout=10, check=False)
    if public.returncode != 0:
        raise LabError(f"{key} is not a private key without passphrase: {public.stderr.strip()}")
    return public.stdout.strip()


def make_key(path: Path, comment: str) -> str:
    """Make an ed25519 key pair at `path` and return its public half."""
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)], timeout=30)
    path.chmod(0o600)
    return path.with_name(path.name + ".pub").read_text().strip()


def host_patterns(node: NodeSpec, port: int) -> list[str]:
    """How ssh looks a node up in known_hosts."""
    hosts = [node.name, *node.addresses]
    return hosts if port == 22 else [f"[{host}]:{port}" for host in hosts]


def rewrite_known_hosts(text: str, keys: Mapping[str, Sequence[str]]) -> str:
    """known_hosts with these keys (public key -> its host patterns) and without older ones of the same hosts."""
    ours = {pattern for patterns in keys.values() for pattern in patterns}
    lines = [kept for line in text.splitlines() if (kept := _without(line, ours)) is not None]
    for key, patterns in keys.items():
        kind, blob = key.split()[:2]
        lines.append(f"{','.join(patterns)} {kind} {blob}")
    return "".join(f"{line}\n" for line in lines)


def write_known_hosts(spec: RackSpec, host_keys: Mapping[str, str]) -> None:
    """Put the public host keys (node name -> key) into the rack's known_hosts file."""
    path = spec.known_hosts
    _make_folder(path.parent)
    # Racks may share the file; it is read, changed and replaced in one step.
    with state.lock("known_hosts", wait=10):
        old = path.read_text() if path.exists() else ""
        keys = {host_keys[node.name]: host_patterns(node, spec.ssh_port) for node in spec.nodes}
        new = rewrite_known_hosts(old, keys)
        if new == old:
            return
        owner = path if path.exists() else path.parent
        status = owner.stat()
        state.write_text(path, new)
        os.chown(path, status.st_uid, status.st_gid)


def _without(line: str, ours: set[str]) -> str | None:
    hosts, _, rest = line.partition(" ")
    # Comments, @markers and hashed names are somebody else's business.
    if not rest or hosts.startswith(("#", "@", "|")):
        return line
    kept = [host for host in hosts.split(",") if host not in ours]
    return f"{','.join(kept)} {rest}" if kept else None


def _make_folder(folder: Path) -> None:
    if not folder.exists():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o755, exist_ok=True)
        _give_to_owner_of(folder.parent, folder)


def _give_to_owner_of(model: Path, path: Path) -> None:
    # The lab runs as root, mostly through sudo, in a folder which belongs to the person at the keyboard.
    status = model.stat()
    os.chown(path, status.st_uid, status.st_gid)
