"""Keys: the administrator's, the nodes' own, and the known_hosts file which makes ssh strict from the start."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rackwright.errors import LabError
from rackwright.known_hosts_file import change_known_hosts, with_keys, without_hosts
from rackwright.lab import state
from rackwright.lab.process import run
from rackwright.lab.spec import NodeSpec, RackSpec


def ensure_admin_key(key: Path) -> str:
    """The public half of the administrator's key; makes an ed25519 key where there is none."""
    if not key.exists():
        make_folder(key.parent)
        # Made elsewhere and put in place whole, so that an interrupted `up` leaves no half a key.
        with tempfile.TemporaryDirectory() as folder:
            public_half = make_key(Path(folder, "key"), "rackwright-lab")
            state.write_text(key.with_name(key.name + ".pub"), f"{public_half}\n")
            state.write_text(key, Path(folder, "key").read_text(), 0o600)
        for path in (key, key.with_name(key.name + ".pub")):
            give_to_owner_of(key.parent, path)
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


def write_known_hosts(spec: RackSpec, host_keys: Mapping[str, str]) -> None:
    """Put the public host keys (node name -> key) into the rack's known_hosts file; other nodes keep their lines."""
    known = [node for node in spec.nodes if node.name in host_keys]
    keys = {host_keys[node.name]: host_patterns(node, spec.ssh_port) for node in known}
    make_folder(spec.known_hosts.parent)
    change_known_hosts(spec.known_hosts, lambda text: with_keys(text, keys))


def forget_hosts(spec: RackSpec, nodes: Sequence[NodeSpec]) -> None:
    """Take nodes out of the rack's known_hosts file: what an earlier rack had at their addresses is gone."""
    patterns = {pattern for node in nodes for pattern in host_patterns(node, spec.ssh_port)}
    make_folder(spec.known_hosts.parent)
    change_known_hosts(spec.known_hosts, lambda text: without_hosts(text, patterns))


def make_folder(folder: Path) -> None:
    """A folder and those above it; a new one belongs to the owner of the one above."""
    if not folder.exists():
        make_folder(folder.parent)
        folder.mkdir(mode=0o755, exist_ok=True)
        give_to_owner_of(folder.parent, folder)


def give_to_owner_of(model: Path, path: Path) -> None:
    """Make one path belong to the owner of another."""
    # The lab runs as root, mostly through sudo, in a folder which belongs to the person at the keyboard.
    status = model.stat()
    os.chown(path, status.st_uid, status.st_gid)
